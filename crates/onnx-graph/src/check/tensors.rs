//! Tensors: whether their values are what dims and type say, where they lie, and what they are.

use super::{
    Checker, ExternalDataRule,
    finding::{At, Rule, short},
};
use crate::{
    ElementType,
    external_data::{self, EXTERNAL},
    model::tensor_name,
    proto::{AttributeProto, GraphProto, TensorProto},
};

/// Bytes from which on two initializers with the same values are worth a note.
const DUPLICATE_FROM: u64 = 1024;

impl<'m> Checker<'m> {
    /// The initializers of one graph.
    pub(super) fn tensors_of(&mut self, graph: &'m GraphProto, scope: &str) {
        let at = At { scope, ..At::default() };
        for tensor in &graph.initializer {
            let name = tensor_name(tensor);
            let Some(digest) = self.tensor(tensor, at.value(name)) else { continue };
            let key = (tensor.data_type.unwrap_or_default(), tensor.dims.as_slice(), digest);
            if let Some(first) = self.stored.get(&key) {
                let first = short(first);
                self.findings
                    .note(Rule::Duplicate, at.value(name), || format!("it holds the same as `{first}`"));
            } else if external_data::byte_length(tensor).is_ok_and(|length| length >= DUPLICATE_FROM) {
                self.stored.insert(key, name);
            }
        }
        for sparse in &graph.sparse_initializer {
            self.sparse(sparse, at.value(tensor_name(&sparse.values)));
        }
    }

    /// Tensors that attributes hold, sub-graphs aside.
    pub(super) fn attribute_tensors(&mut self, attributes: &'m [AttributeProto], at: At<'_>) {
        for attribute in attributes {
            for tensor in attribute.t.as_option().into_iter().chain(&attribute.tensors) {
                let name = tensor_name(tensor);
                self.tensor(tensor, if name.is_empty() { at } else { at.value(name) });
            }
            for sparse in attribute.sparse_tensor.as_option().into_iter().chain(&attribute.sparse_tensors) {
                self.sparse(sparse, at);
            }
        }
    }

    /// Checks one tensor. Gives a digest of its values if they could be read.
    pub(super) fn tensor(&mut self, tensor: &'m TensorProto, at: At<'_>) -> Option<[u64; 2]> {
        let element = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        match element {
            ElementType::Undefined => {
                self.findings.error(Rule::Tensor, at, || "the tensor has no element type".to_owned());
                return None;
            }
            ElementType::Other(_) => {
                self.findings.error(Rule::ElementType, at, || {
                    format!("the tensor's element type is the unknown {element}")
                });
                return None;
            }
            _ => {}
        }
        if tensor.segment.is_set() {
            self.findings.warning(Rule::Tensor, at, || {
                "the tensor says that it is one segment of another, which engines do not read".to_owned()
            });
        }
        if tensor.data_location == Some(EXTERNAL) {
            return self.external(tensor, at);
        }
        if let Err(reason) = values_in_the_model(tensor, element) {
            self.findings.error(Rule::Tensor, at, || short(&reason));
            return None;
        }
        if element == ElementType::String { None } else { self.values(tensor, element, at) }
    }

    fn external(&mut self, tensor: &'m TensorProto, at: At<'_>) -> Option<[u64; 2]> {
        let entry = match external_data::read_entry(tensor, self.graph) {
            Ok(entry) => entry,
            Err(crate::Error::ExternalData { rule, .. }) => {
                self.findings.error(Rule::ExternalData, at, || short(&rule.to_string()));
                return None;
            }
            Err(other) => {
                self.findings.error(Rule::ExternalData, at, || short(&other.to_string()));
                return None;
            }
        };
        let Some(folder) = self.weights.folder() else {
            self.not_read += 1;
            return None;
        };
        let found = match &self.real {
            None => Err(ExternalDataRule::Missing),
            Some((real, own)) => {
                let beside = own.as_deref().and_then(|own| own.parent());
                let roots: Vec<_> = [real.as_path()].into_iter().chain(beside).collect();
                external_data::locate(&entry, folder, &roots, own.as_deref())
            }
        };
        if let Err(rule) = found {
            let location = short(&entry.location);
            self.findings.error(Rule::ExternalData, at, || format!("sidecar `{location}`: {rule}"));
            return None;
        }
        let element = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        self.values(tensor, element, at)
    }

    /// Reads the values piece by piece.
    fn values(&mut self, tensor: &'m TensorProto, element: ElementType, at: At<'_>) -> Option<[u64; 2]> {
        let mut digest = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
        let (mut nan, mut infinite) = (0_u64, 0_u64);
        let read = self.weights.stream(tensor, &mut |piece| {
            mix(&mut digest, piece);
            count_non_finite(element, piece, &mut nan, &mut infinite);
        });
        if let Err(error) = read {
            self.findings.error(Rule::Tensor, at, || short(&error.to_string()));
            return None;
        }
        if nan > 0 {
            self.findings
                .warning(Rule::NonFinite, at, || format!("{nan} values are NaN, {infinite} are infinite"));
        } else if infinite > 0 {
            // Masks of attention are written so on purpose.
            self.findings.note(Rule::NonFinite, at, || format!("{infinite} values are infinite"));
        }
        Some(digest)
    }
}

/// Whether a tensor has as many values as its dims say, in the one field that its type is kept in (the table of fields
/// in ONNX's file format).
fn values_in_the_model(tensor: &TensorProto, element: ElementType) -> Result<(), String> {
    use ElementType::{Complex64, Complex128, Float32, Float64, Int64, Uint32, Uint64};
    let length = match (element, external_data::byte_length(tensor)) {
        (_, Ok(length)) => length,
        // One byte for each, to count them.
        (ElementType::String, _) => {
            let as_bytes = TensorProto {
                dims: tensor.dims.clone(),
                data_type: Some(ElementType::Uint8.to_onnx()),
                ..Default::default()
            };
            external_data::byte_length(&as_bytes).map_err(|rule| rule.to_string())?
        }
        (_, Err(rule)) => return Err(rule.to_string()),
    };
    // The field of the type, and bytes that one of its entries stands for.
    let (field, width) = match element {
        Float32 | Complex64 => ("float_data", 4),
        Float64 | Complex128 => ("double_data", 8),
        Int64 => ("int64_data", 8),
        Uint64 => ("uint64_data", 8),
        Uint32 => ("uint64_data", 4),
        ElementType::String => ("string_data", 1),
        other => ("int32_data", other.bits().map_or(1, |bits| bits.div_ceil(8))),
    };
    let fields = [
        ("float_data", tensor.float_data.len()),
        ("int32_data", tensor.int32_data.len()),
        ("string_data", tensor.string_data.len()),
        ("int64_data", tensor.int64_data.len()),
        ("double_data", tensor.double_data.len()),
        ("uint64_data", tensor.uint64_data.len()),
    ];
    let raw = tensor.raw_data.as_ref().map_or(0, buffa::bytes::Bytes::len);
    let used = fields.iter().filter(|(_, count)| *count > 0).count() + usize::from(raw > 0);
    if used > 1 {
        return Err("the tensor has values in more than one field".to_owned());
    }
    if let Some((other, _)) = fields.iter().find(|(name, count)| *count > 0 && *name != field) {
        return Err(format!(
            "the tensor has its {element} values in `{other}`, where they belong into `{field}`"
        ));
    }
    if raw > 0 && element == ElementType::String {
        return Err("strings are never raw bytes".to_owned());
    }
    let (found, expected, what) = match fields.iter().find(|(_, count)| *count > 0) {
        Some((_, count)) => (*count as u64, length.div_ceil(width), "entries"),
        None => (raw as u64, length, "bytes"),
    };
    if found == expected {
        return Ok(());
    }
    Err(format!("the tensor has {found} {what} where dims and type need {expected}"))
}

/// Two sums over the words of a tensor: enough to tell weights apart, not to withstand somebody who wants them to be equal.
fn mix(digest: &mut [u64; 2], piece: &[u8]) {
    let (words, rest) = piece.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let rest = (!rest.is_empty()).then_some(&last);
    for word in words.iter().chain(rest).map(|word| u64::from_le_bytes(*word)) {
        digest[0] = (digest[0] ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        digest[1] = (digest[1].rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
}

fn count_non_finite(element: ElementType, piece: &[u8], nan: &mut u64, infinite: &mut u64) {
    // Sign, exponent and fraction: all ones in the exponent is no number, and infinite where the fraction is zero.
    let mut count = |exponent: u64, fraction: u64| {
        if exponent == 0 {
            *(if fraction == 0 { &mut *infinite } else { &mut *nan }) += 1;
        }
    };
    let mut halves = |exponent: u16| {
        for half in piece.as_chunks::<2>().0.iter().map(|half| u16::from_le_bytes(*half)) {
            count(u64::from(!half & exponent), u64::from(half & !exponent & 0x7fff));
        }
    };
    match element {
        ElementType::Float16 => halves(0x7c00),
        ElementType::Bfloat16 => halves(0x7f80),
        ElementType::Float32 => {
            for value in piece.as_chunks::<4>().0.iter().map(|value| u32::from_le_bytes(*value)) {
                count(u64::from(!value & 0x7f80_0000), u64::from(value & 0x007f_ffff));
            }
        }
        ElementType::Float64 => {
            for value in piece.as_chunks::<8>().0.iter().map(|value| u64::from_le_bytes(*value)) {
                count(!value & 0x7ff0_0000_0000_0000, value & 0x000f_ffff_ffff_ffff);
            }
        }
        _ => {}
    }
}
