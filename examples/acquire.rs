//! Brings a published release onto this machine, verified, and says what was checked.
//!
//! ```text
//! cargo run --example acquire -- qualcomm/Segment-Anything-Model-2 --precision fp16
//! cargo run --example acquire -- --import release.zip
//! cargo run --example acquire -- verify
//! cargo run --example acquire -- gc --unused-days 30
//! ```
use std::{
    fmt::{Display, Write as _},
    io::{Read as _, Write as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Mutex,
    time::Duration,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use sam_kit::{
    release_assets::{Cache, Client, Error, HubRelease, Phase, Pin, Release},
    sam_runtime::error_chain,
};

/// Acquire a release: resolve, download, verify, unpack.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The hub's repository, as owner/name [default: the pinned release of SAM 2]
    repository: Option<String>,
    /// A branch, tag or commit [default: the default branch]
    #[arg(long, requires = "repository")]
    revision: Option<String>,
    /// auto, fp32, fp16, or a name of the publisher's
    #[arg(long, default_value = "auto")]
    precision: String,
    /// The publisher's name of the runtime
    #[arg(long, default_value = "onnx")]
    runtime: String,
    /// The archive for one chipset
    #[arg(long)]
    chipset: Option<String>,
    /// Accept only what this pin says (a JSON file)
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,
    /// Ask the address anew, and accept what it gives now in the place of its first archive
    #[arg(long)]
    accept_changed: bool,
    /// Take the archive from disk instead of a hub
    #[arg(
        long,
        value_name = "FILE.zip",
        conflicts_with_all = ["repository", "revision", "precision", "runtime", "chipset", "offline", "accept_changed"]
    )]
    import: Option<PathBuf>,
    /// Use the cache alone [default: as the environment says]
    #[arg(long)]
    offline: bool,
    /// The cache's folder [default: as the environment says, or sam-kit among the user's caches]
    #[arg(long, value_name = "DIR", global = true)]
    cache: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Hash everything in the cache and say what is wrong
    Verify,
    /// Remove what was not used for long, and what killed processes left
    Gc {
        /// Days without use
        #[arg(long, default_value_t = 30)]
        unused_days: u64,
        /// Only list
        #[arg(long)]
        dry_run: bool,
    },
}

fn main() -> ExitCode {
    let arguments = arguments();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // A closed output is no reason to fail in another way.
            let _ = writeln!(std::io::stderr(), "error: {}", plain(error_chain(&error)));
            ExitCode::from(2)
        }
    }
}

/// What a command would ignore is refused. (clap's own rule for that no longer knows a command behind `--cache`.)
fn arguments() -> Arguments {
    let mut command = Arguments::command();
    let matches = command.get_matches_mut();
    let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let ignored = command
        .get_arguments()
        .map(|argument| argument.get_id().as_str())
        .filter(|name| *name != "cache")
        .find(given);
    if let (Some(word), Some(name)) = (matches.subcommand_name(), ignored) {
        command.error(ErrorKind::ArgumentConflict, format!("`{word}` cannot be used with `{name}`")).exit();
    }
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// False where something was found wrong.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let root = arguments.cache.clone().map_or_else(Cache::default_root, Ok)?;
    let bar = Bar::new();
    let cache = Cache::new(&root).on_progress(move |phase, done, total| {
        bar.show(phase, done, total);
        ControlFlow::Continue(())
    });
    match &arguments.command {
        Some(Command::Verify) => {
            let listed = std::fs::read_dir(&root).map(drop);
            listed.map_err(|source| Error::Io { path: root.clone(), source })?;
            verify(&cache, &root)
        }
        Some(Command::Gc { unused_days, dry_run }) => gc(&cache, *unused_days, *dry_run),
        None => {
            let pin = arguments.pin.as_deref().map(read_pin).transpose()?;
            print(&table(&acquire(&cache, arguments, pin)?));
            Ok(true)
        }
    }
}

fn acquire(cache: &Cache, arguments: &Arguments, pin: Option<Pin>) -> Result<Release, Error> {
    if let Some(zip) = &arguments.import {
        return cache.import(zip, pin.as_ref());
    }
    let mut wanted = arguments.repository.as_ref().map_or_else(HubRelease::sam2, HubRelease::new);
    wanted = wanted.precision(&arguments.precision).runtime(&arguments.runtime);
    if let Some(revision) = &arguments.revision {
        wanted = wanted.revision(revision);
    }
    if let Some(chipset) = &arguments.chipset {
        wanted = wanted.chipset(chipset);
    }
    if let Some(pin) = pin {
        wanted = wanted.pin(pin);
    }
    if arguments.accept_changed {
        wanted = wanted.accept_changed_archive();
    }
    let mut client = Client::builder();
    if arguments.offline {
        client = client.offline(true);
    }
    cache.acquire(&wanted, &client.build()?)
}

/// A pin has a few lines.
const PIN_BYTES: u64 = 1 << 20;

fn read_pin(path: &Path) -> Result<Pin, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut text = String::new();
    std::fs::File::open(path).map_err(io)?.take(PIN_BYTES).read_to_string(&mut text).map_err(io)?;
    serde_json::from_str(&text)
        .map_err(|e| Error::Setting { name: "pin", detail: format!("{}: {e}", path.display()) })
}

fn table(release: &Release) -> String {
    let mut out = String::new();
    let graphs = match release.graphs().len() {
        1 => "1 graph with its sidecars".to_owned(),
        more => format!("{more} graphs with their sidecars"),
    };
    let rows = [
        ("folder", release.root.display().to_string()),
        ("commit", release.commit.clone().unwrap_or_else(|| "none, no hub".to_owned())),
        ("archive", format!("SHA-256 {}", release.archive_sha256)),
        ("trust", release.trust.to_string()),
        ("done", format!("{}; {} fetched", release.outcome, HumanBytes(release.fetched_bytes))),
        (
            "checked",
            format!(
                "the archive's hash, {} files by size and hash, {graphs}, every field of the record",
                release.inventory.len()
            ),
        ),
    ];
    // Writing into a string cannot fail.
    for (name, value) in rows {
        let _ = writeln!(out, "{name:8} {}", plain(value));
    }
    let _ = writeln!(out, "\n{:>13}  {:64}  file", "bytes", "SHA-256");
    for file in &release.inventory {
        let _ = writeln!(out, "{:>13}  {}  {}", file.size, file.sha256, plain(&file.path));
    }
    out
}

fn verify(cache: &Cache, root: &Path) -> Result<bool, Error> {
    let found = cache.verify()?;
    let mut out = String::new();
    for checked in &found {
        let path = plain(checked.path.strip_prefix(root).unwrap_or(&checked.path).display());
        let against = if checked.against_archive { "" } else { " (against its own record alone)" };
        let _ = match checked.damage.as_slice() {
            [] => writeln!(out, "right    {path}{against}"),
            damage => {
                let list: Vec<String> = damage.iter().map(plain).collect();
                writeln!(out, "WRONG    {path}{against}: {}", list.join("; "))
            }
        };
    }
    let wrong = found.iter().filter(|checked| !checked.damage.is_empty()).count();
    let _ = writeln!(out, "{} checked in {}, {wrong} wrong", found.len(), plain(root.display()));
    print(&out);
    Ok(wrong == 0)
}

fn gc(cache: &Cache, days: u64, dry: bool) -> Result<bool, Error> {
    let cleaned =
        cache.gc(Duration::from_hours(24).saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)), dry)?;
    let mut out = String::new();
    for (path, bytes) in &cleaned.removed {
        let _ = writeln!(out, "{:>12}  {}", HumanBytes(*bytes).to_string(), plain(path.display()));
    }
    for (path, reason) in &cleaned.failed {
        let _ = writeln!(out, "cannot remove {}: {}", plain(path.display()), plain(reason));
    }
    let verb = if dry { "would be removed" } else { "removed" };
    let _ = writeln!(out, "{} {verb}, {}", cleaned.removed.len(), HumanBytes(cleaned.bytes));
    print(&out);
    Ok(cleaned.failed.is_empty())
}

/// Names on a disk and texts of others may hold commands for a terminal, or a new line that forges one of ours.
fn plain(text: impl Display) -> String {
    let text = text.to_string();
    let mut line = String::new();
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => line.push(c),
            _ => line.extend(c.escape_debug()),
        }
    }
    line
}

/// A closed output is no reason to fail.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// One bar at a time, for whatever is going on; nothing where the output is no terminal.
struct Bar(Mutex<Option<(Phase, ProgressBar)>>);

impl Bar {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn show(&self, phase: Phase, done: u64, total: u64) {
        let Ok(mut current) = self.0.lock() else { return };
        if current.as_ref().is_none_or(|(shown, _)| *shown != phase) {
            if let Some((_, bar)) = current.take() {
                bar.finish_and_clear();
            }
            *current = Some((phase, bar(phase, total)));
        }
        let Some((_, bar)) = current.as_ref() else { return };
        if total > 0 {
            bar.set_length(total);
            bar.set_position(done);
            if done >= total {
                bar.finish_and_clear();
            }
        } else {
            bar.tick();
        }
    }
}

fn bar(phase: Phase, total: u64) -> ProgressBar {
    let what = match phase {
        Phase::Resolve => "asking the hub",
        Phase::Download => "downloading",
        Phase::Import => "copying",
        Phase::Wait => "waiting",
        Phase::HashArchive | Phase::RecheckArchive => "hashing the archive",
        Phase::Extract => "unpacking",
        Phase::Verify => "verifying",
        _ => "working",
    };
    let counted = !matches!(phase, Phase::Resolve | Phase::Wait);
    let template = if counted {
        "{msg:20} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
    } else {
        "{msg:20} {spinner}"
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = if counted { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
    bar.set_style(style);
    bar.set_message(what);
    bar
}
