//! The example `acquire` as a person uses it, as far as that goes without a hub: import, reuse, repair, verify, gc, and one clear
//! line where something is missing.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_line;

use std::path::{Path, PathBuf};

use sam_kit::release_assets::sha256_file;

fn archive() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny-sam/release/tiny-sam-onnx-float.zip")
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    command_line::run("acquire", arguments)
}

/// The same with a cache of its own.
fn acquire(cache: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    run(&[arguments, &["--cache", cache.to_str().unwrap()]].concat())
}

#[test]
fn import_repair_verify_and_gc() {
    let cache = tempfile::tempdir().unwrap();
    let archive = archive();
    let import = ["--import", archive.to_str().unwrap()];
    let (code, table, told) = acquire(cache.path(), &import);
    assert_eq!(code, Some(0), "{told}");
    let root = table.lines().find_map(|line| line.strip_prefix("folder   ")).unwrap().to_owned();
    for part in
        ["done     extracted", "not pinned", "5 files by size and hash, 2 graphs", "TinySamEncoder.onnx"]
    {
        assert!(table.contains(part), "{part} in {table}");
    }
    // Each file with its size and its whole hash.
    let metadata = Path::new(&root).join("tiny-sam-onnx-float/metadata.json");
    let hash = sha256_file(&metadata).unwrap();
    let size = std::fs::metadata(&metadata).unwrap().len();
    let row = format!("{size:>13}  {hash}  tiny-sam-onnx-float/metadata.json");
    assert!(table.lines().any(|line| line == row), "{row} in {table}");

    assert!(acquire(cache.path(), &import).1.contains("done     reused, verified"));
    assert_eq!(acquire(cache.path(), &["verify"]).0, Some(0));
    // Options may stand before the word, too.
    let (code, report, _) = run(&["--cache", cache.path().to_str().unwrap(), "verify"]);
    assert!(code == Some(0) && report.contains("2 checked") && report.contains("0 wrong"), "{report}");
    // Those that it would ignore may not.
    for ignored in [&["--offline"][..], &["--precision", "fp16"], &["owner/model"]] {
        let (code, _, told) = run(&[ignored, &["verify"]].concat());
        assert!(code == Some(2) && !told.contains("offline, and"), "{told}");
    }
    std::fs::write(&metadata, "{}").unwrap();
    let (code, report, _) = acquire(cache.path(), &["verify"]);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report.contains("WRONG") && report.contains("`tiny-sam-onnx-float/metadata.json` was changed"),
        "{report}"
    );
    let (_, table, _) = acquire(cache.path(), &import);
    assert!(table.contains("repaired: `tiny-sam-onnx-float/metadata.json` was changed"), "{table}");

    let (_, listed, _) = acquire(cache.path(), &["gc", "--unused-days", "0", "--dry-run"]);
    assert!(listed.contains("1 would be removed"), "{listed}");
    assert!(acquire(cache.path(), &["gc"]).1.contains("0 removed"));
    assert!(acquire(cache.path(), &["gc", "--unused-days", "0"]).1.contains("1 removed"));
    assert!(!Path::new(&root).exists());
}

#[test]
fn what_cannot_be_had_is_one_clear_line() {
    let cache = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], part: &str| {
        let (code, shown, told) = acquire(cache.path(), arguments);
        assert_eq!((code, shown.as_str(), told.lines().count()), (Some(2), "", 1), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    };
    // The pinned release of SAM 2 is what is asked for where nothing is.
    refused(&[], "6c47f7e4eacfad4212d512c434277dfab60d980fea467b4b13d4110baa7f25cf");
    refused(&["owner/model"], "the default branch of owner/model");
    refused(&["owner/model", "--revision", ".."], "it is no branch, tag or commit");
    refused(&["not a repository"], "it is not of the form owner/name");
    refused(&["--import", "no-such-file.zip"], "no-such-file.zip");
    let (code, _, told) = run(&["verify", "--cache", "no/such/folder"]);
    assert!(code == Some(2) && told.contains("no/such/folder"), "{told}");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    refused(&["--import", text.to_str().unwrap()], "README.md");
}

/// Names in the cache forge no line of the report and command no terminal.
#[cfg(unix)]
#[test]
fn names_on_the_disk_are_told_in_one_line() {
    let cache = tempfile::tempdir().unwrap();
    let (_, table, _) = acquire(cache.path(), &["--import", archive().to_str().unwrap()]);
    let root = table.lines().find_map(|line| line.strip_prefix("folder   ")).unwrap().to_owned();
    let odd = Path::new(&root).parent().unwrap().join("x\nright    all\u{1b}[31m\u{202e}");
    std::fs::write(&odd, "").unwrap();
    for arguments in [&["verify"][..], &["gc", "--unused-days", "0", "--dry-run"]] {
        let (_, report, _) = acquire(cache.path(), arguments);
        assert!(!report.contains(['\u{1b}', '\u{202e}']) && !report.contains("\nright    all"), "{report}");
    }
    let (code, report, _) = acquire(cache.path(), &["verify"]);
    assert!(code == Some(1) && report.contains(r"x\nright    all\u{1b}[31m\u{202e}"), "{report}");
}
