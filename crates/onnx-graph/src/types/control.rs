//! Operators that run sub-graphs: `If`, `Loop`, `Scan`.

use crate::{Dim, ElementType, Result, Shape, attributes::axis};

use super::{
    dims::either,
    infer::{Driver, Scope},
    op::{Item, Op, UNKNOWN, Value},
};

impl<'m> Driver<'m, '_> {
    /// The outputs of an operator that runs sub-graphs; `None` for every other one.
    pub(super) fn control(&mut self, op: &Op<'_, 'm>, scope: &Scope<'_, 'm>) -> Result<Option<Vec<Value>>> {
        match (op.domain(), op.op_type()) {
            ("", "If") => self.branches(op, scope),
            ("", "Loop") => self.body(op, scope),
            // Version 8 had a batch axis in front.
            ("", "Scan") if op.opset >= 9 => self.scan(op, scope),
            _ => Ok(None),
        }
    }

    /// Of a known condition the branch that is taken, else what holds of both.
    fn branches(&mut self, op: &Op<'_, 'm>, scope: &Scope<'_, 'm>) -> Result<Option<Vec<Value>>> {
        let then = self.sub_graph(op, "then_branch", &[], scope)?;
        let other = self.sub_graph(op, "else_branch", &[], scope)?;
        let (Some(then), Some(other)) = (then, other) else { return Ok(Some(Vec::new())) };
        Ok(Some(match op.items(0) {
            Some([Item::Int(0)]) => other,
            Some([Item::Int(_)]) => then,
            _ => then.iter().zip(&other).map(|(a, b)| joined(a, b)).collect(),
        }))
    }

    /// Values carried from one run to the next may change their shape, so nothing is said of it within the body.
    fn body(&mut self, op: &Op<'_, 'm>, scope: &Scope<'_, 'm>) -> Result<Option<Vec<Value>>> {
        let carried = op.inputs.get(2..).unwrap_or_default();
        let mut feeds =
            vec![Value::of(ElementType::Int64, Vec::new()), Value::of(ElementType::Bool, Vec::new())];
        feeds.extend(carried.iter().map(|v| Value::new(v.unwrap_or(&UNKNOWN).element, None)));
        let Some(results) = self.sub_graph(op, "body", &feeds, scope)? else { return Ok(Some(Vec::new())) };
        let results = results.get(1..).unwrap_or_default();
        let ends = carried.iter().zip(results).map(|(first, last)| joined(first.unwrap_or(&UNKNOWN), last));
        let stacked = results.iter().skip(carried.len()).map(|one| stacked(one, 0, &Dim::Unknown));
        Ok(Some(ends.chain(stacked).collect()))
    }

    fn scan(&mut self, op: &Op<'_, 'm>, scope: &Scope<'_, 'm>) -> Result<Option<Vec<Value>>> {
        let scanned = op.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let states = op.inputs.len().saturating_sub(scanned);
        let mut length = Dim::Unknown;
        let mut feeds = Vec::new();
        for (i, input) in op.inputs.iter().enumerate() {
            let value = input.unwrap_or(&UNKNOWN);
            let mut feed = Value::new(value.element, None);
            if let (Some(scan), Some(dims)) = (i.checked_sub(states), value.dims()) {
                let along = op.ints("scan_input_axes").and_then(|axes| axes.get(scan)).copied().unwrap_or(0);
                if let Some(at) = axis(along, dims.len()) {
                    let mut dims = dims.to_vec();
                    length = dims.remove(at);
                    feed.shape = Some(dims);
                }
            }
            feeds.push(feed);
        }
        let Some(results) = self.sub_graph(op, "body", &feeds, scope)? else { return Ok(Some(Vec::new())) };
        let states = op.inputs.get(..states).unwrap_or_default();
        let ends = states.iter().zip(&results).map(|(first, last)| joined(first.unwrap_or(&UNKNOWN), last));
        let axes = op.ints("scan_output_axes");
        let scans =
            results.iter().skip(states.len()).enumerate().map(|(i, one)| {
                stacked(one, axes.and_then(|axes| axes.get(i)).copied().unwrap_or(0), &length)
            });
        Ok(Some(ends.chain(scans).collect()))
    }
}

/// What holds of a value that is one or the other.
fn joined(a: &Value, b: &Value) -> Value {
    let element = if a.element == ElementType::Undefined { b.element } else { a.element };
    Value::new(element, either(&a.shape, &b.shape))
}

/// Values of all runs behind each other along a new axis.
fn stacked(one: &Value, at: i64, length: &Dim) -> Value {
    let shape: Shape = one.shape.as_ref().and_then(|dims| {
        let at = axis(at, dims.len() + 1)?;
        let mut dims = dims.clone();
        dims.insert(at, length.clone());
        Some(dims)
    });
    Value::new(one.element, shape)
}
