//! What a rule asks of a node, and whether it holds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::places::Place;
use crate::{Dim, ElementType, ValueType, attributes, proto::AttributeProto};

/// What a rule asks of a node; empty: nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Conditions {
    /// Element types of values; the keys are `input 0`, `output 1`, or `inputs` and `outputs` for each of them.
    types: BTreeMap<Slot, Vec<TypeName>>,
    /// Numbers of dims of values.
    ranks: BTreeMap<Slot, Vec<usize>>,
    /// Inputs that have to be weights, where they are given.
    constant: Vec<usize>,
    /// Inputs that must not be given.
    without: Vec<usize>,
    /// Values of attributes: those allowed (null: left out), or, under `not`, those that are not.
    attributes: BTreeMap<String, Values>,
    /// Outputs that may be used.
    outputs_at_most: Option<usize>,
    /// All dims of inputs and outputs have to be fixed.
    static_shapes: bool,
    /// No dim of an input or output may be larger.
    largest_dim: Option<u64>,
    /// The attribute `axis` has to be the last dim of the first input.
    last_axis: bool,
}

/// A place of values on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
enum Slot {
    Input(usize),
    Output(usize),
    Inputs,
    Outputs,
}

impl TryFrom<String> for Slot {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = |n: &str| n.parse().map_err(|_| format!("`{text}` does not end in a number"));
        match text.split_once(' ') {
            Some(("input", n)) => Ok(Self::Input(number(n)?)),
            Some(("output", n)) => Ok(Self::Output(number(n)?)),
            _ if text == "inputs" => Ok(Self::Inputs),
            _ if text == "outputs" => Ok(Self::Outputs),
            _ => Err(format!("`{text}` is neither `inputs`, `outputs`, `input N` nor `output N`")),
        }
    }
}

/// An element type, or the name of a list of them that the file defines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
enum TypeName {
    One(ElementType),
    List(String),
}

impl From<String> for TypeName {
    fn from(text: String) -> Self {
        match element_type(&text) {
            Some(element) => Self::One(element),
            None => Self::List(text),
        }
    }
}

fn element_type(text: &str) -> Option<ElementType> {
    // The numbers of `TensorProto.DataType` are few.
    (0..64).map(ElementType::from_onnx).find(|e| !matches!(e, ElementType::Other(_)) && e.to_string() == text)
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Value {
    LeftOut(()),
    Int(i64),
    Text(String),
    Ints(Vec<i64>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Values {
    Allowed(Vec<Value>),
    Forbidden { not: Vec<Value> },
}

/// Whether a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    /// With what stands against it.
    No(String),
    /// With what would have to be known.
    Unknown(String),
}

impl Conditions {
    /// Replaces names of lists by what they stand for.
    pub(super) fn resolve(&mut self, lists: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
        for names in self.types.values_mut() {
            let mut all = Vec::new();
            for name in names.drain(..) {
                match name {
                    TypeName::One(_) => all.push(name),
                    TypeName::List(list) => {
                        let members = lists
                            .get(&list)
                            .ok_or_else(|| format!("`{list}` is no element type and no list"))?;
                        for member in members {
                            let element = element_type(member);
                            all.push(TypeName::One(
                                element.ok_or_else(|| format!("`{member}` is no element type"))?,
                            ));
                        }
                    }
                }
            }
            *names = all;
        }
        Ok(())
    }

    /// Checks one after the other; what fails counts before what is not known.
    pub(super) fn check(&self, place: &Place<'_>) -> Holds {
        let mut open = None;
        let checks = [
            self.check_attributes(place),
            self.check_inputs(place),
            self.check_outputs(place),
            self.check_types(place),
            self.check_ranks(place),
            self.check_dims(place),
            self.check_axis(place),
        ];
        for found in checks {
            match found {
                Holds::Yes => {}
                Holds::No(_) => return found,
                Holds::Unknown(what) => _ = open.get_or_insert(what),
            }
        }
        open.map_or(Holds::Yes, Holds::Unknown)
    }

    fn check_attributes(&self, place: &Place<'_>) -> Holds {
        for (name, values) in &self.attributes {
            let found = attributes::find(place.node, name);
            if found.is_some_and(|a| a.ref_attr_name.as_deref().is_some_and(|r| !r.is_empty())) {
                return Holds::Unknown(format!("attribute {name} is the function's caller's"));
            }
            let (values, wanted) = match values {
                Values::Allowed(values) => (values, true),
                Values::Forbidden { not } => (not, false),
            };
            if values.iter().any(|value| value.is(found)) != wanted {
                return Holds::No(
                    found.map_or_else(
                        || format!("{name} is not given"),
                        |a| format!("{name} is {}", write(a)),
                    ),
                );
            }
        }
        Holds::Yes
    }

    fn check_inputs(&self, place: &Place<'_>) -> Holds {
        for &at in &self.constant {
            if place.input(at).is_some_and(|name| !place.is_constant(name)) {
                return Holds::No(format!("input {at} is not a weight"));
            }
        }
        match self.without.iter().find(|&&at| place.input(at).is_some()) {
            Some(at) => Holds::No(format!("input {at} is given")),
            None => Holds::Yes,
        }
    }

    fn check_outputs(&self, place: &Place<'_>) -> Holds {
        let used = place.node.output.iter().filter(|output| !output.is_empty()).count();
        match self.outputs_at_most {
            Some(most) if used > most => Holds::No(format!("{used} outputs are used")),
            _ => Holds::Yes,
        }
    }

    fn check_types(&self, place: &Place<'_>) -> Holds {
        for (slot, allowed) in &self.types {
            for (name, value) in values(place, *slot) {
                let element = value.map_or(ElementType::Undefined, |v| v.element_type);
                if element == ElementType::Undefined {
                    return Holds::Unknown(format!("the element type of {name} is not known"));
                }
                if !allowed.contains(&TypeName::One(element)) {
                    return Holds::No(format!("{name} is {element}"));
                }
            }
        }
        Holds::Yes
    }

    fn check_ranks(&self, place: &Place<'_>) -> Holds {
        for (slot, allowed) in &self.ranks {
            for (name, value) in values(place, *slot) {
                match value.and_then(|v| v.shape.as_ref()) {
                    None => return Holds::Unknown(format!("the shape of {name} is not known")),
                    Some(dims) if !allowed.contains(&dims.len()) => {
                        return Holds::No(format!("{name} has {} dims", dims.len()));
                    }
                    Some(_) => {}
                }
            }
        }
        Holds::Yes
    }

    fn check_dims(&self, place: &Place<'_>) -> Holds {
        if !self.static_shapes && self.largest_dim.is_none() {
            return Holds::Yes;
        }
        let mut open = Holds::Yes;
        for (name, value) in values(place, Slot::Inputs).into_iter().chain(values(place, Slot::Outputs)) {
            let Some(dims) = value.and_then(|v| v.shape.as_ref()) else {
                open = Holds::Unknown(format!("the shape of {name} is not known"));
                continue;
            };
            for dim in dims {
                match (dim, self.largest_dim) {
                    (Dim::Static(size), Some(largest)) if *size > largest => {
                        return Holds::No(format!("{name} has a dim of {size}"));
                    }
                    (Dim::Symbolic(_), _) if self.static_shapes => {
                        return Holds::No(format!("{name} has an open dim"));
                    }
                    (Dim::Static(_), _) => {}
                    _ => open = Holds::Unknown(format!("the shape of {name} is not known")),
                }
            }
        }
        open
    }

    fn check_axis(&self, place: &Place<'_>) -> Holds {
        if !self.last_axis {
            return Holds::Yes;
        }
        let axis = attributes::int(place.node, "axis").unwrap_or(-1);
        let rank =
            place.input(0).and_then(|name| place.value(name)).and_then(|v| v.shape.as_ref()).map(Vec::len);
        match rank {
            _ if axis == -1 => Holds::Yes,
            Some(rank) if usize::try_from(axis).is_ok_and(|axis| axis + 1 == rank) => Holds::Yes,
            Some(_) => Holds::No(format!("axis {axis} is not the last")),
            None => Holds::Unknown("the shape of input 0 is not known".to_owned()),
        }
    }
}

/// The values at a place, as far as they are given, with words for them.
fn values<'p>(place: &'p Place<'_>, slot: Slot) -> Vec<(String, Option<&'p ValueType>)> {
    let (names, what, only) = match slot {
        Slot::Input(at) => (&place.node.input, "input", Some(at)),
        Slot::Output(at) => (&place.node.output, "output", Some(at)),
        Slot::Inputs => (&place.node.input, "input", None),
        Slot::Outputs => (&place.node.output, "output", None),
    };
    let given =
        names.iter().enumerate().filter(|(at, name)| !name.is_empty() && only.is_none_or(|only| only == *at));
    given.map(|(at, name)| (format!("{what} {at}"), place.value(name))).collect()
}

impl Value {
    fn is(&self, found: Option<&AttributeProto>) -> bool {
        match (self, found) {
            (Self::LeftOut(()), None) => true,
            (Self::Int(value), Some(found)) => found.i == Some(*value),
            (Self::Text(value), Some(found)) => {
                found.s.as_ref().is_some_and(|s| s.as_ref() == value.as_bytes())
            }
            (Self::Ints(values), Some(found)) => {
                found.i.is_none() && found.s.is_none() && found.ints == *values
            }
            _ => false,
        }
    }
}

/// An attribute's value in short.
fn write(attribute: &AttributeProto) -> String {
    if let Some(value) = attribute.i {
        return value.to_string();
    }
    match &attribute.s {
        Some(text) => String::from_utf8_lossy(text.as_ref().get(..40).unwrap_or(text)).into_owned(),
        None => format!("{:?}", attribute.ints.get(..8).unwrap_or(&attribute.ints)),
    }
}
