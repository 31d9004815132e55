use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a target runs an operator, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A rule says so, and everything it asks for holds.
    Supported,
    /// With a restriction that the reason names.
    Partial,
    /// A rule says not, or says in which forms, and this is none of them.
    Unsupported,
    /// No rule speaks of it, or what a rule asks for is not known.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Supported => "supported",
            Self::Partial => "partial",
            Self::Unsupported => "unsupported",
            Self::Unknown => "unknown",
        })
    }
}

/// The verdict on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not supported; empty where it is.
    pub reason: String,
    /// True where a rule was found and all that it asks for could be checked.
    pub checked: bool,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, reason: impl Into<String>, checked: bool) -> Self {
        Self { verdict, reason: reason.into(), checked }
    }
}
