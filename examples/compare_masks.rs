//! Compares two mask images: IoU, Dice, and how many pixels differ.
//!
//! ```text
//! cargo run --example compare_masks -- out/mask.png fixtures/images/masks/astronaut.mission_patch.png --at-least 0.6
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    error::Error,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use ndarray::Array2;
use sam_kit::{
    mask_metrics::compare,
    sam_runtime::{error_chain, read_image},
};

/// Compare two masks of one size: black and white images, white is inside.
#[derive(Parser)]
struct Arguments {
    /// A mask image
    first: PathBuf,
    /// A mask image of the same size
    second: PathBuf,
    /// End with exit code 1 where the IoU is less than this
    #[arg(long, value_name = "IOU", value_parser = parse_share)]
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
    let table = format!(
        "IoU     {}\nDice    {}\ndiffer  {} of {} pixels\n",
        figure(found.iou()),
        figure(found.dice()),
        found.differing(),
        first.len()
    );
    // A closed output is no reason to fail.
    let _ = std::io::stdout().write_all(table.as_bytes());
    Ok(arguments.at_least.is_none_or(|least| found.iou().is_some_and(|iou| iou >= least)))
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a number from 0 to 1 is needed".to_owned())
}

fn read_mask(path: &Path) -> Result<Array2<bool>, Box<dyn Error>> {
    let image = read_image(path)?;
    let (width, height) = image.dimensions();
    // Grey levels, colours or a mask stored as 0 and 1 would give a figure that means nothing.
    let sample = |p: &image::Rgb<u8>| match p.0 {
        [255, 255, 255] => Ok(true),
        [0, 0, 0] => Ok(false),
        [r, g, b] => {
            Err(format!("{} is no mask: a pixel is {r},{g},{b}, neither black nor white", path.display()))
        }
    };
    let inside = image.pixels().map(sample).collect::<Result<_, _>>()?;
    Ok(Array2::from_shape_vec((height as usize, width as usize), inside)?)
}
