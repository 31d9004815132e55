//! Rules on wiring that names do not tell, kept as data in `contracts/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Deserialize;

use crate::{Error, GraphFile, Result, error::one_line};

/// A rule of a publisher's contract: which output of the encoder feeds an input of the decoder that has another's name.
///
/// `contracts/README.md` describes the form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ContractRule {
    /// What a composite calls the rule.
    pub name: String,
    /// The rule in a sentence.
    pub says: String,
    /// Where it is known from.
    pub source: ContractSource,
    /// The encoder's outputs, all of them.
    pub encoder_outputs: BTreeSet<String>,
    /// The decoder's inputs, all of them.
    pub decoder_inputs: BTreeSet<String>,
    /// What the encoder's graph has to show.
    pub offset: Offset,
    /// Decoder inputs with the output that feeds each.
    pub wires: BTreeMap<String, String>,
}

/// Where a contract rule is known from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ContractSource {
    /// The document or code.
    pub title: String,
    /// Its public page.
    pub address: String,
    /// Its version, or the date it was read.
    pub version: String,
}

/// An output that is another output with a constant added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Offset {
    /// The output that is computed.
    pub output: String,
    /// The output that it is computed from.
    pub of: String,
}

impl fmt::Display for ContractRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({} {})", self.name, self.says, self.source.title, self.source.version)
    }
}

const BUILT_IN: [(&str, &str); 1] =
    [("still-image-of-pix-feat.json", include_str!("../contracts/still-image-of-pix-feat.json"))];

impl ContractRule {
    /// The rules that come with the crate.
    pub fn built_in() -> Result<Vec<Self>> {
        BUILT_IN.iter().map(|(file, text)| Self::parse(text, file)).collect()
    }

    /// Reads a rule of the application's own, in the form of `contracts/README.md`.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::parse(text, "the rule")
    }

    fn parse(text: &str, what: &str) -> Result<Self> {
        let fail = |reason: String| Error::ContractRule { rule: what.to_owned(), reason: one_line(&reason) };
        let rule: Self = serde_json::from_str(text).map_err(|e| fail(e.to_string()))?;
        for (input, output) in &rule.wires {
            if !rule.decoder_inputs.contains(input) {
                return Err(fail(format!("it feeds `{input}`, which is not among its decoder_inputs")));
            }
            if !rule.encoder_outputs.contains(output) {
                return Err(fail(format!(
                    "it feeds from `{output}`, which is not among its encoder_outputs"
                )));
            }
        }
        if rule.wires.is_empty() {
            return Err(fail("it has no wires".to_owned()));
        }
        Ok(rule)
    }

    /// Whether the rule speaks of these two graphs.
    pub(crate) fn applies(&self, encoder: &GraphFile, decoder: &GraphFile) -> bool {
        let outputs: BTreeSet<&str> = encoder.outputs.iter().map(|p| p.name.as_str()).collect();
        let inputs: BTreeSet<&str> = decoder.inputs.iter().map(|p| p.name.as_str()).collect();
        outputs.iter().copied().eq(self.encoder_outputs.iter().map(String::as_str))
            && inputs.iter().copied().eq(self.decoder_inputs.iter().map(String::as_str))
            && encoder.offsets.contains(&self.offset)
    }
}
