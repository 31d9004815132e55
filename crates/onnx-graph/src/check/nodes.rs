//! One node against its operator: how many values, which attributes, which element types.

use std::collections::{HashMap, HashSet};

use super::{
    Checker,
    finding::{At, Rule, short},
    operators::{self, Count, NEWEST_OPSET, Operator, Parameter},
};
use crate::{
    ElementType,
    nodes::domain_of,
    proto::{AttributeProto, NodeProto},
};

/// Element types of a node's inputs, as far as they are known; an input that is left out has none.
pub(super) type Known = Vec<Option<ElementType>>;

impl<'m> Checker<'m> {
    /// Checks a node and gives the element types of its outputs, as far as they follow.
    pub(super) fn node(&mut self, node: &'m NodeProto, inputs: &Known, at: At<'_>) -> Known {
        let unknown = vec![None; node.output.len()];
        self.attributes(node, at);
        let op_type = node.op_type.as_deref().unwrap_or_default();
        if op_type.is_empty() {
            self.findings.error(Rule::Operator, at, || "the node has no operator".to_owned());
            return unknown;
        }
        let domain = domain_of(node);
        let Some(&opset) = self.opsets.get(domain) else {
            self.findings.error(Rule::Domain, at, || match domain {
                "" => "the standard operator set is not imported".to_owned(),
                domain => format!("the operator set `{}` is not imported", short(domain)),
            });
            return unknown;
        };
        let key = (domain, op_type, node.overload.as_deref().unwrap_or_default());
        if let Some(&(takes, gives)) = self.functions.get(&key) {
            if node.input.len() > takes || node.output.len() > gives {
                self.findings.error(Rule::Arity, at, || {
                    let (has, outputs) = (node.input.len(), node.output.len());
                    format!("the function takes {takes} and gives {gives} values, the node has {has} and {outputs}")
                });
            }
            return unknown;
        }
        if !domain.is_empty() {
            if self.strange.insert((domain, op_type)) {
                let at = At { node: None, ..at };
                self.findings.note(Rule::Domain, at, || {
                    format!("nothing is known here of operator `{}` of `{}`", short(op_type), short(domain))
                });
            }
            return unknown;
        }
        let Some(operator) = operators::operator(op_type, opset.min(NEWEST_OPSET)) else {
            self.findings.error(Rule::Operator, at, || match operators::first_version(op_type) {
                Some(first) => {
                    format!("the operator exists from operator set {first} on, the model has {opset}")
                }
                None => "there is no such standard operator".to_owned(),
            });
            return unknown;
        };
        if operator.deprecated {
            let since = operator.since;
            self.findings.error(Rule::Operator, at, || {
                format!("the operator ended with operator set {since}, the model has {opset}")
            });
            return unknown;
        }
        let takes = self.count("input", &node.input, &operator.inputs, at);
        let gives = self.count("output", &node.output, &operator.outputs, at);
        self.operator_attributes(node, operator, at);
        if takes && gives { self.element_types(node, operator, inputs, at) } else { unknown }
    }

    /// Whether a node has as many values as its operator takes, and those that it needs.
    fn count(&mut self, what: &str, names: &[String], parameters: &[Parameter], at: At<'_>) -> bool {
        let (least, most) = bounds(parameters);
        let found = names.len();
        if found < least || most.is_some_and(|most| found > most) {
            self.findings.error(Rule::Arity, at, || {
                let most = most.map_or("more".to_owned(), |most| most.to_string());
                format!("{found} {what}s, where the operator has {least} to {most}")
            });
            return false;
        }
        for (parameter, _) in
            parameters.iter().zip(names).filter(|(p, n)| p.count == Count::One && n.is_empty())
        {
            self.findings.error(Rule::Arity, at, || format!("{what} `{}` is left out", parameter.name));
        }
        true
    }

    /// Attributes as such: each has a name of its own and one value of the kind it says.
    fn attributes(&mut self, node: &'m NodeProto, at: At<'_>) {
        let mut seen = HashSet::new();
        for attribute in &node.attribute {
            let name = attribute.name.as_deref().unwrap_or_default();
            let reference = attribute.ref_attr_name.as_deref().unwrap_or_default();
            if !reference.is_empty() && !self.in_function {
                self.findings.warning(Rule::Attribute, at, || {
                    format!("attribute `{}` refers to a function's, outside of one", short(name))
                });
            }
            let mut error = |message: String| self.findings.error(Rule::Attribute, at, || message);
            if name.is_empty() {
                error("an attribute has no name".to_owned());
            } else if !seen.insert(name) {
                error(format!("attribute `{}` is there twice", short(name)));
            }
            if !reference.is_empty() {
                continue;
            }
            let kind = attribute.r#type.unwrap_or_default();
            if attribute.r#type.is_none() {
                error(format!("attribute `{}` does not say its type", short(name)));
            } else if let Some(held) = held_kinds(attribute).find(|held| *held != kind) {
                error(format!(
                    "attribute `{}` is of type {kind} and holds a value of type {held}",
                    short(name)
                ));
            } else if !(1..=14).contains(&kind) {
                error(format!("attribute `{}` is of the unknown type {kind}", short(name)));
            }
        }
    }

    /// Attributes as the operator has them.
    fn operator_attributes(&mut self, node: &'m NodeProto, operator: &Operator, at: At<'_>) {
        for attribute in &node.attribute {
            let name = attribute.name.as_deref().unwrap_or_default();
            let known = operator.attributes.iter().find(|a| a.name == name);
            // Names that begin so are engines' own notes.
            if known.is_none() && !name.starts_with("__") && !name.is_empty() {
                self.findings.error(Rule::Attribute, at, || {
                    format!("the operator has no attribute `{}`", short(name))
                });
            }
            if let (Some(known), Some(kind)) = (known, attribute.r#type)
                && kind != known.kind
            {
                let wanted = known.kind;
                self.findings.error(Rule::Attribute, at, || {
                    format!("attribute `{name}` is of type {kind}, the operator's of type {wanted}")
                });
            }
        }
        for needed in operator.attributes.iter().filter(|a| a.required) {
            if node.attribute.iter().all(|a| a.name.as_deref() != Some(needed.name)) {
                self.findings
                    .error(Rule::Attribute, at, || format!("attribute `{}` is missing", needed.name));
            }
        }
    }

    fn element_types(&mut self, node: &NodeProto, operator: &Operator, inputs: &Known, at: At<'_>) -> Known {
        let mut bound: HashMap<&str, ElementType> = HashMap::new();
        let mut sound = true;
        for (index, (name, found)) in node.input.iter().zip(inputs).enumerate() {
            let (Some(found), Some(parameter)) = (*found, parameter_at(&operator.inputs, index)) else {
                continue;
            };
            let at = at.value(name);
            if !parameter.types.has(found) && !parameter.types.takes_others() {
                sound = false;
                self.findings.error(Rule::ElementType, at, || {
                    format!("the operator takes no {found} as `{}`", parameter.name)
                });
                continue;
            }
            let alike = !matches!(parameter.count, Count::List { alike: false, .. });
            if let Some(variable) = parameter.variable.filter(|_| alike) {
                let first = *bound.entry(variable).or_insert(found);
                if first != found {
                    sound = false;
                    self.findings.error(Rule::ElementType, at, || {
                        format!(
                            "`{}` is {found} where another input of one type with it is {first}",
                            parameter.name
                        )
                    });
                }
            }
        }
        // One fault is enough: nothing follows from it.
        if !sound {
            return vec![None; node.output.len()];
        }
        let said = match said_by_attributes(node) {
            Said::Nothing => None,
            Said::Type(element) => Some(element),
            Said::NoType(number) => {
                self.findings
                    .error(Rule::ElementType, at, || format!("an attribute asks for element type {number}"));
                None
            }
        };
        let of = |index: usize| {
            let parameter = parameter_at(&operator.outputs, index)?;
            if matches!(parameter.count, Count::List { alike: false, .. }) {
                return None;
            }
            let bound = parameter.variable.and_then(|variable| bound.get(variable)).copied();
            bound.or(said.filter(|_| index == 0)).or_else(|| parameter.types.only())
        };
        (0..node.output.len()).map(of).collect()
    }
}

/// How many values parameters stand for.
fn bounds(parameters: &[Parameter]) -> (usize, Option<usize>) {
    let (mut least, mut most) = (0, Some(0_usize));
    for (index, parameter) in parameters.iter().enumerate() {
        match parameter.count {
            Count::One => least = index + 1,
            Count::Optional => {}
            // What stands before a list has to be there, if only as an empty name.
            Count::List { least: of_list, .. } => (least, most) = (index + of_list, None),
        }
        most = most.map(|most| most + 1);
    }
    (least, most)
}

/// The last parameter goes on where it is a list.
fn parameter_at(parameters: &[Parameter], index: usize) -> Option<&Parameter> {
    parameters.get(index).or_else(|| parameters.last().filter(|p| matches!(p.count, Count::List { .. })))
}

/// The types of the values that an attribute holds, by `AttributeProto.AttributeType`.
fn held_kinds(attribute: &AttributeProto) -> impl Iterator<Item = i32> {
    let held = [
        attribute.f.is_some(),
        attribute.i.is_some(),
        attribute.s.is_some(),
        attribute.t.is_set(),
        attribute.g.is_set(),
        !attribute.floats.is_empty(),
        !attribute.ints.is_empty(),
        !attribute.strings.is_empty(),
        !attribute.tensors.is_empty(),
        !attribute.graphs.is_empty(),
        attribute.sparse_tensor.is_set(),
        !attribute.sparse_tensors.is_empty(),
        attribute.tp.is_set(),
        !attribute.type_protos.is_empty(),
    ];
    (1..).zip(held).filter(|(_, held)| *held).map(|(kind, _)| kind)
}

/// What attributes say of the first output's element type.
enum Said {
    Nothing,
    Type(ElementType),
    NoType(i64),
}

fn said_by_attributes(node: &NodeProto) -> Said {
    let attribute = |name: &str| node.attribute.iter().find(|a| a.name.as_deref() == Some(name));
    let number = |name: &str| attribute(name).and_then(|a| a.i);
    let named = |number: i64| match i32::try_from(number).map(ElementType::from_onnx) {
        Ok(ElementType::Other(_) | ElementType::Undefined) | Err(_) => Said::NoType(number),
        Ok(element) => Said::Type(element),
    };
    let tensor = |name: &str| {
        let tensor = attribute(name).and_then(|a| a.t.as_option());
        tensor.map_or(Said::Nothing, |t| Said::Type(ElementType::from_onnx(t.data_type.unwrap_or_default())))
    };
    match node.op_type.as_deref().unwrap_or_default() {
        "Cast" => number("to").map_or(Said::Nothing, named),
        "ConstantOfShape" => match tensor("value") {
            Said::Nothing => Said::Type(ElementType::Float32),
            said => said,
        },
        "Constant" => match node.attribute.iter().find_map(|a| a.name.as_deref()) {
            Some("value") => tensor("value"),
            Some("value_int" | "value_ints") => Said::Type(ElementType::Int64),
            Some("value_float" | "value_floats") => Said::Type(ElementType::Float32),
            Some("value_string" | "value_strings") => Said::Type(ElementType::String),
            _ => Said::Nothing,
        },
        _ => Said::Nothing,
    }
}
