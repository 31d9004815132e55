//! Clicks on a photograph and writes the mask.
//!
//! ```text
//! cargo run --release --example segment_point
//! cargo run --release --example segment_point -- --image photo.jpg --point 320,210 --negative 40,40
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    error::Error,
    fs,
    io::{Cursor, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;
use image::{DynamicImage, ImageFormat};
use sam_kit::{
    composite::Composite,
    mask_metrics::{area, bounding_box},
    sam_runtime::{
        Click, ModelOrigin, PixelPoint, Segmentation, Segmenter,
        engine::EngineChoice,
        error_chain,
        overlay::{mask_image, overlay},
        read_image,
    },
};

/// Where the repository's fixtures are.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
/// A click on the mission patch in the photograph that is taken when none is given.
const DEFAULT_POINT: PixelPoint = PixelPoint { x: 170.0, y: 385.0 };

/// Click on a photograph, get the mask of what was clicked.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The photograph (PNG or JPEG) [default: an astronaut from fixtures/images]
    #[arg(long)]
    image: Option<PathBuf>,
    /// A click on the object, in pixels of the photograph; may be repeated
    #[arg(long, value_name = "X,Y", value_parser = parse_point, allow_hyphen_values = true)]
    point: Vec<PixelPoint>,
    /// A click beside the object, in pixels of the photograph; may be repeated
    #[arg(long, value_name = "X,Y", value_parser = parse_point, allow_hyphen_values = true)]
    negative: Vec<PixelPoint>,
    /// A folder of graphs, a release archive, or a folder with one [default: fixtures/tiny-sam]
    #[arg(long, value_name = "DIR|ZIP")]
    model: Option<PathBuf>,
    /// auto, ort or rten
    #[arg(long, default_value = "auto")]
    engine: EngineChoice,
    /// Threads for one run [default: all that this process may use]
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// The folder that mask.png and overlay.png are written to
    #[arg(long, default_value = "out")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            // One clear line instead of clap's paragraph.
            let text = error.to_string();
            return fail(text.lines().next().unwrap_or("error: bad arguments").trim_start_matches("error: "));
        }
        Err(help) => {
            // A closed output is no reason to fail.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error_chain(error.as_ref())),
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let fixtures = Path::new(FIXTURES);
    // For the table: the plain path where it is there, the path as built where it is not.
    let fixtures = fixtures.canonicalize().unwrap_or_else(|_| fixtures.to_owned());
    let image_path = arguments.image.clone().unwrap_or_else(|| fixtures.join("images/astronaut.jpg"));
    let mut points = arguments.point.clone();
    if points.is_empty() && arguments.image.is_none() {
        points.push(DEFAULT_POINT);
    }
    if points.is_empty() {
        return Err("give at least one click on the object: --point X,Y".into());
    }
    let positive = points.iter().map(|p| Click::positive(p.x, p.y));
    let negative = arguments.negative.iter().map(|p| Click::negative(p.x, p.y));
    let clicks: Vec<Click> = positive.chain(negative).collect();

    let image = read_image(&image_path)?;
    let paths = [arguments.out.join("mask.png"), arguments.out.join("overlay.png")];
    if let Some(same) = paths.iter().find(|path| same_file(path, &image_path)) {
        return Err(
            format!("{} is the photograph itself: name another folder with --out", same.display()).into()
        );
    }
    let mut builder = Segmenter::builder().engine(arguments.engine);
    if let Some(threads) = arguments.threads {
        builder = builder.threads(threads);
    }
    let segmenter = builder.open(arguments.model.clone().unwrap_or_else(|| fixtures.join("tiny-sam")))?;

    let start = Instant::now();
    let embeddings = segmenter.encode(&image)?;
    let encode = start.elapsed();
    let start = Instant::now();
    let found = segmenter.segment(&embeddings, &clicks)?;
    let click = start.elapsed();

    fs::create_dir_all(&arguments.out)
        .map_err(|e| format!("cannot make {}: {e}", arguments.out.display()))?;
    write_png(&paths[0], &mask_image(found.mask.view()).into())?;
    write_png(&paths[1], &overlay(&image, found.mask.view(), &clicks).into())?;
    let table = table(&segmenter, &found, &image_path, encode, click, &paths);
    match std::io::stdout().write_all(table.as_bytes()) {
        // Whoever reads the table may have seen enough of it.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot print the table: {e}").into())
        }
        _ => Ok(()),
    }
}

/// Whether two paths lead to one file.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Writes a picture whole or not at all: beside its place first, then under its name.
fn write_png(path: &Path, picture: &DynamicImage) -> Result<(), String> {
    let fail = |e: &dyn Error| format!("cannot write {}: {e}", path.display());
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).map_err(|e| fail(&e))?;
    let beside = path.with_extension(format!("png.{}", std::process::id()));
    let written = fs::File::create_new(&beside)
        .and_then(|mut file| file.write_all(bytes.get_ref()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|e| {
        let _ = fs::remove_file(&beside);
        fail(&e)
    })
}

fn table(
    segmenter: &Segmenter,
    found: &Segmentation,
    image: &Path,
    encode: Duration,
    click: Duration,
    written: &[PathBuf],
) -> String {
    let (height, width) = found.mask.dim();
    let pixels = area(found.mask.view());
    let engine = segmenter.engine();
    let milliseconds = |t: Duration| format!("{:.1} ms", t.as_secs_f64() * 1000.0);
    let box_text =
        bounding_box(found.mask.view()).map_or("none, the mask is empty".to_owned(), |b| b.to_string());
    let mut rows = vec![("engine", format!("{engine}, {} threads", engine.threads))];
    rows.extend(engine.note.as_ref().map(|note| ("", format!("ONNX Runtime is not used: {note}"))));
    rows.extend([
        ("model", model_row(segmenter.origin())),
        ("graphs", graphs_row(segmenter.composite())),
        ("image", format!("{width} x {height}  {}", image.display())),
        ("encode", milliseconds(encode)),
        ("click", milliseconds(click)),
        ("score", format!("{:.3}", found.score)),
        ("area", format!("{pixels} pixels, {:.1} %", 100.0 * pixels as f64 / (width * height) as f64)),
        ("box", box_text),
    ]);
    rows.extend(written.iter().map(|path| ("written", path.display().to_string())));
    let lines: Vec<String> =
        rows.iter().map(|(name, value)| format!("{name:8} {}\n", printable(value))).collect();
    lines.concat()
}

/// The graphs that run, and those that were left aside.
fn graphs_row(composite: &Composite) -> String {
    let pair = composite.pair();
    let below = |path: &Path| path.strip_prefix(composite.folder()).unwrap_or(path).display().to_string();
    let used = format!("{}, {}", below(&pair.encoder.path), below(&pair.decoder.path));
    match composite.skipped() {
        [] => used,
        [one] => format!("{used}; not used: {}: {}", below(&one.path), one.rule),
        [first, more @ ..] => {
            format!("{used}; not used: {}: {}, and {} more", below(&first.path), first.rule, more.len())
        }
    }
}

fn model_row(origin: &ModelOrigin) -> String {
    match origin {
        ModelOrigin::Archive { opened, sha256, outcome, .. } => {
            format!("{}, {outcome}, SHA-256 {}...", opened.display(), sha256.get(..12).unwrap_or(sha256))
        }
        ModelOrigin::Composite { file, .. } => format!("{}, its graphs by their SHA-256", file.display()),
        other => format!("{}, taken as it is", other.root().display()),
    }
}

fn parse_point(text: &str) -> Result<PixelPoint, String> {
    let numbers =
        text.split_once(',').and_then(|(x, y)| Some((x.trim().parse().ok()?, y.trim().parse().ok()?)));
    let (x, y) = numbers.ok_or("two numbers with a comma between are needed, as in 120,80")?;
    Ok(PixelPoint::new(x, y))
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {}", printable(message));
    ExitCode::from(2)
}

/// Control characters, which a file's name may bring along, would steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
