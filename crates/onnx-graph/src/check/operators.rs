//! What the ONNX operator specification says of each standard operator.

use std::{collections::HashMap, sync::LazyLock};

use crate::ElementType;

/// Written by `fixtures/onnx-check/operators.py`, which describes the form, from the schemas of onnx 1.23.2.
const TABLE: &str = include_str!("operators.txt");

/// The newest operator set in the table.
pub(super) const NEWEST_OPSET: i64 = 28;

/// Element types as bits, by their ONNX numbers. The last bit stands for what is no dense tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TypeSet(u64);

const NO_TENSOR: u64 = 1 << 63;

impl TypeSet {
    pub(super) fn has(self, element: ElementType) -> bool {
        u32::try_from(element.to_onnx()).is_ok_and(|number| number < 63 && self.0 >> number & 1 == 1)
    }

    /// True where sequences, maps or optionals are taken too.
    pub(super) fn takes_others(self) -> bool {
        self.0 & NO_TENSOR != 0
    }

    /// The only element type of the set.
    pub(super) fn only(self) -> Option<ElementType> {
        let number = i32::try_from(self.0.trailing_zeros()).ok()?;
        (self.0.is_power_of_two() && self.0 != NO_TENSOR).then(|| ElementType::from_onnx(number))
    }

    fn parse(names: &str) -> Self {
        Self(names.split(',').fold(0, |set, name| set | KNOWN.get(name).copied().unwrap_or(NO_TENSOR)))
    }
}

/// The bit of each element type by its name.
static KNOWN: LazyLock<HashMap<String, u64>> = LazyLock::new(|| {
    let types = (1..63).map(|n| (ElementType::from_onnx(n), 1 << n));
    types.filter(|(t, _)| !matches!(t, ElementType::Other(_))).map(|(t, bit)| (t.to_string(), bit)).collect()
});

/// How many values a parameter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Optional,
    /// At least so many.
    List {
        least: usize,
        /// Whether all have one type.
        alike: bool,
    },
}

/// An input or output of an operator.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) count: Count,
    /// The name of its type, by which parameters are of one type; `None` where it is fixed.
    pub(super) variable: Option<&'static str>,
    pub(super) types: TypeSet,
}

/// An attribute of an operator.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// `AttributeProto.AttributeType`.
    pub(super) kind: i32,
    pub(super) required: bool,
}

/// An operator from one version on.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) since: i64,
    pub(super) deprecated: bool,
    pub(super) inputs: Vec<Parameter>,
    pub(super) outputs: Vec<Parameter>,
    pub(super) attributes: Vec<Attribute>,
}

static OPERATORS: LazyLock<HashMap<&'static str, Vec<Operator>>> = LazyLock::new(read_table);

/// The operator as it is in a version of the standard set: `None` where there was none yet, or never.
pub(super) fn operator(op_type: &str, opset: i64) -> Option<&'static Operator> {
    OPERATORS.get(op_type)?.iter().rev().find(|operator| operator.since <= opset)
}

/// The version from which on an operator exists.
pub(super) fn first_version(op_type: &str) -> Option<i64> {
    OPERATORS.get(op_type)?.first().map(|operator| operator.since)
}

/// The lines are our own, and sorted; one that could not be read would be missing, which a test counts.
fn read_table() -> HashMap<&'static str, Vec<Operator>> {
    let mut sets: HashMap<&str, TypeSet> = HashMap::new();
    let mut operators: HashMap<&str, Vec<Operator>> = HashMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with('$') {
            let (name, types) = line.split_once(' ').unwrap_or_default();
            sets.insert(name, TypeSet::parse(types));
        } else if let Some((name, operator)) = read_operator(line, &sets) {
            operators.entry(name).or_default().push(operator);
        }
    }
    operators
}

fn read_operator(line: &'static str, sets: &HashMap<&str, TypeSet>) -> Option<(&'static str, Operator)> {
    let mut parts = line.split('|');
    let (name, rest) = parts.next()?.trim().split_once(' ')?;
    let (since, ports) = rest.split_once(' ').unwrap_or((rest, ""));
    let variables: HashMap<&str, TypeSet> = {
        let types = line.rsplit('|').next().unwrap_or_default().split_whitespace();
        types.filter_map(|t| t.split_once('=')).filter_map(|(v, set)| Some((v, *sets.get(set)?))).collect()
    };
    let parameters = |text: &'static str| -> Vec<Parameter> {
        text.split_whitespace().filter_map(|text| read_parameter(text, &variables)).collect()
    };
    let (inputs, outputs) = ports.split_once('>').unwrap_or_default();
    let attributes = parts.next().unwrap_or_default().split_whitespace().filter_map(read_attribute).collect();
    let operator = Operator {
        since: since.parse().ok()?,
        deprecated: ports.trim() == "deprecated",
        inputs: parameters(inputs),
        outputs: parameters(outputs),
        attributes,
    };
    Some((name, operator))
}

fn read_parameter(text: &'static str, variables: &HashMap<&str, TypeSet>) -> Option<Parameter> {
    let (name, kind) = text.rsplit_once(':')?;
    let (name, count) = if let Some(name) = name.strip_suffix('?') {
        (name, Count::Optional)
    } else if let Some((name, least)) = name.split_once('*') {
        let alike = !least.ends_with('~');
        (name, Count::List { least: least.trim_end_matches('~').parse().ok()?, alike })
    } else {
        (name, Count::One)
    };
    let variable = variables.contains_key(kind).then_some(kind);
    let types = variables.get(kind).copied().unwrap_or_else(|| TypeSet::parse(kind));
    Some(Parameter { name, count, variable, types })
}

fn read_attribute(text: &'static str) -> Option<Attribute> {
    const KINDS: [&str; 14] = ["f", "i", "s", "t", "g", "fs", "is", "ss", "ts", "gs", "p", "ps", "y", "ys"];
    let (name, kind) = text.split_once(':')?;
    let required = kind.ends_with('!');
    let at = KINDS.iter().position(|k| *k == kind.trim_end_matches('!'))?;
    Some(Attribute { name, kind: i32::try_from(at + 1).ok()?, required })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with(['#', '$'])).count();
        assert_eq!(OPERATORS.values().map(Vec::len).sum::<usize>(), lines);
        for operator in OPERATORS.values().flatten() {
            let ports = operator.inputs.iter().chain(&operator.outputs);
            assert!(ports.clone().all(|p| p.types != TypeSet::default()), "{operator:?}");
            assert!(operator.deprecated || !operator.outputs.is_empty(), "{operator:?}");
        }
        let newest = OPERATORS.values().flatten().map(|operator| operator.since).max();
        assert_eq!(newest, Some(NEWEST_OPSET));
    }

    #[test]
    fn versions_end_where_the_next_begins() {
        let since = |op_type, opset| operator(op_type, opset).map(|o| o.since);
        assert_eq!([since("Conv", 10), since("Conv", 11), since("Conv", 21)], [Some(1), Some(11), Some(11)]);
        assert_eq!([since("Gelu", 19), since("Gelu", 20), since("Nope", 20)], [None, Some(20), None]);
        assert!(operator("Upsample", 10).is_some_and(|o| o.deprecated));
        let conv = operator("Conv", 22).map(|o| (o.inputs.len(), o.inputs[2].count, o.attributes.len()));
        assert_eq!(conv, Some((3, Count::Optional, 6)));
        let types = operator("Relu", 13).map(|o| o.inputs[0].types);
        assert!(types.is_some_and(|t| t.has(ElementType::Bfloat16) && !t.has(ElementType::Int64)));
    }
}
