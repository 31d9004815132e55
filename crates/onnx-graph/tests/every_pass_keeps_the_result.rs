//! Random small graphs compute the same after every pass and every set, judged by rten.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/run.rs"]
mod run;

use onnx_graph::{
    Attribute::{Int, Ints},
    Dim,
    ElementType::Float32,
    GraphBuilder, Model, Pass, PassSet, Weight, Weights,
};
use proptest::prelude::*;
use run::{difference, values};

/// A value of the growing graph.
#[derive(Clone)]
struct Known {
    name: String,
    dims: Vec<u64>,
}

/// A graph that grows by what the numbers say.
struct Growing {
    graph: GraphBuilder,
    known: Vec<Known>,
    count: usize,
}

impl Growing {
    fn new() -> Self {
        let inputs = [("image", vec![1, 3, 4, 6]), ("tokens", vec![1, 5, 6])];
        let mut growing = Self { graph: GraphBuilder::new("random"), known: Vec::new(), count: 0 };
        for (name, dims) in inputs {
            let graph = std::mem::take(&mut growing.graph);
            growing.graph = graph.input(name, Float32, dims.iter().map(|&d| Dim::Static(d)));
            growing.known.push(Known { name: name.to_owned(), dims });
        }
        growing
    }

    fn fresh(&mut self, hint: &str) -> String {
        self.count += 1;
        format!("{hint}{}", self.count)
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<(&str, onnx_graph::Attribute)>,
        dims: Vec<u64>,
    ) {
        let name = self.fresh("v");
        let graph = std::mem::take(&mut self.graph);
        self.graph = graph.node_with(operator, inputs.iter().copied(), [name.as_str()], attributes);
        self.known.push(Known { name, dims });
    }

    fn floats(&mut self, dims: &[u64]) -> String {
        let name = self.fresh("w");
        let weight = Weight::float32(dims.to_vec(), &values(&name, dims.iter().product::<u64>() as usize));
        self.graph = std::mem::take(&mut self.graph).weight(&name, weight);
        name
    }

    fn ints(&mut self, numbers: &[i64]) -> String {
        let name = self.fresh("i");
        let weight = Weight::int64([numbers.len() as u64], numbers);
        self.graph = std::mem::take(&mut self.graph).weight(&name, weight);
        name
    }

    /// One node more, or a few that belong together.
    fn grow(&mut self, kind: u8, which: usize, choice: usize) {
        let Known { name, dims } = self.known[which % self.known.len()].clone();
        let (x, rank) = (name.as_str(), dims.len());
        let last = dims.last().copied().unwrap_or(1);
        match kind % 18 {
            0 => self.node("Identity", &[x], vec![], dims),
            1 => self.node("Relu", &[x], vec![], dims),
            2 => {
                let axes = rotated(rank, choice);
                let turned = axes.iter().map(|&axis| dims[axis as usize]).collect();
                self.node("Transpose", &[x], vec![("perm", Ints(axes))], turned);
            }
            3 => {
                // Not a sum: rten 0.27 fuses one of a product and a single number, and fails.
                let scale = self.floats(&[1]);
                self.node(["Mul", "Div"][choice % 2], &[x, &scale], vec![], dims);
            }
            4 => {
                let name = self.fresh("one");
                self.graph = std::mem::take(&mut self.graph).weight(&name, Weight::float32([], &[1.0]));
                self.node("Mul", &[x, &name], vec![], dims);
            }
            5 if rank < 5 => {
                let at = choice % (rank + 1);
                let axes = self.ints(&[at as i64]);
                let mut wider = dims;
                wider.insert(at, 1);
                self.node("Unsqueeze", &[x, &axes], vec![], wider);
            }
            6 => {
                if let Some(at) = dims.iter().position(|&d| d == 1).filter(|_| rank > 1) {
                    let axes = self.ints(&[at as i64 - rank as i64]);
                    let mut narrower = dims;
                    narrower.remove(at);
                    self.node("Squeeze", &[x, &axes], vec![], narrower);
                }
            }
            7 => {
                let count: u64 = dims.iter().product();
                let shape = self.ints(&[-1, last as i64]);
                self.node("Reshape", &[x, &shape], vec![], vec![count / last, last]);
            }
            8 if rank > 1 => {
                let weight = self.floats(&[last, 4]);
                let mut product = dims;
                product[rank - 1] = 4;
                self.node("MatMul", &[x, &weight], vec![], product);
            }
            9 => {
                let bias = self.floats(&[last]);
                self.node("Add", &[x, &bias], vec![], dims);
            }
            10 => self.node("Softmax", &[x], vec![("axis", Int(-1))], dims),
            11 => {
                let (scale, bias) = (self.floats(&[last]), self.floats(&[last]));
                self.node("LayerNormalization", &[x, &scale, &bias], vec![("axis", Int(-1))], dims);
            }
            12 if rank == 4 => self.round_trip(x, &dims),
            13 => {
                let other = self.known.iter().rev().find(|known| known.dims == dims).cloned().unwrap();
                self.node(["Add", "Mul"][choice % 2], &[x, &other.name], vec![], dims);
            }
            14 if rank > 1 => {
                let mut wider = dims.clone();
                wider[rank - 1] = last * 2;
                self.node("Concat", &[x, x], vec![("axis", Int(-1))], wider);
            }
            15 => {
                // Computed of constants alone.
                let (a, b) = (self.floats(&[last]), self.floats(&[1]));
                self.node(["Add", "Mul", "Sub", "Div"][choice % 4], &[&a, &b], vec![], vec![last]);
            }
            16 if rank == 3 => self.heads(x, &dims, 1 + choice % 3),
            17 => {
                let shape = self.ints(&dims.iter().map(|&d| d as i64).collect::<Vec<_>>());
                self.node("Reshape", &[x, &shape], vec![], dims);
            }
            _ => self.node("Neg", &[x], vec![], dims),
        }
    }

    /// Channels forward, a convolution, channels back.
    fn round_trip(&mut self, x: &str, dims: &[u64]) {
        let (weight, bias) = (self.floats(&[3, dims[3], 1, 1]), self.floats(&[3]));
        let turned = vec![dims[0], dims[3], dims[1], dims[2]];
        self.node("Transpose", &[x], vec![("perm", Ints(vec![0, 3, 1, 2]))], turned);
        let first = self.known.last().unwrap().name.clone();
        let window = || Ints(vec![1, 1]);
        let convolved = vec![dims[0], 3, dims[1], dims[2]];
        let attributes = vec![("strides", window()), ("dilations", window()), ("pads", Ints(vec![0; 4]))];
        self.node("Conv", &[&first, &weight, &bias], attributes, convolved);
        let conv = self.known.last().unwrap().name.clone();
        let back = vec![dims[0], dims[1], dims[2], 3];
        self.node("Transpose", &[&conv], vec![("perm", Ints(vec![0, 2, 3, 1]))], back);
    }

    /// Attention of the value to the tokens, head by head.
    fn heads(&mut self, x: &str, dims: &[u64], count: usize) {
        let last_name = |growing: &Self| growing.known.last().unwrap().name.clone();
        let mut results = Vec::new();
        for _ in 0..count {
            let mut layers = Vec::new();
            let [x, tokens] = [(x, dims.to_vec()), ("tokens", vec![1, 5, 6])];
            for (source, dims) in [x, tokens.clone(), tokens] {
                let weight = self.floats(&[dims[2], 3]);
                self.node("MatMul", &[source, &weight], vec![], vec![dims[0], dims[1], 3]);
                layers.push(last_name(self));
            }
            self.node("Transpose", &[&layers[1]], vec![("perm", Ints(vec![0, 2, 1]))], vec![1, 3, 5]);
            let turned = last_name(self);
            let rows = dims[1];
            self.node("MatMul", &[&layers[0], &turned], vec![], vec![dims[0], rows, 5]);
            let scores = last_name(self);
            self.node("Softmax", &[&scores], vec![("axis", Int(-1))], vec![dims[0], rows, 5]);
            let weights = last_name(self);
            self.node("MatMul", &[&weights, &layers[2]], vec![], vec![dims[0], rows, 3]);
            results.push(last_name(self));
        }
        let inputs: Vec<&str> = results.iter().map(String::as_str).collect();
        self.node("Concat", &inputs, vec![("axis", Int(-1))], vec![dims[0], dims[1], 3 * count as u64]);
    }

    /// The last values are the outputs.
    fn build(mut self, outputs: usize) -> Model {
        for known in self.known.iter().skip(2).rev().take(outputs.max(1)) {
            let graph = std::mem::take(&mut self.graph);
            self.graph = graph.output(&known.name, Float32, known.dims.iter().map(|&d| Dim::Static(d)));
        }
        self.graph.build()
    }
}

/// The axes of `rank` in an order that `choice` picks.
fn rotated(rank: usize, choice: usize) -> Vec<i64> {
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.rotate_left(choice % rank.max(1));
    if choice % 2 == 1 && rank > 1 {
        axes.swap(0, 1);
    }
    axes
}

fn model() -> impl Strategy<Value = Model> {
    let steps = prop::collection::vec((any::<u8>(), 0usize..64, 0usize..16), 1..24);
    (steps, 1usize..4).prop_map(|(steps, outputs)| {
        let mut growing = Growing::new();
        for (kind, which, choice) in steps {
            growing.grow(kind, which, choice);
        }
        growing.build(outputs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn results_stay(model in model(), order in Just(Pass::ALL.to_vec()).prop_shuffle()) {
        let weights = Weights::inline();
        let mut sets = vec![order, PassSet::OnnxRuntime.passes().to_vec(), PassSet::Rten.passes().to_vec()];
        sets.extend(Pass::ALL.iter().map(|&pass| vec![pass]));
        for passes in sets {
            let done = model.rewrite(&passes, &weights).unwrap();
            let apart = difference(&model, &done.model);
            prop_assert!(apart < 1e-4, "{passes:?}: {apart}");
        }
    }

    /// One pass makes room for another, but not for ever.
    #[test]
    fn again_and_again_ends_with_nothing_to_do(model in model()) {
        for set in [PassSet::OnnxRuntime, PassSet::Rten] {
            let mut last = model.clone();
            let ended = (0..16).any(|_| {
                let done = last.rewrite(set.passes(), &Weights::inline()).unwrap();
                last = done.model;
                done.reports.iter().all(|report| report.matched == 0)
            });
            prop_assert!(ended, "{set:?}");
        }
    }
}
