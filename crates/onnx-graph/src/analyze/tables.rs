//! The two tables: by component and by operator.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Judgement, Part, Parts, Rules, Source, Verdict, places::Place, places::Within};
use crate::{ElementType, Model};

/// What [`analyze`](super::analyze) found. It serialises to JSON, and its `Display` is tables of at most 100 columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Analysis {
    /// The targets, in the order they were given, with the sources of their rules.
    pub targets: Vec<TargetRow>,
    /// A row for each model, in the order they were given.
    pub components: Vec<Component>,
    /// A row for each operator of all models together, the most frequent first.
    pub operators: Vec<OperatorRow>,
}

/// A target and where its rules come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TargetRow {
    /// The name, such as `QNN/NPU`.
    pub target: String,
    /// The documents.
    pub sources: Vec<Source>,
    /// What to know of the verdicts; often empty.
    pub note: String,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Component {
    /// The name that the caller gave.
    pub name: String,
    /// What it is made of.
    pub metadata: Metadata,
    /// For each target, in the order of [`Analysis::targets`].
    pub results: Vec<TargetResult>,
    /// Nodes of the main graph and its sub-graphs by part of the network.
    pub parts: Vec<PartRow>,
    /// Nodes of the main graph whose part could not be told.
    pub unassigned: Vec<UnassignedNode>,
}

/// What a model is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The standard operator set that is imported.
    pub opset_version: Option<i64>,
    /// The exporter, where it is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_name: Option<String>,
    /// The exporter's version, where it is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_version: Option<String>,
    /// Nodes of the main graph, of sub-graphs and of functions: the sum of `operator_counts`.
    pub total_operators: usize,
    /// Of those, nodes of sub-graphs.
    pub in_sub_graphs: usize,
    /// Of those, nodes of functions (and of sub-graphs there).
    pub in_functions: usize,
    /// Nodes of each operator; outside the standard set as `domain:Operator`.
    pub operator_counts: BTreeMap<String, usize>,
    /// Number of different operators.
    pub unique_operator_types: usize,
    /// Operators that are written as several nodes, found in the main graph.
    pub detected_pattern_count: BTreeMap<String, usize>,
}

/// What one target does with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetResult {
    /// The target's name.
    pub target: String,
    /// The execution provider, or the engine.
    pub ep_type: String,
    /// The kind of device.
    pub device_type: String,
    /// True where there are nodes, and none is partial, unsupported or unknown.
    pub runtime_support: bool,
    /// True where a node is unsupported.
    pub has_errors: bool,
    /// True where a node is partial or unknown.
    pub has_warnings: bool,
    /// Nodes by verdict.
    pub coverage: Coverage,
    /// Operators by verdict, as `OP/<domain>/<Operator>`; one may stand in several lists.
    pub classification: Classification,
    /// Why nodes are not supported.
    pub information: Vec<Information>,
}

/// Nodes by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Coverage {
    /// Supported ones.
    pub mapped: usize,
    /// Partial ones.
    pub partial: usize,
    /// Unsupported and unknown ones together.
    pub unmapped: usize,
    /// Unsupported ones.
    pub unsupported: usize,
    /// Unknown ones.
    pub unknown: usize,
    /// Share of nodes, 0 to 1, for which there is a rule and all that it asks for was known: types, shapes, weights.
    pub confidence: f64,
}

/// Operators by verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Classification {
    /// With a supported node.
    pub supported: BTreeSet<String>,
    /// With a partial node.
    pub partial: BTreeSet<String>,
    /// With an unsupported node.
    pub unsupported: BTreeSet<String>,
    /// With an unknown node.
    pub unknown: BTreeSet<String>,
}

/// Why nodes of an operator are not supported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Information {
    /// The operator, as `OP/<domain>/<Operator>`.
    pub pattern_id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Number of nodes.
    pub nodes: usize,
}

/// One part of a model's network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartRow {
    /// The part; `None` for what could not be told.
    pub part: Option<Part>,
    /// Its nodes, those of sub-graphs included.
    pub nodes: usize,
    /// For each target, in the order of [`Analysis::targets`].
    pub coverage: Vec<Coverage>,
}

/// A node whose part could not be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnassignedNode {
    /// Place in the main graph.
    pub index: usize,
    /// Operator.
    pub operator: String,
    /// The node's name, or its first output's where it has none.
    pub name: String,
}

/// One operator over all models.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OperatorRow {
    /// Domain; `ai.onnx` for the standard operators.
    pub domain: String,
    /// The operator.
    pub operator: String,
    /// Number of nodes.
    pub count: usize,
    /// Element types of the nodes' first outputs, the most frequent first; `undefined` where not known.
    pub element_types: Vec<(String, usize)>,
    /// The worst verdict of each target, in the order of [`Analysis::targets`].
    pub verdicts: Vec<Verdict>,
    /// Nodes by verdict of each target.
    pub coverage: Vec<Coverage>,
}

impl Coverage {
    fn add(&mut self, judgement: &Judgement) {
        match judgement.verdict {
            Verdict::Supported => self.mapped += 1,
            Verdict::Partial => self.partial += 1,
            Verdict::Unsupported => self.unsupported += 1,
            Verdict::Unknown => self.unknown += 1,
        }
        self.unmapped = self.unsupported + self.unknown;
        // Until `finish`, the number of nodes.
        self.confidence += f64::from(u8::from(judgement.checked));
    }

    fn finish(&mut self) {
        let nodes = self.nodes();
        self.confidence = if nodes == 0 { 0.0 } else { (self.confidence * 1e4 / nodes as f64).round() / 1e4 };
    }

    /// All nodes.
    pub fn nodes(&self) -> usize {
        self.mapped + self.partial + self.unmapped
    }

    /// The worst verdict there is.
    pub fn worst(&self) -> Verdict {
        let some = [
            (self.unknown, Verdict::Unknown),
            (self.unsupported, Verdict::Unsupported),
            (self.partial, Verdict::Partial),
        ];
        some.into_iter().find(|(nodes, _)| *nodes > 0).map_or(Verdict::Supported, |(_, verdict)| verdict)
    }
}

/// Element types and coverage of one operator, while they are counted.
type OperatorCount = (BTreeMap<ElementType, usize>, Vec<Coverage>);

/// Collects the tables model by model.
pub(super) struct Tables<'r> {
    rules: &'r [Rules],
    components: Vec<Component>,
    operators: BTreeMap<(String, String), OperatorCount>,
}

impl<'r> Tables<'r> {
    pub(super) fn new(rules: &'r [Rules]) -> Self {
        Self { rules, components: Vec::new(), operators: BTreeMap::new() }
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        model: &Model,
        places: &[Place<'_>],
        judgements: &[Vec<Judgement>],
        parts: &Parts,
        detected: BTreeMap<String, usize>,
    ) {
        let mut operator_counts = BTreeMap::new();
        let mut by_part: BTreeMap<Option<Part>, (usize, Vec<Coverage>)> = BTreeMap::new();
        let none = || vec![Coverage::default(); self.rules.len()];
        for (at, place) in places.iter().enumerate() {
            let (domain, operator) = (place.domain(), place.operator());
            let key = if domain.is_empty() { operator.to_owned() } else { format!("{domain}:{operator}") };
            *operator_counts.entry(key).or_insert(0_usize) += 1;
            let row = (self.operators.entry((domain.to_owned(), operator.to_owned())))
                .or_insert_with(|| (BTreeMap::new(), none()));
            let output = place.node.output.iter().find(|output| !output.is_empty());
            let element = output
                .and_then(|output| place.value(output))
                .map_or(ElementType::Undefined, |v| v.element_type);
            *row.0.entry(element).or_default() += 1;
            row.1.iter_mut().zip(judgements).for_each(|(coverage, of)| coverage.add(&of[at]));
            if let Within::Main(main) | Within::SubGraph(main) = place.within {
                let part = by_part.entry(parts.of(main)).or_insert_with(|| (0, none()));
                part.0 += 1;
                part.1.iter_mut().zip(judgements).for_each(|(coverage, of)| coverage.add(&of[at]));
            }
        }
        let count =
            |wanted: &dyn Fn(Within) -> bool| places.iter().filter(|place| wanted(place.within)).count();
        let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let metadata = Metadata {
            opset_version: model.opset(""),
            producer_name: named(&model.proto().producer_name),
            producer_version: named(&model.proto().producer_version),
            total_operators: places.len(),
            in_sub_graphs: count(&|within| matches!(within, Within::SubGraph(_))),
            in_functions: count(&|within| matches!(within, Within::Function(_))),
            unique_operator_types: operator_counts.len(),
            operator_counts,
            detected_pattern_count: detected,
        };
        let results =
            self.rules.iter().zip(judgements).map(|(rules, of)| result(rules, places, of)).collect();
        // `None` sorts first; what could not be told goes last.
        let unknown = by_part.remove(&None).map(|row| (None, row));
        let rows = by_part.into_iter().chain(unknown).map(|(part, (nodes, mut coverage))| {
            coverage.iter_mut().for_each(Coverage::finish);
            PartRow { part, nodes, coverage }
        });
        let unassigned = parts.unassigned().into_iter().filter_map(|index| {
            let node = model.graph().node.get(index)?;
            let name = node.name.as_deref().filter(|name| !name.is_empty());
            let name =
                name.or_else(|| node.output.first().map(String::as_str)).unwrap_or_default().to_owned();
            Some(UnassignedNode { index, operator: node.op_type.clone().unwrap_or_default(), name })
        });
        self.components.push(Component {
            name: name.to_owned(),
            metadata,
            results,
            parts: rows.collect(),
            unassigned: unassigned.collect(),
        });
    }

    pub(super) fn finish(self) -> Analysis {
        let mut operators: Vec<OperatorRow> = (self.operators.into_iter())
            .map(|((domain, operator), (types, mut coverage))| {
                coverage.iter_mut().for_each(Coverage::finish);
                let mut element_types: Vec<(String, usize)> =
                    types.into_iter().map(|(element, count)| (element.to_string(), count)).collect();
                element_types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                OperatorRow {
                    domain: if domain.is_empty() { "ai.onnx".to_owned() } else { domain },
                    operator,
                    count: element_types.iter().map(|(_, count)| count).sum(),
                    element_types,
                    verdicts: coverage.iter().map(Coverage::worst).collect(),
                    coverage,
                }
            })
            .collect();
        operators.sort_by_key(|row| std::cmp::Reverse(row.count));
        let row = |rules: &Rules| TargetRow {
            target: rules.target().to_owned(),
            sources: rules.sources().to_vec(),
            note: rules.note().to_owned(),
        };
        Analysis { targets: self.rules.iter().map(row).collect(), components: self.components, operators }
    }
}

fn result(rules: &Rules, places: &[Place<'_>], judgements: &[Judgement]) -> TargetResult {
    let mut coverage = Coverage::default();
    let mut classification = Classification::default();
    let mut reasons: BTreeMap<(String, Verdict, String), usize> = BTreeMap::new();
    for (place, judgement) in places.iter().zip(judgements) {
        coverage.add(judgement);
        let domain = if place.domain().is_empty() { "ai.onnx" } else { place.domain() };
        let id = format!("OP/{domain}/{}", place.operator());
        let list = match judgement.verdict {
            Verdict::Supported => &mut classification.supported,
            Verdict::Partial => &mut classification.partial,
            Verdict::Unsupported => &mut classification.unsupported,
            Verdict::Unknown => &mut classification.unknown,
        };
        list.insert(id.clone());
        if judgement.verdict != Verdict::Supported {
            *reasons.entry((id, judgement.verdict, judgement.reason.clone())).or_default() += 1;
        }
    }
    coverage.finish();
    let (ep, device) = rules.target().split_once('/').unwrap_or((rules.target(), ""));
    let device =
        super::Target::ALL.iter().find(|t| t.to_string() == rules.target()).map_or(device, |t| t.device());
    TargetResult {
        target: rules.target().to_owned(),
        ep_type: ep.to_owned(),
        device_type: device.to_owned(),
        runtime_support: coverage.mapped > 0 && coverage.worst() == Verdict::Supported,
        has_errors: coverage.unsupported > 0,
        has_warnings: coverage.partial + coverage.unknown > 0,
        coverage,
        classification,
        information: (reasons.into_iter())
            .map(|((pattern_id, verdict, reason), nodes)| Information { pattern_id, verdict, reason, nodes })
            .collect(),
    }
}
