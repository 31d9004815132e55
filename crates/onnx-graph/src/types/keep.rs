//! What is kept of an inference: types by value, and where the file says something else.

use std::collections::{HashMap, HashSet};

use crate::{Dim, ElementType, Shape};

use super::{
    Contradiction, ValueType,
    op::{Item, Value},
};

/// Bytes that the types of all values together may take; then values are kept without shape. A file can make every value
/// far larger than the node that gives it.
const MEMORY: usize = 256 << 20;

/// The types found so far.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) values: HashMap<String, ValueType>,
    pub(super) integers: HashMap<String, Vec<i64>>,
    pub(super) contradictions: Vec<Contradiction>,
    /// Names that more than one sub-graph defines.
    repeated: HashSet<String>,
    spent: usize,
}

impl Kept {
    /// The value, or as much of it as there is memory for.
    pub(super) fn afford(&mut self, mut value: Value) -> Value {
        let spent = self.spent.saturating_add(value.cost());
        if spent > MEMORY {
            (value.shape, value.content) = (None, None);
        } else {
            self.spent = spent;
        }
        value
    }

    /// What was inferred together with what the file records, the more precise of both; where they contradict each other,
    /// the inference is believed, and with `told` the contradiction is kept.
    pub(super) fn settle(
        &mut self,
        name: &str,
        inferred: Value,
        recorded: Option<&Value>,
        told: bool,
    ) -> Value {
        let Some(recorded) = recorded else { return self.afford(inferred) };
        let mut differs = false;
        let element = match (inferred.element, recorded.element) {
            (ElementType::Undefined, other) => other,
            (inferred, recorded) => {
                differs |= recorded != ElementType::Undefined && recorded != inferred;
                inferred
            }
        };
        let shape = match (&inferred.shape, &recorded.shape) {
            (None, other) => other.clone(),
            (Some(inferred), Some(recorded)) if inferred.len() == recorded.len() => {
                Some(inferred.iter().zip(recorded).map(|(i, r)| refined(i, r, &mut differs)).collect())
            }
            (inferred, recorded) => {
                differs |= recorded.is_some();
                inferred.clone()
            }
        };
        if differs && told {
            let kept = |value: &Value| ValueType { element_type: value.element, shape: value.shape.clone() };
            let (recorded, inferred) = (kept(recorded), kept(&inferred));
            self.contradictions.push(Contradiction { value: name.to_owned(), recorded, inferred });
        }
        let content = inferred.content;
        self.afford(Value { element, shape, content })
    }

    /// Keeps the values of a graph that is done. Names of the main graph come before those of sub-graphs.
    pub(super) fn keep(&mut self, values: HashMap<&str, Value>, main: bool) {
        for (name, value) in values {
            if main {
                self.integers.remove(name);
            } else if self.repeated.contains(name) {
                continue;
            } else if self.values.remove(name).is_some() {
                self.integers.remove(name);
                self.repeated.insert(name.to_owned());
                continue;
            }
            let integer = value.element.is_integer() || value.element == ElementType::Bool;
            if let Some(integers) = value.content.as_ref().filter(|_| integer)
                && let Some(integers) = integers.iter().map(Item::int).collect::<Option<Vec<_>>>()
            {
                self.integers.insert(name.to_owned(), integers);
            }
            let shape: Shape = value.shape;
            self.values.insert(name.to_owned(), ValueType { element_type: value.element, shape });
        }
    }
}

/// An inferred dim, refined by the recorded one. A recorded symbol never replaces a size: exporters give one symbol to
/// several sizes.
fn refined(inferred: &Dim, recorded: &Dim, differs: &mut bool) -> Dim {
    match (inferred, recorded) {
        (Dim::Static(_), Dim::Static(_)) => {
            *differs |= inferred != recorded;
            inferred.clone()
        }
        (Dim::Symbolic(_), Dim::Static(_)) | (Dim::Unknown, _) => recorded.clone(),
        _ => inferred.clone(),
    }
}
