use std::{collections::BTreeMap, fmt};

use onnx_graph::Port;

use crate::{ContractRule, Error, GraphFile, Result, unify::unify};

/// One input of the decoder and the encoder's output that feeds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Wire {
    /// The decoder's input.
    pub input: String,
    /// The encoder's output.
    pub output: String,
    /// What says so.
    pub settled_by: SettledBy,
}

/// What says that an output feeds an input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SettledBy {
    /// They have the same name, and no unused output would fit as well.
    Name,
    /// A contract rule, by its name.
    Contract(String),
    /// The application.
    Caller,
}

impl fmt::Display for SettledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("by name"),
            Self::Contract(rule) => write!(f, "by the contract rule {rule}"),
            Self::Caller => f.write_str("by the application"),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <- {} ({})", self.input, self.output, self.settled_by)
    }
}

/// How the ports of two graphs are joined: what the application says, then contract rules, then equal names.
#[derive(Debug, Clone, Default)]
pub struct Wiring {
    given: BTreeMap<String, String>,
    rules: Vec<ContractRule>,
}

impl Wiring {
    /// With nothing from the application: the contract rules that come with the crate, then equal names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds a decoder input from this encoder output, whatever rules and names say.
    #[must_use]
    pub fn wire(mut self, input: impl Into<String>, output: impl Into<String>) -> Self {
        self.given.insert(input.into(), output.into());
        self
    }

    /// A contract rule of the application's own. It is asked before those that come with the crate.
    #[must_use]
    pub fn rule(mut self, rule: ContractRule) -> Self {
        self.rules.push(rule);
        self
    }

    pub(crate) fn resolve(&self) -> Result<Resolved<'_>> {
        let rules = self.rules.iter().cloned().chain(ContractRule::built_in()?).collect();
        Ok(Resolved { given: &self.given, rules })
    }
}

/// A wiring with all of its rules.
#[derive(Debug)]
pub(crate) struct Resolved<'w> {
    /// Decoder inputs with the output that feeds each, from the application.
    given: &'w BTreeMap<String, String>,
    /// In the order in which they are asked.
    rules: Vec<ContractRule>,
}

impl Resolved<'_> {
    /// The ports that join two graphs, as (output, input, what says so), sorted by the input's name.
    pub(crate) fn join<'g>(
        &self,
        encoder: &'g GraphFile,
        decoder: &'g GraphFile,
    ) -> Vec<(&'g Port, &'g Port, SettledBy)> {
        let rules: Vec<&ContractRule> =
            self.rules.iter().filter(|rule| rule.applies(encoder, decoder)).collect();
        let mut joined = Vec::new();
        for input in &decoder.inputs {
            let given = self.given.get(&input.name).map(|output| (output, SettledBy::Caller));
            let ruled = || {
                rules.iter().find_map(|rule| {
                    Some((rule.wires.get(&input.name)?, SettledBy::Contract(rule.name.clone())))
                })
            };
            let (output, settled_by) = given.or_else(ruled).unwrap_or((&input.name, SettledBy::Name));
            if let Some(output) = encoder.output(output) {
                joined.push((output, input, settled_by));
            }
        }
        joined.sort_by(|(_, a, _), (_, b, _)| a.name.cmp(&b.name));
        joined
    }

    /// The first wire of the application's that leads from or to nowhere, as (input, output).
    pub(crate) fn loose_end(&self, encoder: &GraphFile, decoder: &GraphFile) -> Option<(&str, &str)> {
        let loose = |(i, o): &(&String, &String)| decoder.input(i).is_none() || encoder.output(o).is_none();
        self.given.iter().find(loose).map(|(i, o)| (i.as_str(), o.as_str()))
    }
}

/// A name is not enough: refuse where an unused output fits a port that names alone join.
///
/// Releases from publisher version 0.58.0 on are like that (`image_embeddings` beside `pix_feat`), and joining them by
/// name gives wrong masks without an error.
pub(crate) fn check(encoder: &GraphFile, wires: &[Wire]) -> Result<()> {
    let used = |port: &Port| wires.iter().any(|wire| wire.output == port.name);
    for wire in wires.iter().filter(|wire| wire.settled_by == SettledBy::Name) {
        let Some(consumed) = encoder.output(&wire.output) else { continue };
        // Sizes that are left open may turn out to be the same.
        let fits = |port: &&Port| !used(port) && unify([(*port, consumed)]).is_ok();
        if let Some(other) = encoder.outputs.iter().find(fits) {
            let ends = [&other.name, &wire.output];
            let derived = encoder.offsets.iter().any(|o| ends.contains(&&o.output) && ends.contains(&&o.of));
            return Err(Error::AmbiguousWiring {
                encoder: encoder.path.clone(),
                consumed: wire.input.clone(),
                other: other.name.clone(),
                derived,
            });
        }
    }
    Ok(())
}
