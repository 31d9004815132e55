use std::collections::HashMap;

use crate::{
    Dim, ElementType, Model, Port, Result, Shape, Weights,
    model::{port_name, tensor_name},
};

/// Element type and shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueType {
    /// Element type; [`ElementType::Undefined`] where it is not known.
    pub element_type: ElementType,
    /// Dims, outermost first; `None` where the rank is not known.
    pub shape: Shape,
}

impl ValueType {
    /// All dims as sizes, where every one is known.
    pub fn sizes(&self) -> Option<Vec<u64>> {
        self.shape.as_ref()?.iter().map(Dim::size).collect()
    }
}

/// Element types and shapes of the values of a model's main graph.
#[derive(Debug, Clone, Default)]
pub struct Types {
    values: HashMap<String, ValueType>,
}

impl Types {
    /// What follows from the graph's inputs, its weights and the rules of its operators.
    pub fn infer(model: &Model, _weights: &Weights) -> Result<Self> {
        let graph = model.graph();
        let mut values = HashMap::new();
        for info in graph.value_info.iter().chain(&graph.output).chain(&graph.input) {
            let Port { element_type, shape, .. } = Port::from_proto(info);
            values.insert(port_name(info).to_owned(), ValueType { element_type, shape });
        }
        for tensor in &graph.initializer {
            let element_type = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
            let dim = |&dim: &i64| u64::try_from(dim).map_or(Dim::Unknown, Dim::Static);
            let shape = Some(tensor.dims.iter().map(dim).collect());
            values.insert(tensor_name(tensor).to_owned(), ValueType { element_type, shape });
        }
        Ok(Self { values })
    }

    /// The type of a value.
    pub fn get(&self, value: &str) -> Option<&ValueType> {
        self.values.get(value)
    }

    pub(crate) fn set(&mut self, value: &str, value_type: ValueType) {
        self.values.insert(value.to_owned(), value_type);
    }

    /// All dims of a value as sizes, where every one is known.
    pub fn sizes(&self, value: &str) -> Option<Vec<u64>> {
        self.get(value)?.sizes()
    }
}
