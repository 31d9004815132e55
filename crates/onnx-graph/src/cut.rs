use std::collections::HashSet;

use crate::{
    Dependences, Error, Model, Result,
    model::{port_name, sparse_name, tensor_name},
    proto::{GraphProto, ValueInfoProto},
    walk::needed_by,
};

impl Model {
    /// The part of the main graph that computes `outputs` from `inputs`, as a model of its own.
    ///
    /// Only the nodes and initializers that are needed are kept, in their order; external tensors still point to the
    /// original sidecars, so the cut has to be loaded relative to the original's folder. Operator sets, functions,
    /// metadata and unknown fields stay; training information goes, since it speaks of the whole graph.
    /// A name in `inputs` may be an inner value, which then becomes an input with its recorded type.
    ///
    /// Fails with [`Error::CutNeedsInput`] where a graph input that is not in `inputs` would still be needed, with
    /// [`Error::UnknownValue`] for a name the graph does not have, and with [`Error::DefinedTwice`] where a node that is
    /// needed for another of its results would give an inner value of `inputs` once more. Inputs that no output needs
    /// are left out.
    pub fn cut(&self, inputs: &[&str], outputs: &[&str]) -> Result<Self> {
        let graph = self.graph();
        let walk = Dependences::new(self)?;
        let stop = inputs.iter().map(|&i| walk.known(i)).collect::<Result<HashSet<&str>>>()?;
        let reach = walk.reach(outputs, &stop)?;
        if let Some(input) = reach.inputs.first() {
            let outputs = outputs.iter().map(|&o| o.to_owned()).collect();
            return Err(Error::CutNeedsInput { outputs, input: (*input).to_owned() });
        }
        let nodes: Vec<_> = reach.nodes.iter().filter_map(|&i| graph.node.get(i)).cloned().collect();
        // A sub-graph may capture a value, so "used" is what the kept nodes need, not only what they list.
        let used: HashSet<&str> = nodes.iter().flat_map(needed_by).collect();
        let wanted = |name: &str| used.contains(name) || outputs.contains(&name);
        let values: HashSet<&str> = nodes.iter().flat_map(|n| n.output.iter().map(String::as_str)).collect();
        let fed = || inputs.iter().copied().filter(|i| wanted(i));
        if let Some(twice) = fed().find(|i| values.contains(i)) {
            return Err(Error::DefinedTwice { name: twice.to_owned() });
        }

        let mut new_inputs: Vec<_> = fed().map(|input| self.value_info(input)).collect();
        // Before IR 4 every initializer was listed as an input too; the listing stays with the initializer.
        let listed = graph.input.iter().filter(|i| reach.initializers.contains(port_name(i)));
        new_inputs.extend(listed.cloned());

        let part = GraphProto {
            input: new_inputs,
            output: outputs.iter().map(|&o| self.value_info(o)).collect(),
            initializer: graph
                .initializer
                .iter()
                .filter(|t| reach.initializers.contains(tensor_name(t)))
                .cloned()
                .collect(),
            sparse_initializer: graph
                .sparse_initializer
                .iter()
                .filter(|s| reach.initializers.contains(sparse_name(s)))
                .cloned()
                .collect(),
            value_info: graph
                .value_info
                .iter()
                .filter(|v| values.contains(port_name(v)) && !outputs.contains(&port_name(v)))
                .cloned()
                .collect(),
            quantization_annotation: graph
                .quantization_annotation
                .iter()
                .filter(|a| {
                    let tensor = a.tensor_name.as_deref().unwrap_or_default();
                    values.contains(tensor) || used.contains(tensor)
                })
                .cloned()
                .collect(),
            node: nodes.clone(),
            name: graph.name.clone(),
            doc_string: graph.doc_string.clone(),
            metadata_props: graph.metadata_props.clone(),
            __buffa_unknown_fields: graph.__buffa_unknown_fields.clone(),
        };
        Ok(self.with_graph(part))
    }

    /// The recorded type of a value; one without a record stays untyped (engines infer it for outputs).
    fn value_info(&self, name: &str) -> ValueInfoProto {
        let graph = self.graph();
        let recorded =
            graph.input.iter().chain(&graph.output).chain(&graph.value_info).find(|v| port_name(v) == name);
        recorded
            .cloned()
            .unwrap_or_else(|| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() })
    }
}
