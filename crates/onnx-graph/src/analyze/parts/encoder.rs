//! The image encoder: normalisation, patch embedding, stages of the backbone, neck.

use std::collections::HashSet;

use super::{Part, Sorter, roles};

/// More features than any such network hands to its neck.
const MAX_STAGES: usize = 8;
/// Steps taken in all on the ways from one operand of an Add back to the other.
const MAX_STEPS: usize = 1_000_000;

impl Sorter<'_, '_> {
    /// What depends on the image alone.
    pub(super) fn image(&mut self) {
        let flow = self.flow;
        let on_image = |this: &Self, node: usize| this.needs[node] == roles::IMAGE;
        let image: Vec<usize> = flow.order.iter().copied().filter(|&node| on_image(self, node)).collect();
        let Some(first) = image.iter().copied().find(|&node| self.is_weighted(node)) else { return };
        let mut budget = MAX_STEPS;
        let Some(entry) = image.iter().find_map(|&node| self.residual(node, &mut budget)) else { return };
        let Some(last) = image.iter().copied().rfind(|&node| self.residual(node, &mut budget).is_some())
        else {
            return;
        };

        let before = flow.ancestors(flow.sources[first].iter().copied());
        self.assign(Part::Normalisation, |this, node| on_image(this, node) && before[node]);
        let embedding = flow.ancestors([entry]);
        self.assign(Part::PatchEmbedding, |this, node| on_image(this, node) && embedding[node]);

        // The neck starts with the first weights behind the last block.
        let deepest = self.first_after(last, |node| on_image(self, node) && self.is_weighted(node));
        let ends: Vec<usize> = deepest.iter().flat_map(|&node| flow.sources[node].iter().copied()).collect();
        let backbone = flow.ancestors(if ends.is_empty() { vec![last] } else { ends });
        let stages = self.stages(&image, &backbone, &deepest);
        for (number, stage) in (1..).zip(&stages) {
            self.assign(Part::BackboneStage(number), |this, node| on_image(this, node) && stage[node]);
        }
        self.assign(Part::Neck, |this, node| on_image(this, node) && !backbone[node]);
    }

    /// The ancestors of each feature that the neck takes, from the first stage's to the last's.
    fn stages(&self, image: &[usize], backbone: &[bool], deepest: &[usize]) -> Vec<Vec<bool>> {
        let flow = self.flow;
        // Weights outside the backbone with no such weights before them.
        let mut behind = vec![false; self.of.len()];
        let mut laterals = Vec::new();
        for &node in image.iter().filter(|&&node| !backbone[node]) {
            let after = flow.sources[node].iter().any(|&source| behind[source]);
            behind[node] = after || self.is_weighted(node);
            if behind[node] && !after {
                laterals.push(node);
            }
        }
        if laterals.len() > MAX_STAGES || laterals.is_empty() {
            return if deepest.is_empty() { vec![backbone.to_vec()] } else { Vec::new() };
        }
        let mut stages: Vec<Vec<bool>> =
            laterals.iter().map(|&lateral| flow.ancestors(flow.sources[lateral].iter().copied())).collect();
        stages.sort_by_key(|stage| stage.iter().filter(|marked| **marked).count());
        stages.dedup();
        stages
    }

    /// Where an Add joins a value with what weights made of that same value: the node that gave it.
    fn residual(&self, add: usize, budget: &mut usize) -> Option<usize> {
        if self.flow.op(add) != "Add" {
            return None;
        }
        let (a, b) = (self.flow.source(add, 0)?, self.flow.source(add, 1)?);
        let (skip, other) = if self.flow.place[a] < self.flow.place[b] { (a, b) } else { (b, a) };
        let mut seen = HashSet::new();
        let mut waiting = vec![(other, self.is_weighted(other))];
        while let Some((node, weighted)) = waiting.pop() {
            *budget = budget.checked_sub(1)?;
            for &source in &self.flow.sources[node] {
                if source == skip && weighted {
                    return Some(skip);
                }
                let next = (source, weighted || self.is_weighted(source));
                if self.flow.place[source] > self.flow.place[skip] && seen.insert(next) {
                    waiting.push(next);
                }
            }
        }
        None
    }
}
