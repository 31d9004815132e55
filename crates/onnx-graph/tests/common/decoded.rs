//! A model as the lines of text that `fixtures/fp16/golden.py` writes of one.
#![allow(dead_code, clippy::ref_option)] // every test file uses its own part; protobuf fields are options

use std::fmt::Write;

use buffa::Message;
use onnx_graph::{ElementType, Model};
use sha2::{Digest, Sha256};

#[allow(missing_docs, missing_debug_implementations, unreachable_pub, unused, unused_qualifications, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
#[path = "../../src/proto/onnx.rs"]
pub(crate) mod proto;

use proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, type_proto};

/// What a file with this model would say.
pub(crate) fn decoded(model: &Model) -> ModelProto {
    ModelProto::decode(&mut model.to_bytes().unwrap().as_slice()).unwrap()
}

/// The lines, sorted.
pub(crate) fn lines(model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    graph_lines(&decoded(model).graph, "", &mut lines);
    lines.sort();
    lines
}

fn graph_lines(graph: &GraphProto, path: &str, lines: &mut Vec<String>) {
    for (which, ports) in [("input", &graph.input), ("output", &graph.output)] {
        let port =
            |p: &ValueInfoProto| format!("{path}{which} {} {}", text(&p.name), type_name(elem_type(p)));
        lines.extend(ports.iter().map(port));
    }
    lines.extend(graph.initializer.iter().map(|t| format!("{path}weight {} {}", text(&t.name), tensor(t))));
    for node in &graph.node {
        let mut attributes: Vec<String> = node.attribute.iter().map(attribute).collect();
        attributes.sort();
        let (op, name) = (text(&node.op_type), text(&node.name));
        let (inputs, outputs) = (node.input.join(","), node.output.join(","));
        let line = format!("{path}{op} {name}: {inputs} -> {outputs} {}", attributes.join(" "));
        lines.push(line.trim().to_owned());
        for a in &node.attribute {
            if let Some(inner) = a.g.as_option() {
                graph_lines(inner, &format!("{path}{name}.{}/", text(&a.name)), lines);
            }
        }
    }
}

/// Every node whose input is given by a later node, or by none: the order that ONNX asks for is broken there.
pub(crate) fn disorder(graph: &GraphProto, around: &[String]) -> Vec<String> {
    let mut known = around.to_vec();
    known.extend(graph.input.iter().map(|p| text(&p.name).to_owned()));
    known.extend(graph.initializer.iter().map(|t| text(&t.name).to_owned()));
    let mut found = Vec::new();
    for node in &graph.node {
        let early = node.input.iter().filter(|i| !i.is_empty() && !known.contains(i));
        found.extend(early.map(|input| format!("{} reads {input}", text(&node.name))));
        for inner in node.attribute.iter().filter_map(|a| a.g.as_option()) {
            found.extend(disorder(inner, &known));
        }
        known.extend(node.output.iter().cloned());
    }
    let outputs = graph.output.iter().map(|p| text(&p.name).to_owned());
    found.extend(outputs.filter(|o| !known.contains(o)).map(|o| format!("nobody gives {o}")));
    found
}

pub(crate) fn initializer<'m>(model: &'m ModelProto, name: &str) -> Option<&'m TensorProto> {
    model.graph.initializer.iter().find(|t| text(&t.name) == name)
}

pub(crate) fn node<'m>(model: &'m ModelProto, name: &str) -> Option<&'m NodeProto> {
    model.graph.node.iter().find(|n| text(&n.name) == name)
}

/// A tensor's elements, which must be in its raw data.
pub(crate) fn raw(tensor: &TensorProto) -> &[u8] {
    tensor.raw_data.as_ref().map_or(&[], |raw| raw)
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn attribute(a: &AttributeProto) -> String {
    let name = text(&a.name);
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    match a.r#type {
        Some(1) => format!("{name}={:08x}", a.f.unwrap().to_bits()),
        Some(2) => format!("{name}={}", a.i.unwrap_or_default()),
        Some(3) => format!("{name}={}", str::from_utf8(a.s.as_ref().unwrap()).unwrap()),
        Some(4) => format!("{name}={}", tensor(&a.t)),
        Some(5) => format!("{name}=graph"),
        Some(6) => format!("{name}=floats"),
        Some(7) => format!("{name}=[{}]", list(&a.ints)),
        other => panic!("an attribute of type {other:?}"),
    }
}

fn tensor(t: &TensorProto) -> String {
    let dims = t.dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let digest = sha256(&elements(t));
    let digest = &digest[..16];
    format!("{}[{dims}] {digest}", type_name(t.data_type.unwrap_or_default()))
}

/// A tensor's elements as bytes, from the fields that the fixtures use.
fn elements(t: &TensorProto) -> Vec<u8> {
    if let Some(raw) = t.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
        return raw.to_vec();
    }
    let floats = t.float_data.iter().flat_map(|v| v.to_le_bytes());
    let halves = t.int32_data.iter().flat_map(|&v| (v as u16).to_le_bytes());
    floats.chain(halves).collect()
}

fn type_name(number: i32) -> String {
    match ElementType::from_onnx(number) {
        ElementType::Float32 => "FLOAT".to_owned(),
        ElementType::Float64 => "DOUBLE".to_owned(),
        other => other.to_string().to_uppercase(),
    }
}

pub(crate) fn elem_type(port: &ValueInfoProto) -> i32 {
    match port.r#type.as_option().and_then(|t| t.value.as_ref()) {
        Some(type_proto::Value::TensorType(tensor)) => tensor.elem_type.unwrap_or_default(),
        _ => 0,
    }
}

pub(crate) fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}
