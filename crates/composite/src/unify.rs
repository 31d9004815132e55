use std::{collections::HashMap, fmt};

use onnx_graph::{Dim, Port, write_shape};

/// Why two ports of one name cannot be joined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The port, as the producer has it.
    pub produced: Port,
    /// The port, as the consumer has it.
    pub consumed: Port,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is given as {}", self.produced.name, self.produced.element_type)?;
        write_shape(f, &self.produced.shape)?;
        write!(f, " and taken as {}", self.consumed.element_type)?;
        write_shape(f, &self.consumed.shape)
    }
}

/// Checks that all pairs of (produced, consumed) ports agree in element type, rank and dims, for one and the same
/// choice of sizes for the symbolic dims.
///
/// Symbols of the producer and of the consumer are different things even when they share a name; one symbol means one
/// size over all its ports. An unknown dim, or an unknown shape, agrees with everything.
/// On failure the first port is returned, in the order given, at which no choice of sizes is left.
pub fn unify<'p>(pairs: impl IntoIterator<Item = (&'p Port, &'p Port)>) -> Result<(), Mismatch> {
    let mut sizes = Sizes::default();
    for (produced, consumed) in pairs {
        if produced.element_type != consumed.element_type || !sizes.join_shapes(produced, consumed) {
            return Err(Mismatch { produced: produced.clone(), consumed: consumed.clone() });
        }
    }
    Ok(())
}

/// Which side a symbol belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Producer,
    Consumer,
}

/// A union-find over symbols, with the size of each class once one is known.
#[derive(Debug, Default)]
struct Sizes<'p> {
    class_of: HashMap<(Side, &'p str), usize>,
    parent: Vec<usize>,
    size: Vec<Option<u64>>,
}

impl<'p> Sizes<'p> {
    fn join_shapes(&mut self, produced: &'p Port, consumed: &'p Port) -> bool {
        let (Some(produced), Some(consumed)) = (&produced.shape, &consumed.shape) else { return true };
        produced.len() == consumed.len() && produced.iter().zip(consumed).all(|(p, c)| self.join(p, c))
    }

    fn join(&mut self, produced: &'p Dim, consumed: &'p Dim) -> bool {
        match (produced, consumed) {
            (Dim::Unknown, _) | (_, Dim::Unknown) => true,
            (Dim::Static(a), Dim::Static(b)) => a == b,
            (Dim::Symbolic(name), Dim::Static(size)) => self.bind((Side::Producer, name), *size),
            (Dim::Static(size), Dim::Symbolic(name)) => self.bind((Side::Consumer, name), *size),
            (Dim::Symbolic(a), Dim::Symbolic(b)) => {
                let (a, b) = (self.class((Side::Producer, a)), self.class((Side::Consumer, b)));
                self.merge(a, b)
            }
        }
    }

    fn class(&mut self, symbol: (Side, &'p str)) -> usize {
        let next = self.parent.len();
        let mut class = *self.class_of.entry(symbol).or_insert(next);
        if class == next {
            self.parent.push(next);
            self.size.push(None);
        }
        while self.parent[class] != class {
            // Halving the path keeps a hostile shape of many dims from taking quadratic time.
            self.parent[class] = self.parent[self.parent[class]];
            class = self.parent[class];
        }
        class
    }

    fn bind(&mut self, symbol: (Side, &'p str), size: u64) -> bool {
        let class = self.class(symbol);
        *self.size[class].get_or_insert(size) == size
    }

    fn merge(&mut self, a: usize, b: usize) -> bool {
        if a == b {
            return true;
        }
        let known = match (self.size[a], self.size[b]) {
            (Some(a), Some(b)) if a != b => return false,
            (a, b) => a.or(b),
        };
        self.parent[b] = a;
        self.size[a] = known;
        true
    }
}
