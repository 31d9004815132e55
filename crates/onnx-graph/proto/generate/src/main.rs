//! Compiles `onnx.proto` without `protoc` and writes the Rust types that `onnx-graph` is built from.
//!
//! With `--check` nothing is written: exit code 1 says that the committed types are not those of the proto file.

use std::{error::Error, fs, path::Path, process::ExitCode};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = proto.join("../src/proto");
    let work = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/generated");
    fs::create_dir_all(&work)?;

    let descriptors = work.join("onnx.binpb");
    let mut compiler = protox::Compiler::new([&proto])?;
    compiler.include_imports(true).open_file("onnx.proto")?;
    fs::write(&descriptors, compiler.encode_file_descriptor_set())?;
    buffa_build::Config::new()
        .descriptor_set(&descriptors)
        .files(&["onnx.proto"])
        .out_dir(&work)
        .generate_views(false)
        .generate_with_setters(false)
        // A tensor's bytes stay a slice of the buffer that was read.
        .use_bytes_type()
        .file_per_package(true)
        .compile()?;

    let check = std::env::args().any(|a| a == "--check");
    for entry in fs::read_dir(&work)?.filter_map(Result::ok).filter(|e| e.path().extension().is_some_and(|x| x == "rs")) {
        let (new, old) = (fs::read(entry.path())?, target.join(entry.file_name()));
        if check && fs::read(&old).ok().as_deref() != Some(new.as_slice()) {
            eprintln!("{} is not what onnx.proto gives: run the generator", old.display());
            return Ok(ExitCode::FAILURE);
        } else if !check {
            fs::write(&old, new)?;
            println!("wrote {}", old.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
