//! What runs where: verdicts of execution targets on a model's nodes, and the parts of the network they belong to.

mod conditions;
mod flow;
mod parts;
mod patterns;
mod places;
mod rules;
mod tables;
mod target;
mod text;
mod verdict;

use std::collections::{BTreeMap, HashMap};

use self::{
    flow::Flow,
    places::{Place, Scopes, Within},
    tables::Tables,
};
pub use self::{
    parts::{Part, Parts, parts},
    rules::{Rules, Source},
    tables::{
        Analysis, Classification, Component, Coverage, Information, Metadata, OperatorRow, PartRow,
        TargetResult, TargetRow, UnassignedNode,
    },
    target::Target,
    verdict::{Judgement, Verdict},
};
use crate::{Model, Result, Types};

/// Says of every node of the models (their names are what the tables show) whether each target runs it, by the rules that
/// the crate carries. Nodes of sub-graphs and of functions are judged and counted like any other.
///
/// Fails only with [`Error::Rules`](crate::Error::Rules).
pub fn analyze(models: &[(&str, &Model, &Types)], targets: &[Target]) -> Result<Analysis> {
    let rules: Vec<Rules> = targets.iter().map(|target| Rules::built_in(*target)).collect::<Result<_>>()?;
    Ok(analyze_with(models, &rules))
}

/// [`analyze`] by rules of the caller's own.
pub fn analyze_with(models: &[(&str, &Model, &Types)], rules: &[Rules]) -> Analysis {
    let mut tables = Tables::new(rules);
    for (name, model, types) in models {
        let flow = Flow::new(model);
        let found = patterns::find(&flow, types);
        let parts = parts::parts_in(&flow, types, &found, &parts::output_names(model));
        let mut detected = BTreeMap::new();
        for found in &found {
            *detected.entry(found.kind.name().to_owned()).or_insert(0_usize) += 1;
        }
        let scopes = Scopes::new(model, types);
        let places: Vec<Place<'_>> = scopes.places().collect();
        let judgements: Vec<Vec<Judgement>> =
            rules.iter().map(|rules| judge_all(model, &places, rules)).collect();
        tables.add(name, model, &places, &judgements, &parts, detected);
    }
    tables.finish()
}

/// The judgement on each node. A call of one of the model's functions fares as the worst node in it.
fn judge_all(model: &Model, places: &[Place<'_>], rules: &Rules) -> Vec<Judgement> {
    let functions = &model.proto().functions;
    let by_name: HashMap<(&str, &str), usize> = (functions.iter().enumerate())
        .map(|(at, f)| ((f.domain.as_deref().unwrap_or_default(), f.name.as_deref().unwrap_or_default()), at))
        .collect();
    let called = |place: &Place<'_>| by_name.get(&(place.domain(), place.operator())).copied();
    let supported = || Judgement::new(Verdict::Supported, "", true);
    let mut worst = vec![supported(); functions.len()];
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    let mut open_calls = vec![0_usize; functions.len()];
    let mut found: Vec<Judgement> = Vec::with_capacity(places.len());
    for place in places {
        let callee = called(place);
        let judgement = if callee.is_some() { supported() } else { rules.judge(place) };
        match (place.within, callee) {
            (Within::Function(at), Some(callee)) => {
                callers[callee].push(at);
                open_calls[at] += 1;
            }
            (Within::Function(at), None) => {
                worsen(&mut worst[at], &judgement, &format!("{} in the function: ", place.operator()));
            }
            _ => {}
        }
        found.push(judgement);
    }
    // Each function behind those that it calls.
    let mut ready: Vec<usize> = (0..functions.len()).filter(|&at| open_calls[at] == 0).collect();
    while let Some(callee) = ready.pop() {
        let judgement = worst[callee].clone();
        for &caller in &callers[callee] {
            worsen(&mut worst[caller], &judgement, "");
            open_calls[caller] -= 1;
            if open_calls[caller] == 0 {
                ready.push(caller);
            }
        }
    }
    let endless = Judgement::new(Verdict::Unknown, "the function calls itself", false);
    for (place, judgement) in places.iter().zip(&mut found) {
        if let Some(callee) = called(place) {
            *judgement = if open_calls[callee] > 0 { endless.clone() } else { worst[callee].clone() };
        }
    }
    found
}

fn worsen(worst: &mut Judgement, other: &Judgement, before: &str) {
    if other.verdict > worst.verdict {
        *worst = Judgement::new(other.verdict, format!("{before}{}", other.reason), other.checked);
    }
}
