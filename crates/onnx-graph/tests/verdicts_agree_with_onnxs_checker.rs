//! Small broken models, one fault each: what ONNX's own checker refuses has an error here, what it takes has none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use onnx_graph::{Finding, Model, Severity, Weights};

/// Taken by ONNX's checker and refused here, with the reason.
const STRICTER: [(&str, &str); 4] = [
    ("raw data too long", "which bytes count is nobody's to say; ONNX Runtime refuses it"),
    ("typed data too many", "likewise"),
    ("function called with too much", "ONNX Runtime refuses it"),
    ("function gives nothing", "ONNX Runtime refuses it"),
];

/// Refused by ONNX's checker and without an error here, with the reason.
const MILDER: [(&str, &str); 1] = [(
    "operator unknown to ai.onnx.ml",
    "operators of other domains than the standard one are not known here, which a note says",
)];

struct Case {
    name: &'static str,
    refused: bool,
    refused_in_full: bool,
    model: Model,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("../../../fixtures/onnx-check/verdicts.tsv").lines();
    let bytes = |hex: &str| -> Vec<u8> {
        let pairs = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
        pairs.collect()
    };
    let case = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[name, checker, full, hex] = fields.as_slice() else { panic!("{line}") };
        let model = Model::from_bytes(bytes(hex)).unwrap();
        Case { name, refused: checker == "refused", refused_in_full: full == "refused", model }
    };
    lines.filter(|line| !line.starts_with('#')).map(case).collect()
}

fn check(case: &Case) -> Vec<Finding> {
    // A folder without sidecars, as the checker had it.
    let folder = tempfile::tempdir().unwrap();
    case.model.check(case.name.as_ref(), &Weights::in_folder(folder.path()))
}

#[test]
fn errors_are_what_the_checker_refuses() {
    let (stricter, milder) = (BTreeMap::from(STRICTER), BTreeMap::from(MILDER));
    let mut faults = Vec::new();
    for case in cases() {
        let findings = check(&case);
        let errors: Vec<String> =
            findings.iter().filter(|f| f.severity == Severity::Error).map(ToString::to_string).collect();
        // Between the two checks of ONNX, either verdict will do.
        let expected = match (case.refused, case.refused_in_full) {
            (true, _) => !milder.contains_key(case.name),
            (false, false) => stricter.contains_key(case.name),
            (false, true) => continue,
        };
        if errors.is_empty() == expected {
            faults.push(format!("{}: refused {}, but {errors:?}", case.name, case.refused));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_exception_is_one() {
    let names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    for (name, _) in STRICTER.iter().chain(&MILDER) {
        assert!(names.contains(name), "{name}");
    }
    assert!(names.len() > 150);
}

#[test]
fn every_finding_is_one_line_that_names_the_model() {
    for case in cases() {
        for finding in check(&case) {
            let line = finding.to_string();
            assert!(!line.contains('\n') && line.contains(case.name), "{line}");
        }
    }
}
