//! Compares two mask images: IoU, Dice, and how many pixels differ.
//!
//! ```text
//! cargo run --example compare_masks -- out/mask.png fixtures/images/masks/astronaut.mission_patch.png --at-least 0.6
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use ndarray::Array2;
use sam_kit::{
    mask_metrics::compare,
    sam_runtime::{error_chain, read_image},
};

/// Compare two masks of one size; white is inside.
#[derive(Parser)]
struct Arguments {
    /// A mask image
    first: PathBuf,
    /// A mask image of the same size
    second: PathBuf,
    /// End with exit code 1 where the IoU is less than this
    #[arg(long, value_name = "IOU")]
    at_least: Option<f64>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", error_chain(error.as_ref()));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let (first, second) = (read_mask(&arguments.first)?, read_mask(&arguments.second)?);
    let found = compare(first.view(), second.view())?;
    let figure =
        |value: Option<f64>| value.map_or("none, both masks are empty".to_owned(), |v| format!("{v:.4}"));
    println!("IoU     {}", figure(found.iou()));
    println!("Dice    {}", figure(found.dice()));
    println!("differ  {} of {} pixels", found.differing(), first.len());
    Ok(arguments.at_least.is_none_or(|least| found.iou().is_some_and(|iou| iou >= least)))
}

fn read_mask(path: &Path) -> Result<Array2<bool>, Box<dyn Error>> {
    let image = read_image(path)?;
    let (width, height) = image.dimensions();
    let inside = image.pixels().map(|p| p.0[0] >= 128).collect();
    Ok(Array2::from_shape_vec((height as usize, width as usize), inside)?)
}
