//! Where half and single precision meet.

use std::collections::HashMap;

use super::{
    compute::{Converter, cast_node},
    frame,
    names::rename_captured,
};
use crate::{
    ElementType::{self, Float16, Float32},
    Error, Result,
    builder::value_info,
    model::port_name,
    nodes::Node,
    proto::NodeProto,
    tensors::sub_graphs,
    walk::captured_by,
};

/// The precision in which a node reads a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Half,
    /// Single, if it is a float at all.
    Single,
    /// Single, by the operator's definition.
    SurelySingle,
}

impl<'m> Converter<'m> {
    /// A node that stays in single precision, with what is in it.
    pub(super) fn fenced_node(&mut self, node: &'m NodeProto) -> Result<()> {
        let mut new = node.clone();
        for input in &mut new.input {
            *input = self.read(input, Need::Single, Some(node))?;
        }
        let mut names = HashMap::new();
        for captured in node.attribute.iter().flat_map(sub_graphs).flat_map(captured_by) {
            // A port is there in single precision.
            if !self.is_kept_input(captured) {
                names.insert(captured, self.read(captured, Need::Single, Some(node))?);
            }
        }
        rename_captured(&mut new, &names);
        let depth = self.frames.len().saturating_sub(1);
        let mut casts = Vec::new();
        for output in new.output.iter_mut().filter(|o| !o.is_empty()) {
            let half = self.read(output, Need::Half, Some(node))?;
            let found = self.type_of(depth, output)?.ok_or_else(|| untyped(output, node))?;
            if found != Float32 {
                *output = half;
                continue;
            }
            let single = self.names.fresh(&format!("{half}_cast_to_fp16"));
            self.record(depth, output, &single, Float32)?;
            casts.push(cast_node(&format!("{half}_cast_to_fp16_node"), &single, &half, Float16));
            *output = single;
        }
        self.push(new);
        self.report.casts_added += casts.len();
        for cast in casts {
            self.push(cast);
        }
        Ok(())
    }

    /// The name by which a value is read in the precision that is needed; a `Cast` is put in where there is none yet, in
    /// the graph that defines the value.
    pub(super) fn read(&mut self, value: &str, need: Need, node: Option<&NodeProto>) -> Result<String> {
        let Some(depth) = self.frames.iter().rposition(|frame| frame.defines(value)) else {
            return Ok(value.to_owned());
        };
        let home = self.frames.get(depth).and_then(|frame| frame.home(value)).unwrap_or_default();
        let as_it_is = home.half.clone().or_else(|| home.single.clone()).unwrap_or_else(|| value.to_owned());
        let (found, other, element, suffix) = match need {
            Need::Half => (home.half, home.single, Float16, "_cast_to_fp16"),
            Need::Single | Need::SurelySingle => (home.single, home.half, Float32, "_cast_to_fp32"),
        };
        if let Some(name) = found {
            return Ok(name);
        }
        if need != Need::Half {
            match self.type_of(depth, value)? {
                Some(Float32) => {}
                None if need == Need::SurelySingle => {}
                Some(_) => return Ok(as_it_is),
                None => {
                    return node.map_or(Ok(as_it_is), |node| Err(untyped(value, node)));
                }
            }
        }
        let from = other.unwrap_or_else(|| value.to_owned());
        let name = self.names.fresh(&format!("{from}{suffix}"));
        self.record(depth, value, &name, element)?;
        self.report.casts_added += 1;
        if let Some(frame) = self.frames.get_mut(depth) {
            frame.push(cast_node(&format!("{from}{suffix}_node"), &from, &name, element));
            frame.set(value, element, &name);
        }
        Ok(name)
    }

    fn is_kept_input(&self, value: &str) -> bool {
        let nearest = self.frames.iter().rposition(|frame| frame.defines(value));
        self.keep_io
            && nearest == Some(0)
            && self.model.graph().input.iter().any(|input| port_name(input) == value)
    }

    /// The element type that a value has in the model as it was.
    fn type_of(&mut self, depth: usize, value: &str) -> Result<Option<ElementType>> {
        let found = frame::type_of(&mut self.frames, depth, value, self.model, self.weights)?;
        Ok(found.map(|t| t.element_type).filter(|&t| t != ElementType::Undefined))
    }

    /// Records the type of a value that a `Cast` gives or takes in place of `like`.
    fn record(&mut self, depth: usize, like: &str, name: &str, element: ElementType) -> Result<()> {
        let found = frame::type_of(&mut self.frames, depth, like, self.model, self.weights)?;
        if let (Some(found), Some(frame)) = (found, self.frames.get_mut(depth)) {
            frame.values.push(value_info(name, element, found.shape));
        }
        Ok(())
    }
}

fn untyped(value: &str, node: &NodeProto) -> Error {
    let read = Node::new(node);
    let (node, op_type) = (read.name().to_owned(), read.op_type().to_owned());
    Error::UntypedValue { value: value.to_owned(), node, op_type }
}
