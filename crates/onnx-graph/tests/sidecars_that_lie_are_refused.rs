//! XD2, XD4, XD+, X2, X3: a location that leaves, a range that is not there, numbers that are none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{graph, write};
use onnx_graph::{
    Attribute,
    ElementType::{self, Float32, Int4, String, Uint2},
    Error, ExternalDataRule as Rule, Model, Result, Weight, external_data,
};

fn model(element_type: ElementType, dims: &[u64], entries: &[(&str, &str)]) -> Model {
    graph(&[]).weight("w", Weight::external(element_type, dims.iter().copied(), entries)).build()
}

fn rule_of<T: std::fmt::Debug>(result: Result<T>) -> Rule {
    match result.unwrap_err() {
        Error::ExternalData { tensor, rule, .. } if tensor == "w" || tensor.is_empty() => rule,
        other => panic!("{other:?}"),
    }
}

/// What `list` says of one tensor of four floats.
fn listed(entries: &[(&str, &str)]) -> Rule {
    rule_of(external_data::list(&model(Float32, &[4], entries), "model.onnx".as_ref()))
}

#[test]
fn locations_that_leave_the_folder() {
    for location in [
        "../weights.data",
        "a/../../weights.data",
        "a/../weights.data", // stays, but no exporter writes it and links could make it leave
        "..",
        "..\\weights.data",
        "a\\..\\weights.data",
        "/etc/passwd",
        "//server/share/weights.data",
        "\\\\server\\share\\weights.data",
        "C:\\weights.data",
        "C:weights.data",
        "a/b:stream",
        "weights\0.data",
    ] {
        assert_eq!(listed(&[("location", location)]), Rule::Unsafe, "{location:?}");
    }
    let attribute = Attribute::Tensor(Weight::external(Float32, [1], &[("location", "../attribute.data")]));
    let model = graph(&[]).node_with("Constant", [], ["c"], [("value", attribute)]).build();
    assert_eq!(rule_of(external_data::list(&model, "model.onnx".as_ref())), Rule::Unsafe);
}

#[test]
fn no_location() {
    assert_eq!(listed(&[]), Rule::NoLocation);
    assert_eq!(listed(&[("location", "")]), Rule::NoLocation);
}

/// ONNX's own reader takes the last, ONNX Runtime refuses some and takes others.
#[test]
fn repeated_keys_are_refused() {
    for twice in [
        [("location", "w.data"), ("location", "w.data")],
        [("location", "w.data"), ("location", "../w.data")],
        [("location", "w.data"), ("location", "")],
    ] {
        assert_eq!(listed(&twice), Rule::RepeatedKey { key: "location".to_owned() });
    }
    for key in ["offset", "length", "checksum"] {
        assert_eq!(
            listed(&[("location", "w.data"), (key, "0"), (key, "16")]),
            Rule::RepeatedKey { key: key.to_owned() }
        );
    }
}

#[test]
fn numbers_that_are_none() {
    for key in ["offset", "length"] {
        for value in ["abc", "-16", "", "1e3", "16.0", "18446744073709551616"] {
            let expected = Rule::BadNumber { key, value: value.to_owned() };
            assert_eq!(listed(&[("location", "w.data"), (key, value)]), expected);
        }
    }
}

#[test]
fn a_length_that_contradicts_the_dims() {
    for found in [0, 15, 17] {
        let rule = listed(&[("location", "w.data"), ("length", &found.to_string())]);
        assert_eq!(rule, Rule::WrongLength { expected: 16, found });
    }
}

#[test]
fn elements_below_a_byte_are_packed() {
    for (element_type, dims, bytes) in
        [(Int4, &[3][..], 2), (Int4, &[3, 3], 5), (Uint2, &[5], 2), (Float32, &[], 4), (Float32, &[0, 7], 0)]
    {
        let model = model(element_type, dims, &[("location", "w.data")]);
        let list = external_data::list(&model, "model.onnx".as_ref()).unwrap();
        assert_eq!(list[0].length, bytes, "{element_type} {dims:?}");
    }
}

#[test]
fn sizes_that_no_tensor_has() {
    let rule = |element_type, dims: &[u64]| {
        let model = model(element_type, dims, &[("location", "w.data")]);
        rule_of(external_data::list(&model, "model.onnx".as_ref()))
    };
    let dims = [1 << 40, 1 << 40];
    assert_eq!(rule(Float32, &dims), Rule::BadDims { dims: dims.map(|d| d as i64).to_vec() });
    assert_eq!(rule(String, &[1]), Rule::BadType { element_type: "string".into() });
    assert_eq!(rule(ElementType::Other(99), &[1]), Rule::BadType { element_type: "type 99".into() });
    let negative = common::external_tensor("w", "w.data");
    let negative = [common::number(common::field::TENSOR_DIM, (-5_i64) as u64), negative].concat();
    let fields = [common::field::MODEL_GRAPH, common::field::GRAPH_INITIALIZER];
    let model = Model::from_bytes(common::within(&fields, negative)).unwrap();
    let rule = rule_of(external_data::list(&model, "model.onnx".as_ref()));
    assert_eq!(rule, Rule::BadDims { dims: vec![-5, 1] });
}

/// Writes `bundle/model.onnx` with one tensor of four floats, and checks it with `bundle` as the root.
fn verified(folder: &Path, entries: &[(&str, &str)]) -> Result<usize> {
    let bundle = folder.join("bundle");
    let path = write(&bundle, "model.onnx", model(Float32, &[4], entries).to_bytes().unwrap());
    external_data::verify(&path, &bundle).map(|files| files.len())
}

#[test]
fn a_file_that_is_too_short() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "bundle/w.data", [0; 24]);
    for offset in ["0", "8"] {
        assert_eq!(verified(folder.path(), &[("location", "w.data"), ("offset", offset)]).unwrap(), 1);
    }
    let huge = u64::MAX;
    for (offset, end) in [(9, 25), (24, 40), (huge, huge)] {
        let text = offset.to_string();
        let rule = rule_of(verified(folder.path(), &[("location", "w.data"), ("offset", &text)]));
        assert_eq!(rule, Rule::TooShort { offset, end, file: 24 });
    }
}

#[test]
fn a_location_that_is_no_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("bundle/sub")).unwrap();
    for (location, rule) in [
        ("missing.data", Rule::Missing),
        ("sub", Rule::Missing),
        (".", Rule::Missing),
        ("model.onnx", Rule::IsTheModel),
        ("sub/.././model.onnx", Rule::Unsafe),
        ("./model.onnx", Rule::IsTheModel),
    ] {
        assert_eq!(rule_of(verified(folder.path(), &[("location", location)])), rule, "{location}");
    }
}

/// A link may stand for a file of the bundle, not for one outside of it.
#[cfg(unix)]
#[test]
fn links_stay_inside() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let outside = write(folder.path(), "blobs/abc", [0; 16]);
    write(folder.path(), "bundle/real.data", [0; 16]);
    let bundle = folder.path().join("bundle");
    symlink("real.data", bundle.join("inside.data")).unwrap();
    symlink(&outside, bundle.join("outside.data")).unwrap();
    symlink("../blobs", bundle.join("linked")).unwrap();
    symlink("gone", bundle.join("broken.data")).unwrap();
    symlink("loop.data", bundle.join("loop.data")).unwrap();
    symlink("model.onnx", bundle.join("model.data")).unwrap();

    assert_eq!(verified(folder.path(), &[("location", "inside.data")]).unwrap(), 1);
    for (location, rule) in [
        ("outside.data", Rule::Escapes),
        ("linked/abc", Rule::Escapes),
        ("broken.data", Rule::Missing),
        ("loop.data", Rule::Missing),
        ("model.data", Rule::IsTheModel),
    ] {
        assert_eq!(rule_of(verified(folder.path(), &[("location", location)])), rule, "{location}");
    }
    // A folder whose name begins with the root's is not inside of it.
    write(folder.path(), "bundle2/w.data", [0; 16]);
    symlink("../bundle2/w.data", bundle.join("neighbour.data")).unwrap();
    assert_eq!(rule_of(verified(folder.path(), &[("location", "neighbour.data")])), Rule::Escapes);
    // With the root that holds both, the same link is fine.
    let model = bundle.join("model.onnx");
    assert_eq!(external_data::verify(&model, folder.path()).unwrap().len(), 1);
}

/// X4: in a hub's snapshot graph and sidecar are links to blobs that lie beside each other, outside of the snapshot.
#[cfg(unix)]
#[test]
fn a_snapshot_of_links_is_accepted() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        verified(folder.path(), &[("location", "none.data")]).unwrap_err().to_string().lines().count(),
        1
    );
    let snapshot = folder.path().join("snapshots/1");
    let blob =
        write(folder.path(), "blobs/graph", std::fs::read(folder.path().join("bundle/model.onnx")).unwrap());
    let weights = write(folder.path(), "blobs/weights", [0; 16]);
    std::fs::create_dir_all(&snapshot).unwrap();
    symlink(&blob, snapshot.join("model.onnx")).unwrap();
    symlink(&weights, snapshot.join("none.data")).unwrap();
    let found = external_data::verify(&snapshot.join("model.onnx"), &snapshot).unwrap();
    assert_eq!(found, [weights.canonicalize().unwrap()]);
    // A link of the snapshot to anywhere else is still an escape.
    let elsewhere = write(folder.path(), "secret", [0; 16]);
    std::fs::remove_file(snapshot.join("none.data")).unwrap();
    symlink(&elsewhere, snapshot.join("none.data")).unwrap();
    assert_eq!(
        rule_of(external_data::verify(&snapshot.join("model.onnx"), &snapshot).map(|f| f.len())),
        Rule::Escapes
    );
}

#[test]
fn the_error_says_which_tensor_of_which_model() {
    let folder = tempfile::tempdir().unwrap();
    let error = verified(folder.path(), &[("location", "w.data")]).unwrap_err();
    let path = folder.path().join("bundle/model.onnx");
    assert_eq!(
        error.to_string(),
        format!("{}: external data of tensor `w` at `w.data`: no such file", path.display())
    );
}
