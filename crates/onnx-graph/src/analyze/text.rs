//! The tables as text of at most 100 columns.

use std::{collections::BTreeMap, fmt};

use super::{Analysis, Component, OperatorRow, Verdict, tables::Coverage};

/// Columns of a page.
const WIDTH: usize = 100;
/// Unassigned nodes that are listed by name.
const LISTED: usize = 20;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "BY COMPONENT")?;
        writeln!(
            f,
            "mapped: supported. unmapped: unsupported or unknown. confidence: share of nodes with a rule"
        )?;
        writeln!(f, "whose every condition (types, shapes, weights, attributes) could be checked.")?;
        for component in &self.components {
            writeln!(f)?;
            self.component(f, component)?;
        }
        writeln!(f, "\nBY OPERATOR (all components; the worst verdict on its nodes)")?;
        self.operator_table(f)?;
        self.reasons(f)?;
        writeln!(f, "\nSOURCES OF THE RULES")?;
        for target in &self.targets {
            for source in &target.sources {
                let text = format!("{} ({}), {}", source.title, source.version, source.address);
                wrapped(f, &format!("{:<15}", target.target), &text)?;
            }
            if !target.note.is_empty() {
                wrapped(
                    f,
                    &format!("{:<15}", if target.sources.is_empty() { &target.target } else { "" }),
                    &target.note,
                )?;
            }
        }
        Ok(())
    }
}

impl Analysis {
    fn component(&self, f: &mut fmt::Formatter<'_>, component: &Component) -> fmt::Result {
        let about = &component.metadata;
        let mut text =
            vec![format!("{} nodes of {} operators", about.total_operators, about.unique_operator_types)];
        if about.in_sub_graphs + about.in_functions > 0 {
            text.push(format!(
                "{} of them in sub-graphs, {} in functions",
                about.in_sub_graphs, about.in_functions
            ));
        }
        text.extend(about.opset_version.map(|opset| format!("operator set {opset}")));
        let producer = [&about.producer_name, &about.producer_version].into_iter().flatten();
        let producer: Vec<&str> = producer.map(String::as_str).collect();
        if !producer.is_empty() {
            text.push(format!("by {}", producer.join(" ")));
        }
        wrapped(f, &format!("{}: ", component.name), &text.join(", "))?;
        if !about.detected_pattern_count.is_empty() {
            let found: Vec<String> =
                about.detected_pattern_count.iter().map(|(id, n)| format!("{n} {id}")).collect();
            wrapped(f, "  patterns: ", &found.join(", "))?;
        }
        writeln!(
            f,
            "  {:<16}{:>8}{:>9}{:>10}{:>13}{:>9}{:>12}{:>7}",
            "target", "mapped", "partial", "unmapped", "unsupported", "unknown", "confidence", "runs"
        )?;
        for result in &component.results {
            let Coverage { mapped, partial, unmapped, unsupported, unknown, confidence } = result.coverage;
            let runs = if result.runtime_support { "yes" } else { "no" };
            let target = clipped(&result.target, 15);
            let share = format!("{:.1} %", confidence * 100.0);
            writeln!(
                f,
                "  {target:<16}{mapped:>8}{partial:>9}{unmapped:>10}{unsupported:>13}{unknown:>9}{share:>12}{runs:>7}"
            )?;
        }
        if component.parts.iter().any(|row| row.part.is_some()) {
            self.part_table(f, component)?;
        }
        Ok(())
    }

    /// Mapped nodes of each part, for as many targets as there is room for.
    fn part_table(&self, f: &mut fmt::Formatter<'_>, component: &Component) -> fmt::Result {
        let label = 30;
        let mut first = 0;
        while first < self.targets.len() {
            let shown: Vec<usize> = (first..self.targets.len()).take((WIDTH - label) / 5).collect();
            write!(f, "  {:<22}{:>6}", "mapped, by part", "nodes")?;
            for &at in &shown {
                write!(f, "{:>5}", short(&self.targets[at].target))?;
            }
            writeln!(f)?;
            for row in &component.parts {
                let part = row.part.map_or_else(|| "(unassigned)".to_owned(), |part| part.to_string());
                write!(f, "  {part:<22}{:>6}", row.nodes)?;
                shown.iter().try_for_each(|&at| write!(f, "{:>5}", row.coverage[at].mapped))?;
                writeln!(f)?;
            }
            first += shown.len();
        }
        let listed: Vec<String> = component
            .unassigned
            .iter()
            .take(LISTED)
            .map(|node| format!("{} ({})", clipped(&node.name, 60), node.operator))
            .collect();
        match component.unassigned.len() {
            0 => Ok(()),
            all if all > LISTED => {
                wrapped(f, "  unassigned: ", &format!("{} and {} more", listed.join(", "), all - LISTED))
            }
            _ => wrapped(f, "  unassigned: ", &listed.join(", ")),
        }
    }

    fn operator_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            self.targets.iter().map(|t| format!("{} {}", short(&t.target), t.target)).collect();
        wrapped(f, "columns: ", &names.join(", "))?;
        let label = 44;
        let mut first = 0;
        while first < self.targets.len() || (first == 0 && self.targets.is_empty()) {
            let shown: Vec<usize> = (first..self.targets.len()).take((WIDTH - label) / 4).collect();
            write!(f, "{:<25}{:>6} {:<12}", "operator", "nodes", "type")?;
            for &at in &shown {
                write!(f, "{:>4}", short(&self.targets[at].target))?;
            }
            writeln!(f)?;
            for row in &self.operators {
                let element = row.element_types.first().map_or("", |(element, _)| element);
                write!(f, "{:<25}{:>6} {:<12}", clipped(&name(row), 24), row.count, clipped(element, 11))?;
                for &at in &shown {
                    write!(
                        f,
                        "{:>4}",
                        match row.verdicts[at] {
                            Verdict::Supported => "yes",
                            Verdict::Partial => "par",
                            Verdict::Unsupported => "no",
                            Verdict::Unknown => "?",
                        }
                    )?;
                }
                writeln!(f)?;
            }
            first += shown.len().max(1);
        }
        Ok(())
    }

    /// Why operators are partial or unsupported, or could not be checked; where there is no rule, only the operators.
    fn reasons(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nREASONS (nodes)")?;
        for (at, target) in self.targets.iter().enumerate() {
            let mut by_reason: BTreeMap<(Verdict, &str), BTreeMap<&str, usize>> = BTreeMap::new();
            for information in self.components.iter().flat_map(|c| &c.results[at].information) {
                let operators = by_reason.entry((information.verdict, &information.reason)).or_default();
                let operator = information.pattern_id.strip_prefix("OP/").unwrap_or_default();
                let operator = operator.strip_prefix("ai.onnx/").unwrap_or(operator);
                *operators.entry(operator).or_default() += information.nodes;
            }
            for ((verdict, reason), operators) in by_reason {
                let list: Vec<String> =
                    operators.iter().map(|(name, nodes)| format!("{name} {nodes}")).collect();
                wrapped(
                    f,
                    &format!("{:<15}{verdict:<12}", target.target),
                    &format!("{reason}: {}", list.join(", ")),
                )?;
            }
        }
        Ok(())
    }
}

fn name(row: &OperatorRow) -> String {
    if row.domain == "ai.onnx" { row.operator.clone() } else { format!("{}:{}", row.domain, row.operator) }
}

/// A target in three letters.
fn short(target: &str) -> String {
    let known = match target {
        "NvTensorRT/GPU" => "TRT",
        "QNN/NPU" => "QNn",
        "QNN/GPU" => "QNg",
        "OpenVINO/NPU" => "OVn",
        "OpenVINO/GPU" => "OVg",
        "OpenVINO/CPU" => "OVc",
        "CUDA/GPU" => "CUD",
        "MIGraphX/GPU" => "MGX",
        "DML/GPU" => "DML",
        "CPU/CPU" => "CPU",
        "VitisAI/NPU" => "VAI",
        "CoreML" => "CML",
        "XNNPACK" => "XNN",
        "rten" => "rtn",
        other => return other.chars().take(3).collect(),
    };
    known.to_owned()
}

fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(2)).chain("..".chars()).collect()
}

/// Text behind a label, with further lines under its start.
fn wrapped(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    let indent = label.chars().count().min(WIDTH / 2);
    let mut line = label.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{}", line.trim_end())?;
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(f, "{}", line.trim_end())
}
