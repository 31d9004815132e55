//! The example as a person uses it: files and a table when all is well, one clear line and exit code 2 when not; and
//! that the engine asked for is the engine that answers, or an error (case E6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_line;

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use command_line::example;
use sam_kit::sam_runtime::engine::onnxruntime::PINNED_VERSION;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = example("segment_point");
    command.args(arguments).envs(variables.iter().copied());
    command.output().expect("the example is built with the tests")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with `arguments` and returns the one line of the refusal.
fn refusal(arguments: &[&str]) -> String {
    let output = run(arguments, &[]);
    let (told, shown) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}{shown}");
    assert_eq!(told.lines().count(), 1, "{arguments:?}: {told}");
    assert!(told.starts_with("error: ") && shown.is_empty(), "{arguments:?}: {told}{shown}");
    told
}

#[test]
fn a_click_writes_mask_and_overlay_and_prints_the_table() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("made/for/it");
    let output = run(&["--engine", "rten", "--out", folder.to_str().unwrap()], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for row in [
        "engine   rten 0.27",
        "taken as it is",
        "image    512 x 512",
        "encode",
        "click",
        "score",
        "area",
        "box",
        "written",
    ] {
        assert!(table.contains(row), "{row} is missing:\n{table}");
    }
    let [mask, overlay] = ["mask.png", "overlay.png"].map(|name| image::open(folder.join(name)).unwrap());
    assert_eq!((mask.width(), mask.height()), (512, 512));
    assert_eq!((overlay.width(), overlay.height()), (512, 512));
    assert!(mask.to_luma8().pixels().all(|p| matches!(p.0[0], 0 | 255)));
}

#[test]
fn wrong_input_gets_one_clear_line() {
    let notes = tempfile::tempdir().unwrap();
    std::fs::write(notes.path().join("notes.txt"), "none").unwrap();
    let lone = tempfile::tempdir().unwrap();
    let decoder = fixtures().join("tiny-sam/tiny-sam-onnx-float");
    for name in ["TinySamDecoder.onnx", "TinySamDecoder.data"] {
        std::fs::copy(decoder.join(name), lone.path().join(name)).unwrap();
    }
    let photo = fixtures().join("images/coffee.jpg");
    let [photo, notes, lone] = [&photo, notes.path(), lone.path()].map(|p| p.to_str().unwrap());
    let text_file = format!("{notes}/notes.txt");
    for (arguments, wanted) in [
        (vec!["--image", "no/such.jpg", "--point", "1,1"], vec!["no/such.jpg"]),
        (vec!["--image", &text_file, "--point", "1,1"], vec!["notes.txt", "not an image"]),
        (vec!["--image", photo, "--point", "600,10"], vec!["(600, 10)", "600 x 400"]),
        (vec!["--image", photo, "--point", "-3,10"], vec!["(-3, 10)", "600 x 400"]),
        (vec!["--point", "nan,10"], vec!["512 x 512"]),
        (vec!["--point", "10"], vec!["120,80"]),
        (vec!["--image", photo], vec!["--point"]),
        (vec!["--negative", "10,-1"], vec!["(10, -1)"]),
        (vec!["--engine", "tensorrt"], vec!["tensorrt", "auto, ort and rten"]),
        (vec!["--threads", "0"], vec!["--threads"]),
        (vec!["--threads", "100000"], vec!["100000"]),
        (vec!["--model", "no/such/model"], vec!["no/such/model"]),
        (vec!["--model", notes], vec!["no ONNX graph", "notes.txt"]),
        (vec!["--model", lone], vec!["TinySamDecoder.onnx", "high_res_features1"]),
        (vec!["--model", photo], vec!["coffee.jpg"]),
        (vec!["--nonsense"], vec!["--nonsense"]),
    ] {
        let told = refusal(&arguments);
        for word in wanted {
            assert!(told.contains(word), "{arguments:?}: `{word}` is not in: {told}");
        }
    }
}

#[test]
fn ort_by_name_and_absent_is_an_error_that_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let cache = empty.path().to_str().unwrap();
    let nothing = [("SAM_KIT_CACHE_DIR", cache), ("ORT_DYLIB_PATH", ""), ("LD_LIBRARY_PATH", "")];
    let out = format!("{cache}/out");
    let output = run(&["--engine", "ort", "--out", &out], &nothing);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("cargo run --example fetch_runtime"), "{told}");

    // The same machine with `auto`: rten answers, and the table says why.
    let output = run(&["--engine", "auto", "--out", &out], &nothing);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(table.contains("engine   rten") && table.contains("ONNX Runtime is not used"), "{table}");

    // A path that was named is never passed over.
    for engine in ["ort", "auto"] {
        let named = [("SAM_KIT_CACHE_DIR", cache), ("ORT_DYLIB_PATH", "/no/such/libonnxruntime.so")];
        let output = run(&["--engine", engine, "--out", &out], &named);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{engine}: {told}");
        assert!(told.contains("/no/such/libonnxruntime.so"), "{told}");
    }
}

/// A library in our own cache that was cut off would end the process when it is loaded: it is found out before.
#[test]
fn a_damaged_library_in_the_cache_is_not_loaded() {
    let cache = tempfile::tempdir().unwrap();
    let variables = [("SAM_KIT_CACHE_DIR", cache.path().to_str().unwrap()), ("ORT_DYLIB_PATH", "")];
    let fetched = example("fetch_runtime").output().unwrap();
    let good = std::fs::read(text(&fetched.stdout).trim()).unwrap();
    let name = format!("{}onnxruntime{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let folder = cache.path().join("onnxruntime").join(PINNED_VERSION);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), &good[..good.len() / 3]).unwrap();
    let out = cache.path().join("out");
    let out = out.to_str().unwrap();
    let output = run(&["--engine", "auto", "--out", out], &variables);
    let table = text(&output.stdout);
    assert!(output.status.success() && table.contains("engine   rten"), "{table}{}", text(&output.stderr));
    assert!(table.contains("not those that were fetched"), "{table}");
    let output = run(&["--engine", "ort", "--out", out], &variables);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("not those that were fetched"), "{}", text(&output.stderr));
}

/// Whatever happens while writing: exit code 2, and no picture that is cut off.
#[cfg(unix)]
#[test]
fn a_disk_that_takes_nothing_is_an_error() {
    let out = tempfile::tempdir().unwrap();
    std::fs::create_dir(out.path().join("mask.png")).unwrap();
    let output = run(&["--engine", "rten", "--out", out.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot write"), "{}", text(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(out.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["mask.png"]);
    // The table on a device that is full.
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let out = tempfile::tempdir().unwrap();
        let mut command = example("segment_point");
        command.args(["--engine", "rten", "--out", out.path().to_str().unwrap()]).stdout(full);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cannot print the table"), "{}", text(&output.stderr));
    }
}

#[test]
fn fetch_runtime_does_nothing_the_second_time_and_ort_then_answers() {
    let fetch = || {
        let output = example("fetch_runtime").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (path, _) = fetch();
    let (again, told) = fetch();
    assert_eq!(path, again);
    assert!(told.contains("nothing to do"), "{told}");
    assert!(Path::new(path.trim()).is_file());

    let out = tempfile::tempdir().unwrap();
    for engine in ["ort", "auto"] {
        let output =
            run(&["--engine", engine, "--out", out.path().to_str().unwrap()], &[("ORT_DYLIB_PATH", "")]);
        let table = text(&output.stdout);
        let (minor, _) = PINNED_VERSION.rsplit_once('.').unwrap();
        let engine_row = format!("engine   ONNX Runtime {minor}");
        assert!(table.contains(&engine_row), "{engine}: {table}{}", text(&output.stderr));
    }
}

/// The photograph of a person who works in one folder and calls it `overlay.png`.
#[test]
fn the_photograph_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let photo = folder.path().join("overlay.png");
    let original = std::fs::read(fixtures().join("images/camera.png")).unwrap();
    std::fs::write(&photo, &original).unwrap();
    let (path, out) = (photo.to_str().unwrap(), folder.path().to_str().unwrap());
    let told = refusal(&["--image", path, "--point", "100,100", "--out", out]);
    assert!(told.contains("is the photograph itself"), "{told}");
    assert_eq!(std::fs::read(&photo).unwrap(), original);
}

/// Grey levels, colours, or a mask stored as 0 and 1 give no figure.
#[test]
fn what_is_no_mask_is_not_compared() {
    let masks = fixtures().join("images/masks/astronaut.mission_patch.png");
    let compare = |first: &Path, more: &[&str]| {
        let output = example("compare_masks").arg(first).arg(&masks).args(more).output().unwrap();
        (output.status.code(), text(&output.stderr), text(&output.stdout))
    };
    let (code, _, shown) = compare(&masks, &["--at-least", "1"]);
    assert!(code == Some(0) && shown.contains("IoU     1.0000"), "{shown}");
    let (code, told, shown) = compare(&fixtures().join("images/astronaut.jpg"), &[]);
    assert!(code == Some(2) && told.contains("neither black nor white") && shown.is_empty(), "{told}{shown}");
    for least in ["nan", "1.5", "-1"] {
        assert_eq!(compare(&masks, &["--at-least", least]).0, Some(2), "{least}");
    }
}
