//! The mask decoder: two-way transformer, upscaler, heads.

use super::{Part, Sorter, roles, roles::Roles};
use crate::analyze::patterns;

/// More layers than any such network has.
const MAX_LAYERS: usize = 16;

/// Attention by what it reads and what it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToImage,
    ToTokens,
    Within,
}

impl Sorter<'_, '_> {
    pub(super) fn decoder(&mut self, outputs: &[&str]) {
        let flow = self.flow;
        let attention = self.attention();
        let layers = self.layers(&attention);
        let Some(&first) = layers.first() else { return };
        let mut transformer = vec![false; self.of.len()];
        let (glue, before) = (self.until_shared(), flow.ancestors([first]));
        self.assign(Part::Glue, |this, node| this.is_free(node) && glue[node] && before[node]);
        for (number, &norm) in (1..).zip(&layers) {
            let layer = flow.ancestors([norm]);
            self.assign(Part::TransformerLayer(number), |this, node| this.is_free(node) && layer[node]);
            transformer = layer;
        }
        let mut last = attention.iter().filter(|(node, to)| *to == Direction::ToImage && !transformer[*node]);
        if let Some(norm) = last.next().and_then(|(node, _)| self.norm_after(*node)) {
            let attention = flow.ancestors([norm]);
            self.assign(Part::FinalAttention, |this, node| this.is_free(node) && attention[node]);
            transformer.iter_mut().zip(&attention).for_each(|(mark, other)| *mark |= *other);
        }
        // Features are enlarged behind the last layer; what is resized before it are inputs.
        let behind = flow.descendants(layers.last().copied());
        self.heads(&transformer, &behind, outputs);
    }

    /// True for a node that depends on inputs and could still be the decoder's.
    fn is_free(&self, node: usize) -> bool {
        self.needs[node] != Roles::default() && self.of[node].is_none()
    }

    /// Cores of attention outside the image encoder.
    fn attention(&self) -> Vec<(usize, Direction)> {
        let mut found = Vec::new();
        for &node in &self.flow.order {
            if self.of[node].is_some() || !self.needs[node].has(roles::OTHER | roles::PROMPT) {
                continue;
            }
            let fused =
                matches!(self.flow.nodes[node].op_type.as_deref(), Some("Attention" | "MultiHeadAttention"));
            let lengths = if fused {
                let of = |at| {
                    let sizes = self.types.sizes(self.flow.input(node, at)?)?;
                    sizes.len().checked_sub(2).map(|at| sizes[at])
                };
                // The first input alone: queries, keys and values are made of it by weights.
                of(0).map(|queries| {
                    (queries, of(1).filter(|_| self.flow.source(node, 1).is_some()).unwrap_or(queries))
                })
            } else if self.flow.op(node) == "Softmax" && patterns::attention_around(self.flow, node).is_some()
            {
                self.flow.output(node).and_then(|v| self.types.sizes(v)).and_then(|sizes| match sizes[..] {
                    [.., queries, keys] => Some((queries, keys)),
                    _ => None,
                })
            } else {
                None
            };
            if let Some((queries, keys)) = lengths {
                let direction = match queries.cmp(&keys) {
                    std::cmp::Ordering::Less => Direction::ToImage,
                    std::cmp::Ordering::Greater => Direction::ToTokens,
                    std::cmp::Ordering::Equal => Direction::Within,
                };
                found.push((node, direction));
            }
        }
        found
    }

    /// The norm that ends each layer: the first behind its attention from the image to the tokens.
    fn layers(&self, attention: &[(usize, Direction)]) -> Vec<usize> {
        let mut norms: Vec<usize> = Vec::new();
        for &(node, _) in attention.iter().filter(|(_, direction)| *direction == Direction::ToTokens) {
            // The heads of one attention end in the same norm.
            if let Some(norm) = self.norm_after(node).filter(|norm| !norms.contains(norm)) {
                if norms.len() == MAX_LAYERS {
                    return Vec::new();
                }
                norms.push(norm);
            }
        }
        norms.sort_by_key(|&norm| self.flow.place[norm]);
        norms
    }

    fn norm_after(&self, node: usize) -> Option<usize> {
        self.first_after(node, |node| self.norm[node]).first().copied()
    }

    /// From each input, the nodes up to and including the first whose value several others take: changes of layout, sums
    /// with constants, the tokens' concatenation.
    fn until_shared(&self) -> Vec<bool> {
        let mut glue = vec![false; self.of.len()];
        for input in self.flow.inputs() {
            let mut next = match self.flow.readers(input) {
                [reader] => Some(*reader),
                _ => None,
            };
            while let Some(node) = next.filter(|&node| !glue[node] && !self.is_weighted(node)) {
                glue[node] = true;
                next = self.flow.only_user(node);
            }
        }
        glue
    }

    /// What comes behind the transformer: the upscaled features, the heads, the choice among their results.
    fn heads(&mut self, transformer: &[bool], image_side: &[bool], outputs: &[&str]) {
        let flow = self.flow;
        let enlarges = |node: &usize| {
            let op = flow.op(*node);
            matches!(op, "ConvTranspose" | "Resize" | "Upsample" | "DepthToSpace")
                && image_side[*node]
                && !transformer[*node]
        };
        let enlarged = flow.descendants(flow.order.iter().copied().filter(enlarges));
        // Masks are the product of what the tokens became with the enlarged features.
        let operand = |node: usize, at| flow.source(node, at).filter(|&source| !transformer[source]);
        let product = flow.order.iter().copied().find(|&node| {
            matches!(flow.op(node), "MatMul" | "Einsum" | "Gemm")
                && !transformer[node]
                && matches!((operand(node, 0), operand(node, 1)), (Some(a), Some(b)) if enlarged[a] != enlarged[b])
        });
        let Some(product) = product else { return };
        let (features, tokens): (Vec<usize>, Vec<usize>) =
            flow.sources[product].iter().copied().partition(|&source| enlarged[source]);
        let upscaler = flow.ancestors(features);
        let token_side = flow.ancestors(tokens);
        let behind = flow.descendants([product]);

        let mut scores = Vec::new();
        let mut objects = Vec::new();
        let mut pointers = Vec::new();
        let masks = self.rows(product, &token_side);
        let token_width = masks.map(|(_, width)| width);
        for (name, node) in outputs.iter().filter_map(|name| Some((*name, flow.producer(name)?))) {
            let Some(sizes) = self.types.sizes(name) else { continue };
            match sizes[..] {
                // A pointer is as wide as a token, and wider than there are masks.
                [_, width] if Some(width) == token_width => pointers.push(node),
                [_, 1] if self.is_object_score(node, masks.map(|(rows, _)| rows)) => objects.push(node),
                [_, _] => scores.push(node),
                _ => {}
            }
        }
        let quality = flow.ancestors(scores);
        let object = flow.ancestors(objects);
        let pointer = flow.ancestors(pointers);
        let free = |this: &Self, node: usize| this.is_free(node) && !transformer[node];
        let heads =
            |node: usize| [token_side[node], quality[node], object[node]].iter().filter(|on| **on).count();
        self.assign(Part::Upscaler, |this, node| free(this, node) && upscaler[node] && heads(node) == 0);
        self.assign(Part::Glue, |this, node| free(this, node) && !behind[node] && heads(node) > 1);
        self.assign(Part::MaskHeads, |this, node| {
            free(this, node)
                && (token_side[node] || (behind[node] && !quality[node] && !object[node] && !pointer[node]))
        });
        self.assign(Part::QualityHead, |this, node| free(this, node) && quality[node] && !behind[node]);
        self.assign(Part::ObjectScoreHead, |this, node| free(this, node) && object[node] && !behind[node]);
        self.assign(Part::ObjectPointer, |this, node| free(this, node) && pointer[node] && !behind[node]);
        // The choice of masks by their scores, and whatever else mixes the heads' results.
        self.assign(Part::MaskHeads, |this, node| free(this, node) && behind[node]);
    }

    /// Masks that the product gives, and the width of the tokens they are made of.
    fn rows(&self, product: usize, token_side: &[bool]) -> Option<(u64, u64)> {
        let side =
            (0..2).find(|&at| self.flow.source(product, at).is_some_and(|source| token_side[source]))?;
        let sizes = self.types.sizes(self.flow.input(product, side)?)?;
        let rows =
            sizes.get(if side == 0 { sizes.len().checked_sub(2)? } else { sizes.len().checked_sub(1)? })?;
        // Of the first product with a weight on that side: the width of what it takes.
        let first = self
            .flow
            .order
            .iter()
            .copied()
            .find(|&n| token_side[n] && self.of[n].is_none() && self.is_weighted(n))?;
        let width = *self.types.sizes(self.flow.input(first, 0)?)?.last()?;
        Some((*rows, width))
    }

    /// One number that comes straight from one weight row, where scores come from as many rows as there are masks.
    fn is_object_score(&self, output: usize, rows: Option<u64>) -> bool {
        let mut node = output;
        while !self.is_weighted(node) {
            match self.flow.sources[node].as_slice() {
                [source] => node = *source,
                _ => return false,
            }
        }
        let given = self.flow.output(node).and_then(|value| self.types.sizes(value));
        let given = given.and_then(|sizes| sizes.last().copied());
        // With one mask both heads give one number: the quality is brought between zero and one.
        match rows {
            Some(1) | None => given == Some(1) && self.flow.op(output) != "Sigmoid",
            Some(_) => given == Some(1),
        }
    }
}
