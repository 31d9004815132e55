//! Cases O1, O3, E6: ONNX Runtime asked for by path and not usable: an error that says why, never a panic and never the
//! other engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    path::{Path, PathBuf},
    process::Command,
};

use sam_runtime::{Error, LibraryProblem, Segmenter, engine::EngineChoice};

/// Compiles a shared library from Rust source with the toolchain that runs this test.
fn library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (input, output) =
        (folder.join(format!("{name}.rs")), folder.join(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}")));
    std::fs::write(&input, source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--crate-type", "cdylib", "--edition", "2024", "-C", "panic=abort", "-o"]);
    let done = command.arg(&output).arg(&input).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    output
}

/// A library with ONNX Runtime's entry point that reports `version`, or gives no interface at all.
fn pretender(folder: &Path, name: &str, version: Option<&str>) -> PathBuf {
    let base = match version {
        Some(_) => "&BASE",
        None => "core::ptr::null()",
    };
    let version = version.unwrap_or("0");
    let source = format!(
        r#"
        #[repr(C)]
        pub struct Base {{ api: extern "C" fn(u32) -> *const u8, version: extern "C" fn() -> *const u8 }}
        unsafe impl Sync for Base {{}}
        extern "C" fn api(_: u32) -> *const u8 {{ core::ptr::null() }}
        extern "C" fn version() -> *const u8 {{ c"{version}".as_ptr().cast() }}
        static BASE: Base = Base {{ api, version }};
        #[unsafe(no_mangle)]
        pub extern "C" fn OrtGetApiBase() -> *const Base {{ {base} }}
        "#
    );
    library(folder, name, &source)
}

fn problem_with(library: &Path) -> Vec<LibraryProblem> {
    // The choice makes no difference: a library that is named has to be usable.
    let open = |choice| {
        Segmenter::builder().engine(choice).onnxruntime_library(library).open(common::tiny_sam()).unwrap_err()
    };
    [EngineChoice::Ort, EngineChoice::Auto]
        .into_iter()
        .map(|choice| match open(choice) {
            Error::Library { path, problem } => {
                assert_eq!(path, library);
                problem
            }
            other => panic!("{choice:?}: {other:?}"),
        })
        .collect()
}

#[test]
fn each_kind_of_wrong_library_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);

    assert_eq!(problem_with(&at("nothing.so")), [LibraryProblem::Missing, LibraryProblem::Missing]);

    std::fs::write(at("text.so"), "not a library").unwrap();
    std::fs::write(at("empty.so"), "").unwrap();
    for name in ["text.so", "empty.so"] {
        let found = problem_with(&at(name));
        assert!(found.iter().all(|p| matches!(p, LibraryProblem::NotALibrary(_))), "{name}: {found:?}");
    }

    let foreign = library(folder.path(), "foreign", "#[unsafe(no_mangle)] pub extern \"C\" fn other() {}");
    assert_eq!(problem_with(&foreign), [LibraryProblem::NotOnnxRuntime, LibraryProblem::NotOnnxRuntime]);

    for version in ["1.20.1", "0.9", "nonsense"] {
        let old = pretender(folder.path(), &format!("old{}", version.len()), Some(version));
        let want = LibraryProblem::Version { found: version.to_owned(), required: "1.24".to_owned() };
        assert_eq!(problem_with(&old), [want.clone(), want]);
    }

    let null = pretender(folder.path(), "null", None);
    let found = problem_with(&null);
    assert!(found.iter().all(|p| matches!(p, LibraryProblem::Broken(_))), "{found:?}");
}
