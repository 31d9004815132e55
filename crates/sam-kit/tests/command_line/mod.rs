//! The examples, run as a person runs them.
#![allow(dead_code)] // every test file uses its own part

use std::process::Command;

/// An example's program, which is built with the tests.
pub(crate) fn example(name: &str) -> Command {
    let beside = std::env::current_exe().unwrap();
    let examples = beside.parent().unwrap().parent().unwrap().join("examples");
    Command::new(examples.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Exit code, standard output and standard error of an example, which may not use a network.
pub(crate) fn run(name: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = example(name);
    command.args(arguments).env("HF_HUB_OFFLINE", "1");
    let output = command.output().expect("the example is built with the tests");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
