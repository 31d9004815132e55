//! Brings ONNX Runtime onto this machine: the pinned wheel by pip, checked, the one library taken out of it.
//!
//! ```text
//! cargo run --example fetch_runtime
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::Parser;
use sam_kit::sam_runtime::{engine::onnxruntime, error_chain};

/// Fetch ONNX Runtime into the cache folder: nothing is done where it is there already.
#[derive(Parser)]
#[command(version)]
struct Arguments {}

fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    match onnxruntime::fetch(&mut |step| eprintln!("{step}")) {
        Ok(installed) => {
            if !installed.fetched {
                eprintln!("nothing to do");
            }
            println!("{}", installed.path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", error_chain(&error));
            ExitCode::from(2)
        }
    }
}
