//! Sparse tensors: as many places as values, each within the dims.

use super::{
    Checker,
    finding::{At, Rule},
};
use crate::{ElementType, proto::SparseTensorProto};

impl<'m> Checker<'m> {
    /// A sparse tensor: values in a list, and for each its place, in ascending order.
    pub(super) fn sparse(&mut self, sparse: &'m SparseTensorProto, at: At<'_>) {
        let [values, indices] = [&sparse.values, &sparse.indices].map(buffa::MessageField::as_option);
        let Some(values) = values else {
            self.findings.error(Rule::Sparse, at, || "the sparse tensor has no values".to_owned());
            return;
        };
        let sound = self.tensor(values, at).is_some();
        let mut error = |message: &str| self.findings.error(Rule::Sparse, at, || message.to_owned());
        let [count] = values.dims[..] else {
            return error("the values are no list");
        };
        let mut total = 1_i64;
        for &dim in &sparse.dims {
            match total.checked_mul(dim).filter(|_| dim > 0) {
                Some(product) => total = product,
                None => return error("the dims are no tensor size"),
            }
        }
        if sparse.dims.is_empty() {
            return error("the sparse tensor has no dims");
        }
        let Some(indices) = indices else {
            if count > 0 {
                error("the sparse tensor has values and no indices");
            }
            return;
        };
        if ElementType::from_onnx(indices.data_type.unwrap_or_default()) != ElementType::Int64 {
            return error("the indices are not int64");
        }
        let dims = match indices.dims[..] {
            [n] if n == count => vec![total],
            [n, rank] if n == count && usize::try_from(rank) == Ok(sparse.dims.len()) => sparse.dims.clone(),
            _ => return error("the indices have other dims than the values and the tensor ask for"),
        };
        if !sound || self.tensor(indices, at).is_none() {
            return;
        }
        let mut places = Places { dims, place: Vec::new(), last: None, fault: None };
        let read = self.weights.stream(indices, &mut |piece| {
            piece.as_chunks::<8>().0.iter().for_each(|index| places.next(i64::from_le_bytes(*index)));
        });
        // What cannot be read has been said.
        if let (Ok(()), Some(fault)) = (read, places.fault) {
            self.findings.error(Rule::Sparse, at, || fault.to_owned());
        }
    }
}

/// Follows the places of a sparse tensor's values, coordinate by coordinate.
struct Places {
    dims: Vec<i64>,
    place: Vec<i64>,
    last: Option<Vec<i64>>,
    fault: Option<&'static str>,
}

impl Places {
    fn next(&mut self, index: i64) {
        let dim = self.dims.get(self.place.len()).copied().unwrap_or_default();
        if index < 0 || index >= dim {
            self.fault = Some("an index is out of range");
        }
        self.place.push(index);
        if self.place.len() == self.dims.len() {
            let place = std::mem::take(&mut self.place);
            if self.last.as_ref().is_some_and(|last| *last >= place) {
                self.fault.get_or_insert("the indices are not in ascending order");
            }
            self.last = Some(place);
        }
    }
}
