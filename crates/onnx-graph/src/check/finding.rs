use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing, and no fault.
    Note,
    /// The model may run, and may not do what was meant.
    Warning,
    /// The model breaks a rule of ONNX: engines refuse it, or each does something else.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Declares the rules once: variant, name in print, what it means.
macro_rules! rules {
    ($($variant:ident, $name:literal, $meaning:literal;)+) => {
        /// What a [`Finding`] is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $meaning] $variant,)+
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $name,)+ })
            }
        }
    };
}

rules! {
    IrVersion, "ir-version", "The IR version is missing, unknown, or does not go with what the model holds.";
    Opset, "opset", "An operator set is missing, unknown, or imported twice in different versions.";
    Domain, "domain", "A node's domain is not imported, or nothing is known of its operators.";
    Operator, "operator", "The operator does not exist in the imported version of its set.";
    Arity, "arity", "A node has more or fewer inputs or outputs than its operator takes.";
    Attribute, "attribute", "An attribute is unknown, missing, repeated, or of another kind than it says or should be.";
    ElementType, "element-type", "A value's element type is unknown, not allowed here, or not what is recorded of it.";
    Name, "name", "Something that needs a name has none, or a node's name is used twice.";
    Port, "port", "An input or output of the model has no type or no shape.";
    DefinedTwice, "defined-twice", "A value, initializer, function or key is defined more than once.";
    Undefined, "undefined", "A value is used that nothing gives.";
    Order, "order", "A value is used before the node that gives it.";
    Cycle, "cycle", "A value depends on itself.";
    Output, "output", "A graph's output is not produced in it.";
    Unused, "unused", "An input or initializer is used by nothing.";
    Shadow, "shadow", "A name of a sub-graph hides a value of the graph around it.";
    Recorded, "recorded", "A type is recorded for a value that does not exist, or twice, or another than the graph gives.";
    Tensor, "tensor", "A tensor's values are not what its dims and type say.";
    ExternalData, "external-data", "A tensor's sidecar breaks a rule, or cannot be read.";
    NotRead, "not-read", "Values were not looked at.";
    NonFinite, "non-finite", "A weight holds NaN or infinities.";
    Duplicate, "duplicate", "Two initializers hold the same values.";
    Sparse, "sparse", "A sparse tensor's indices do not go with its dims and values.";
    Function, "function", "A model-local function is not well formed.";
    Engine, "engine", "The engine that was asked about cannot run the model.";
}

/// The node that a [`Finding`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingNode {
    /// Its name, often empty.
    pub name: String,
    /// Its operator.
    pub op_type: String,
    /// Its place among the nodes of its graph, from 0.
    pub index: usize,
}

/// Something found in a model.
///
/// Its printed form is one line. Names are shortened to 200 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub rule: Rule,
    /// The model, by the path or label that the caller gave.
    pub graph: String,
    /// Where in the model: empty for the main graph, else the way to the sub-graph (`3.then_branch`: attribute of
    /// node 3), function (`function domain:name`) or training graph.
    pub scope: String,
    /// The node, where it is one.
    pub node: Option<FindingNode>,
    /// The value or tensor, where it is one.
    pub value: Option<String>,
    /// What is found, in words.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, OneLine(&self.graph))?;
        if !self.scope.is_empty() {
            write!(f, ": {}", OneLine(&self.scope))?;
        }
        if let Some(node) = &self.node {
            write!(f, ": node {} {}", node.index, OneLine(&node.op_type))?;
            if !node.name.is_empty() {
                write!(f, " `{}`", OneLine(&node.name))?;
            }
        }
        if let Some(value) = &self.value {
            write!(f, ": `{}`", OneLine(value))?;
        }
        write!(f, ": {} [{}]", OneLine(&self.message), self.rule)
    }
}

/// Text of a model, with what would break the line, or hide, written as escapes.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\'' | '"' | '\\' => f.write_char(c),
            c => write!(f, "{}", c.escape_debug()),
        })
    }
}

/// Findings of one rule and severity that are kept: a model of a million broken nodes needs no million lines.
const KEPT: usize = 100;
/// Characters of a name that are kept.
const NAME: usize = 200;

/// Findings of one model while they are gathered.
#[derive(Debug)]
pub(super) struct Findings {
    graph: String,
    kept: Vec<Finding>,
    counts: BTreeMap<(Severity, Rule), usize>,
}

/// Where a finding is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct At<'a> {
    pub(super) scope: &'a str,
    /// Name, operator and index.
    pub(super) node: Option<(&'a str, &'a str, usize)>,
    pub(super) value: Option<&'a str>,
}

impl<'a> At<'a> {
    pub(super) fn value(self, value: &'a str) -> Self {
        Self { value: Some(value), ..self }
    }
}

impl Findings {
    pub(super) fn new(graph: String) -> Self {
        Self { graph, kept: Vec::new(), counts: BTreeMap::new() }
    }

    /// Adds a finding; its words are only put together where it is kept.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        rule: Rule,
        at: At<'_>,
        message: impl FnOnce() -> String,
    ) {
        let count = self.counts.entry((severity, rule)).or_default();
        *count += 1;
        if *count <= KEPT {
            let finding = Finding {
                severity,
                rule,
                graph: self.graph.clone(),
                scope: short(at.scope),
                node: at.node.map(|(name, op_type, index)| FindingNode {
                    name: short(name),
                    op_type: short(op_type),
                    index,
                }),
                value: at.value.map(short),
                message: message(),
            };
            self.kept.push(finding);
        }
    }

    pub(super) fn error(&mut self, rule: Rule, at: At<'_>, message: impl FnOnce() -> String) {
        self.add(Severity::Error, rule, at, message);
    }

    pub(super) fn warning(&mut self, rule: Rule, at: At<'_>, message: impl FnOnce() -> String) {
        self.add(Severity::Warning, rule, at, message);
    }

    pub(super) fn note(&mut self, rule: Rule, at: At<'_>, message: impl FnOnce() -> String) {
        self.add(Severity::Note, rule, at, message);
    }

    /// The findings in their order, and a line for those that were left out.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        let more = self.counts.into_iter().filter(|(_, count)| *count > KEPT);
        self.kept.extend(more.map(|((severity, rule), count)| Finding {
            severity,
            rule,
            graph: self.graph.clone(),
            scope: String::new(),
            node: None,
            value: None,
            message: format!("{} more of this kind", count - KEPT),
        }));
        self.kept
    }
}

/// A name as findings keep it.
pub(super) fn short(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        None => name.to_owned(),
        Some((end, _)) => {
            let mut short = name.get(..end).unwrap_or_default().to_owned();
            // Writing to a string never fails.
            let _ = write!(short, "... ({} bytes)", name.len());
            short
        }
    }
}
