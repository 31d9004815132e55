//! XD+, X3: models that are small on disk and large or deep in memory are refused while they are read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field::*, nested, within, write};
use onnx_graph::{Error, Model, ReadLimits, Result};

fn read(content: &[u8], limits: ReadLimits) -> Result<Model> {
    let folder = tempfile::tempdir().unwrap();
    Model::read_with_limits(write(folder.path(), "model.onnx", content), limits)
}

#[test]
fn ten_thousand_levels() {
    let error = Model::from_bytes(nested(10_000)).unwrap_err();
    assert!(matches!(error, Error::NotOnnx { .. }), "{error:?}");
    // No limit of ours opens the decoder's.
    let limits = ReadLimits { max_nesting: usize::MAX, ..ReadLimits::default() };
    assert!(read(&nested(10_000), limits).is_err());
}

#[test]
fn depth_is_limited_wherever_a_graph_can_be() {
    let limits = ReadLimits { max_nesting: 3, ..ReadLimits::default() };
    let deep = |levels| {
        let fields = [GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_GRAPH].repeat(levels);
        within(&fields, Vec::new())
    };
    // Attributes of functions hold graphs, so that these are one level down already.
    let places: [(&str, &[u64], usize); 6] = [
        ("main graph", &[MODEL_GRAPH], 0),
        ("GRAPHS", &[MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_GRAPHS], 1),
        ("function node", &[MODEL_FUNCTION, FUNCTION_NODE, NODE_ATTRIBUTE, ATTRIBUTE_GRAPH], 1),
        ("function default", &[MODEL_FUNCTION, FUNCTION_DEFAULT, ATTRIBUTE_GRAPH], 1),
        ("training start", &[MODEL_TRAINING, TRAINING_INITIALIZATION], 0),
        ("training step", &[MODEL_TRAINING, TRAINING_ALGORITHM], 0),
    ];
    for (place, fields, above) in places {
        let model = |levels| [bytes(MODEL_GRAPH, []), within(fields, deep(levels - above))].concat();
        assert!(read(&model(3), limits).is_ok(), "{place}");
        let error = read(&model(4), limits).unwrap_err();
        assert!(matches!(error, Error::TooDeep { limit: 3 }), "{place}: {error:?}");
    }
}

#[test]
fn many_empty_nodes() {
    const NODES: usize = 100_000;
    let empty_node = bytes(GRAPH_NODE, []);
    assert_eq!(empty_node.len(), 2);
    let model = bytes(MODEL_GRAPH, empty_node.repeat(NODES));
    let limits = ReadLimits { max_list_memory: 1 << 20, ..ReadLimits::default() };
    let error = read(&model, limits).unwrap_err();
    assert!(matches!(error, Error::NotOnnx { .. }), "{error:?}");
    // An honest model of that size is not refused.
    assert_eq!(Model::from_bytes(model).unwrap().node_count(), NODES);
    // The default limit holds as well: 6 MB of file would be more than 256 MiB of nodes.
    assert!(Model::from_bytes(bytes(MODEL_GRAPH, empty_node.repeat(3_000_000))).is_err());
}
