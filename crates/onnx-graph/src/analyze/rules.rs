use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    Judgement, Target, Verdict,
    conditions::{Conditions, Holds},
    places::Place,
};
use crate::{Error, Result};

/// Bytes of a rule file that are read at most.
const MAX_BYTES: usize = 4 << 20;
/// Operators that the rules of a file may name in all.
const MAX_OPERATORS: usize = 100_000;

/// Where the facts of a rule file come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Source {
    /// Title of the document.
    pub title: String,
    /// Address of a public page.
    pub address: String,
    /// Version of the document or of the software, or the date on which it was consulted.
    pub version: String,
}

/// Rules of one target: which operators it runs, in which forms.
///
/// The format of rule files is described in `rules/README.md` of the crate's source.
#[derive(Debug, Clone)]
pub struct Rules {
    target: String,
    sources: Vec<Source>,
    note: String,
    newest_opsets: BTreeMap<String, i64>,
    by_operator: HashMap<(String, String), Vec<Arc<Rule>>>,
}

#[derive(Debug)]
struct Rule {
    opsets: RangeInclusive<i64>,
    verdict: Verdict,
    reason: String,
    when: Conditions,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    target: String,
    sources: Vec<Source>,
    #[serde(default)]
    note: String,
    #[serde(default)]
    newest_opsets: BTreeMap<String, i64>,
    #[serde(default)]
    types: BTreeMap<String, Vec<String>>,
    rules: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    operators: Vec<String>,
    #[serde(default)]
    domain: String,
    #[serde(default)]
    opsets: Opsets,
    verdict: Verdict,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    when: Conditions,
}

/// `13`, `9-12`, `13-`; any where it is left out.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Opsets(RangeInclusive<i64>);

impl Default for Opsets {
    fn default() -> Self {
        Self(0..=i64::MAX)
    }
}

impl TryFrom<String> for Opsets {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no range of operator sets, such as 9-12 or 13-");
        let number = |n: &str| n.parse::<i64>().ok().filter(|n| *n >= 0);
        let (from, to) = match text.split_once('-') {
            None => (number(&text), number(&text)),
            Some((from, "")) => (number(from), Some(i64::MAX)),
            Some((from, to)) => (number(from), number(to)),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to => Ok(Self(from..=to)),
            _ => Err(wrong()),
        }
    }
}

impl Rules {
    /// The rules that the crate carries for a target.
    pub fn built_in(target: Target) -> Result<Self> {
        Self::parse(target.rule_file(), &format!("the built-in rules of {target}"))
    }

    /// Rules from the text of a rule file, of at most 4 MiB.
    ///
    /// Fails with [`Error::Rules`], which names the line.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::parse(text, "the given rules")
    }

    fn parse(text: &str, origin: &str) -> Result<Self> {
        let wrong = |line, reason| Error::Rules { origin: origin.to_owned(), line, reason };
        if text.len() > MAX_BYTES {
            return Err(wrong(1, format!("{} bytes are more than {MAX_BYTES}", text.len())));
        }
        let file: RuleFile = serde_json::from_str(text).map_err(|e| wrong(e.line(), without_position(&e)))?;
        let mut by_operator: HashMap<(String, String), Vec<Arc<Rule>>> = HashMap::new();
        let mut operators = 0;
        for mut entry in file.rules {
            // serde_json knows no line by now: the first that names the operator is close.
            let at = |entry: &Entry| {
                let quoted = entry.operators.first().map(|name| format!("\"{name}\"")).unwrap_or_default();
                text.lines().position(|line| line.contains(&quoted)).map_or(1, |line| line + 1)
            };
            operators += entry.operators.len();
            if operators > MAX_OPERATORS {
                return Err(wrong(at(&entry), format!("more than {MAX_OPERATORS} operators")));
            }
            if entry.verdict != Verdict::Supported && entry.reason.is_empty() {
                return Err(wrong(at(&entry), format!("the verdict {} needs a reason", entry.verdict)));
            }
            if let Err(reason) = entry.when.resolve(&file.types) {
                return Err(wrong(at(&entry), reason));
            }
            let Entry { verdict, reason, when, opsets: Opsets(opsets), .. } = entry;
            let rule = Arc::new(Rule { opsets, verdict, reason, when });
            for operator in entry.operators {
                by_operator.entry((entry.domain.clone(), operator)).or_default().push(Arc::clone(&rule));
            }
        }
        let (sources, note, newest_opsets) = (file.sources, file.note, file.newest_opsets);
        Ok(Self { target: file.target, sources, note, newest_opsets, by_operator })
    }

    /// The target's name, such as `QNN/NPU`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Where the rules come from.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// What a reader of the verdicts should know of them; often empty.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Operators with rules, as domain (empty for the standard one) and name, sorted.
    pub fn operators(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<(&str, &str)> =
            self.by_operator.keys().map(|(d, o)| (d.as_str(), o.as_str())).collect();
        all.sort_unstable();
        all
    }

    /// The first rule decides whose operator sets include the node's and whose conditions hold. What cannot be checked
    /// leaves the verdict unknown; where rules speak of the operator and none holds, it is not supported.
    pub(crate) fn judge(&self, place: &Place<'_>) -> Judgement {
        let (domain, operator) = (place.domain(), place.operator());
        let unknown = |reason: String| Judgement::new(Verdict::Unknown, reason, false);
        let Some(rules) = self.by_operator.get(&(domain.to_owned(), operator.to_owned())) else {
            return unknown("no rule".to_owned());
        };
        let Some(opset) = place.opset() else {
            return unknown(format!(
                "the model does not import {}",
                if domain.is_empty() { "ai.onnx" } else { domain }
            ));
        };
        if let Some(newest) = self.newest_opsets.get(domain).filter(|newest| opset > **newest) {
            return unknown(format!("the rules end at operator set {newest}, the model has {opset}"));
        }
        let mut against = None;
        for rule in rules.iter().filter(|rule| rule.opsets.contains(&opset)) {
            match rule.when.check(place) {
                Holds::Yes => return Judgement::new(rule.verdict, rule.reason.clone(), true),
                Holds::No(reason) => _ = against.get_or_insert(reason),
                Holds::Unknown(what) => return unknown(what),
            }
        }
        match against {
            Some(reason) => Judgement::new(Verdict::Unsupported, reason, true),
            None => unknown(format!("no rule for operator set {opset}")),
        }
    }
}

/// The parser's words without the line, which the error has of its own.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
