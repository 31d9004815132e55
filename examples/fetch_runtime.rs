//! Brings ONNX Runtime onto this machine: the pinned wheel by pip, checked, the one library taken out of it.
//!
//! ```text
//! cargo run --example fetch_runtime
//! ```
use std::{io::Write, process::ExitCode};

use clap::Parser;
use sam_kit::sam_runtime::{engine::onnxruntime, error_chain};

/// Fetch ONNX Runtime into the cache folder: nothing is done where it is there already.
#[derive(Parser)]
#[command(version)]
struct Arguments {}

fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    match onnxruntime::fetch(&mut say) {
        Ok(installed) => {
            if !installed.fetched {
                say("nothing to do");
            }
            let _ = writeln!(std::io::stdout(), "{}", installed.path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            // What pip wrote is text for people, not commands for their terminal.
            let text = error_chain(&error).replace(|c: char| c.is_control(), " ");
            say(&format!("error: {text}"));
            ExitCode::from(2)
        }
    }
}

/// A closed output is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
