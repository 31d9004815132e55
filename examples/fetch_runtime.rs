//! Brings ONNX Runtime onto this machine: the pinned wheel by pip, checked, the one library taken out of it.
//!
//! ```text
//! cargo run --example fetch_runtime
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{error::Error, process::ExitCode};

use sam_kit::sam_runtime::engine::onnxruntime;

fn main() -> ExitCode {
    match onnxruntime::fetch(&mut |step| eprintln!("{step}")) {
        Ok(installed) => {
            if !installed.fetched {
                eprintln!("nothing to do");
            }
            println!("{}", installed.path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}
