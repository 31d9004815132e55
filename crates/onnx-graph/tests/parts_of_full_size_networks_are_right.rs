//! Parts told from structure agree with what an exporter's names say, on full-size graphs that the caller has.
//!
//! `ONNX_GRAPH_FULL_SIZE` names a folder with one folder for each pair (`encoder.onnx`, `decoder.onnx`), as an export of the
//! SAM 2 and EdgeTAM code writes them. Run with `cargo test -p onnx-graph --test parts_of_full -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use onnx_graph::{Model, Node, Part, Types, Weights, parts};

/// What the name of a module in the exported code says.
fn by_name(name: &str) -> Option<Part> {
    use Part::{
        BackboneStage, FinalAttention, Glue, MaskHeads, Neck, Normalisation, PatchEmbedding, PromptEncoder,
        QualityHead, TransformerLayer, Upscaler,
    };
    let number = |after: &str| -> Option<usize> {
        let rest = name.split(after).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    if name.contains("trunk") && name.contains("patch_embed")
        || name.contains("/stem/")
        || name.contains("pos_embed")
    {
        return Some(PatchEmbedding);
    }
    if name.contains("trunk/blocks.") || name.contains("trunk.blocks.") {
        let block = number("blocks.")?;
        // The tiny backbone has 1, 2, 7 and 2 blocks.
        return Some(BackboneStage([1, 3, 10, 12].iter().position(|&end| block < end)? as u8 + 1));
    }
    if name.contains("body/stages_") {
        return Some(BackboneStage(number("stages_")? as u8 + 1));
    }
    if let Some(rest) = name.strip_prefix("/image_encoder/trunk/Transpose") {
        // One for each feature; where the positions are not folded, the first one is theirs.
        let at: usize = rest.trim_start_matches('_').split(['/', '_']).next()?.parse().unwrap_or(0);
        return Some(BackboneStage(at as u8 + 1));
    }
    if name.starts_with("/image_encoder/trunk/") {
        return Some(PatchEmbedding);
    }
    let table: &[(&str, Part)] = &[
        ("neck", Neck),
        ("conv_s", Neck),
        ("sam_prompt_encoder", PromptEncoder),
        ("transformer/layers.0", TransformerLayer(1)),
        ("transformer.layers.0", TransformerLayer(1)),
        ("transformer/layers.1", TransformerLayer(2)),
        ("transformer.layers.1", TransformerLayer(2)),
        ("final_attn", FinalAttention),
        ("/decoder/transformer/Add", FinalAttention),
        ("/decoder/transformer/", Glue),
        ("output_upscaling", Upscaler),
        ("output_hypernetworks", MaskHeads),
        ("iou_prediction_head", QualityHead),
    ];
    if let Some((_, part)) = table.iter().find(|(text, _)| name.contains(text)) {
        return Some(*part);
    }
    // Nodes of the exporter's outermost modules, by what they do there.
    let outer: &[(&str, Part)] = &[
        ("/Sub", Normalisation),
        ("/Div", Normalisation),
        ("/Add", Neck),
        ("/decoder/Concat", Glue),
        ("/decoder/Add", Glue),
        ("/decoder/Transpose", Upscaler),
        ("/decoder/Reshape_1", Upscaler),
        ("/decoder/Add_1", Upscaler),
        ("/decoder/Add_2", Upscaler),
        ("/decoder/Reshape_2", Upscaler),
        ("/decoder/Gather", QualityHead),
        ("/decoder/Slice_4", QualityHead),
    ];
    if let Some((_, part)) = outer.iter().find(|(text, _)| name == *text) {
        return Some(*part);
    }
    if name.starts_with("/decoder/") {
        return Some(MaskHeads);
    }
    name.starts_with('/').then_some(PromptEncoder)
}

/// What an exporter's names say of each node: its own name; where fusing took that away, its weights', its results', or its
/// user's.
fn truth(nodes: &[Node<'_>], plain_positions: bool) -> Vec<Part> {
    let mut users: HashMap<&str, usize> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        // A value that two modules share is the first one's.
        node.inputs().for_each(|input| _ = users.entry(input).or_insert(at));
    }
    let shifted = |name: &str| {
        if plain_positions && name == "/image_encoder/trunk/Transpose" {
            return Some(Part::PatchEmbedding);
        }
        let part = by_name(name)?;
        match part {
            Part::BackboneStage(stage)
                if plain_positions && name.starts_with("/image_encoder/trunk/Transpose_") =>
            {
                Some(Part::BackboneStage(stage - 1))
            }
            part => Some(part),
        }
    };
    let value =
        |name: &str| shifted(name.split("_output_").next().unwrap()).filter(|_| name.starts_with('/'));
    let weight = |name: &str| by_name(name).filter(|_| !name.starts_with('/'));
    let mut found: Vec<Option<Part>> = nodes
        .iter()
        .map(|node| {
            shifted(node.name())
                .or_else(|| node.inputs().find_map(weight))
                .or_else(|| node.outputs().find_map(value))
        })
        .collect();
    for at in (0..nodes.len()).rev() {
        if found[at].is_none() {
            let user = nodes[at].outputs().find_map(|output| users.get(output));
            found[at] = user.and_then(|&user| found[user]);
        }
    }
    found
        .into_iter()
        .enumerate()
        .map(|(at, part)| part.unwrap_or_else(|| panic!("{:?}", nodes[at].name())))
        .collect()
}

#[test]
#[ignore = "needs full-size graphs, see above"]
fn full_size_networks() {
    let root = PathBuf::from(std::env::var_os("ONNX_GRAPH_FULL_SIZE").expect("ONNX_GRAPH_FULL_SIZE"));
    let mut graphs: Vec<PathBuf> = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        graphs.extend(
            ["encoder.onnx", "decoder.onnx"].map(|g| folder.join(g)).into_iter().filter(|g| g.is_file()),
        );
    }
    graphs.sort();
    assert!(!graphs.is_empty());
    let mut failed = Vec::new();
    for path in &graphs {
        let model = Model::read(path).unwrap();
        let types = Types::infer(&model, &Weights::in_folder(path.parent().unwrap())).unwrap();
        let found = parts(&model, &types);
        let nodes = model.nodes();
        let tile = nodes.iter().any(|n| n.name() == "/image_encoder/trunk/Tile");
        let expected = truth(&nodes, tile);
        let mut confusion: BTreeMap<(Part, Option<Part>), Vec<String>> = BTreeMap::new();
        for (at, &expected) in expected.iter().enumerate() {
            let entry = confusion.entry((expected, found.of(at))).or_default();
            entry.push(format!("{} {}", nodes[at].op_type(), nodes[at].name()));
        }
        let right: usize = confusion.iter().filter(|((a, b), _)| Some(*a) == *b).map(|(_, n)| n.len()).sum();
        let unassigned = found.unassigned().len();
        println!(
            "{}: {} nodes, {right} right ({:.2} %), {unassigned} unassigned",
            path.display(),
            nodes.len(),
            right as f64 * 100.0 / nodes.len() as f64
        );
        for ((expected, found), nodes) in &confusion {
            let found = found.map_or_else(|| "unassigned".to_owned(), |part| part.to_string());
            let mark = if found == expected.to_string() { ' ' } else { '*' };
            println!("  {mark} {expected:<22} {found:<22} {:>5}", nodes.len());
            if mark == '*' {
                nodes.iter().take(4).for_each(|node| println!("        {node}"));
            }
        }
        if (right as f64) < 0.98 * nodes.len() as f64 {
            failed.push(path);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
