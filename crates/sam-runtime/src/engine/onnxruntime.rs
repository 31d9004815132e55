//! Where ONNX Runtime's shared library is looked for, and how the pinned one comes onto a machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use release_assets::Limits;

/// The release that this version of the crate was tested with and that [`fetch`] brings. Libraries from 1.24 on are taken.
pub const PINNED_VERSION: &str = "1.32.0";

/// The environment variable that names the library's path, as the `ort` crate has it.
pub const PATH_VARIABLE: &str = "ORT_DYLIB_PATH";

/// A published file that holds the library for one kind of machine: a Python wheel, which is a zip archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wheel {
    /// The platform by the package index's name.
    pub platform: &'static str,
    /// SHA-256 of the wheel, lower-case hex. The same file is served whatever Python asks for it.
    pub sha256: &'static str,
    /// The library inside of the wheel.
    pub member: &'static str,
    /// SHA-256 of the library, lower-case hex.
    pub library_sha256: &'static str,
}

/// The wheels of `onnxruntime` [`PINNED_VERSION`] (CPython 3.12) by operating system and processor. Pinned by this project on
/// 2026-11-30 from the Python package index.
const WHEELS: [(&str, &str, Wheel); 5] = [
    (
        "linux",
        "x86_64",
        Wheel {
            platform: "manylinux_2_28_x86_64",
            sha256: "99e1074c4b2197accd5073052a465361be17b89c093b8ffb6e6bd8f986c52df8",
            member: "onnxruntime/capi/libonnxruntime.so.1.32.0",
            library_sha256: "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
        },
    ),
    (
        "linux",
        "aarch64",
        Wheel {
            platform: "manylinux_2_28_aarch64",
            sha256: "e36c187006e7a7c8b8d6d57f1a209dd63f52430dca6c282b177718ad6b841054",
            member: "onnxruntime/capi/libonnxruntime.so.1.32.0",
            library_sha256: "49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
        },
    ),
    (
        "macos",
        "aarch64",
        Wheel {
            platform: "macosx_14_0_arm64",
            sha256: "d52510bbbcc880c13b826f7d75cdf33ac5cf0bb864d960000fc29ce73f0cb83e",
            member: "onnxruntime/capi/libonnxruntime.1.32.0.dylib",
            library_sha256: "fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7",
        },
    ),
    (
        "windows",
        "x86_64",
        Wheel {
            platform: "win_amd64",
            sha256: "efe7456952c243a05a53d5b8732953625144642c2f3989094277f6217f0c0c40",
            member: "onnxruntime/capi/onnxruntime.dll",
            library_sha256: "443c0065fcdba17618ddef05050308f4b471893c5c7da0337d6957c9073ad8a7",
        },
    ),
    (
        "windows",
        "aarch64",
        Wheel {
            platform: "win_arm64",
            sha256: "64d394c69d561af3efd4d4f49dcac8f11d0ce135a20701c16d53b74056cd4cf8",
            member: "onnxruntime/capi/onnxruntime.dll",
            library_sha256: "a5c1951a7d495fa0c22a0865fe36981fe67f9d5dc7ba3893c20fa7266dd1e994",
        },
    ),
];

/// The wheel for the machine this is compiled for; `None` where none is published.
pub fn pinned_wheel() -> Option<Wheel> {
    let here = (env::consts::OS, env::consts::ARCH);
    WHEELS.into_iter().find(|(os, arch, _)| (*os, *arch) == here).map(|(_, _, wheel)| wheel)
}

/// The library's name as the system knows it (`libonnxruntime.so`, `libonnxruntime.dylib`, `onnxruntime.dll`).
pub fn library_name() -> String {
    format!("{}onnxruntime{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX)
}

/// Where [`fetch`] puts the library: a folder of its own per version, below the cache folder of `release-assets`.
pub fn cached_library() -> Result<PathBuf, FetchError> {
    let root = release_assets::Cache::default_root()?;
    Ok(root.join("onnxruntime").join(PINNED_VERSION).join(library_name()))
}

/// Whether a file has the bytes of the pinned library.
pub(crate) fn is_pinned(path: &Path) -> bool {
    let pinned = pinned_wheel().map(|wheel| wheel.library_sha256);
    pinned.is_some_and(|pinned| release_assets::sha256_file(path).is_ok_and(|found| found == pinned))
}

/// Who named a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The caller or the environment: it has to be usable.
    Named,
    /// Our cache folder.
    Cache,
    /// Beside the executable, then the system's own search path.
    System,
}

/// A place where the library may be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The file, or a bare name for the system's loader.
    pub path: PathBuf,
    /// Who named it.
    pub origin: Origin,
}

/// The places that are tried, in order: `asked` alone where it is given, else the path in [`PATH_VARIABLE`] alone where
/// that is set, else the cache folder and then the system's loader.
pub fn candidates(asked: Option<&Path>) -> Vec<Candidate> {
    if let Some(path) = named(asked) {
        return vec![Candidate { path, origin: Origin::Named }];
    }
    let cached = cached_library().ok().map(|path| Candidate { path, origin: Origin::Cache });
    let system = Candidate { path: library_name().into(), origin: Origin::System };
    cached.into_iter().chain([system]).collect()
}

/// The library that the caller, or else the environment, names.
pub(crate) fn named(asked: Option<&Path>) -> Option<PathBuf> {
    let variable = || env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    asked.map(Path::to_owned).or_else(variable)
}

/// What [`fetch`] and [`install_from_wheel`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installed {
    /// The library.
    pub path: PathBuf,
    /// False where it was there already.
    pub fetched: bool,
}

/// What can go wrong while the library is fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No wheel is published for this kind of machine.
    #[error(
        "no ONNX Runtime wheel is published for {os} on {arch}: install the library yourself and set {PATH_VARIABLE}"
    )]
    NoWheel {
        /// Operating system.
        os: &'static str,
        /// Processor architecture.
        arch: &'static str,
    },
    /// No pip could be started.
    #[error("pip is needed to fetch ONNX Runtime, and neither `python3 -m pip` nor `pip` could be started")]
    NoPip,
    /// pip ended with an error.
    #[error("pip could not download onnxruntime {PINNED_VERSION}: {reason}")]
    Pip {
        /// The end of what pip wrote.
        reason: String,
    },
    /// pip brought something else than one wheel.
    #[error("pip brought {found} files where one wheel was expected")]
    Wheels {
        /// Files found.
        found: usize,
    },
    /// A folder could not be made, read or removed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The wheel is not the pinned one, or could not be unpacked.
    #[error("the wheel cannot be used")]
    Wheel(#[from] release_assets::Error),
}

/// Takes the library out of a wheel that is on disk and puts it into the [cache folder](cached_library).
///
/// The wheel must be the [pinned](pinned_wheel) one by its SHA-256. The library appears under its name only when it is
/// complete.
pub fn install_from_wheel(wheel: &Path) -> Result<Installed, FetchError> {
    let pinned =
        pinned_wheel().ok_or(FetchError::NoWheel { os: env::consts::OS, arch: env::consts::ARCH })?;
    let path = cached_library()?;
    if let Some(folder) = path.parent() {
        let io = |source| FetchError::Io { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let fetched =
        release_assets::extract_member(wheel, pinned.member, pinned.sha256, &path, &Limits::default())?;
    Ok(Installed { path, fetched })
}

/// Brings the pinned library onto this machine: `pip download` of the pinned wheel, its SHA-256 checked, the one library
/// taken out and renamed into the [cache folder](cached_library). Nothing is done where it is there already; one that is
/// there with other bytes is replaced.
///
/// `say` is called with a line about each step.
pub fn fetch(say: &mut dyn FnMut(&str)) -> Result<Installed, FetchError> {
    let pinned =
        pinned_wheel().ok_or(FetchError::NoWheel { os: env::consts::OS, arch: env::consts::ARCH })?;
    let path = cached_library()?;
    if is_pinned(&path) {
        return Ok(Installed { path, fetched: false });
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| FetchError::Io { path, source }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let work = tempfile::Builder::new().prefix("wheel-").tempdir_in(folder).map_err(io(folder))?;
    say(&format!("downloading onnxruntime {PINNED_VERSION} for {} with pip", pinned.platform));
    pip_download(pinned.platform, work.path())?;
    let files: Result<Vec<_>, _> = std::fs::read_dir(work.path()).map_err(io(work.path()))?.collect();
    let files = files.map_err(io(work.path()))?;
    let [wheel] = files.as_slice() else { return Err(FetchError::Wheels { found: files.len() }) };
    say("checking its SHA-256 and taking the library out");
    install_from_wheel(&wheel.path())
}

/// Downloads with whichever pip there is; the wheel does not depend on the Python that asks.
fn pip_download(platform: &str, target: &Path) -> Result<(), FetchError> {
    let package = format!("onnxruntime=={PINNED_VERSION}");
    let launchers: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip"], &["python", "-m", "pip"]];
    let mut reasons: Vec<String> = Vec::new();
    for launcher in launchers {
        let [program, rest @ ..] = launcher else { continue };
        let mut command = Command::new(program);
        command.args(rest).args(["download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        command.args(["--only-binary=:all:", "--python-version", "3.12", "--platform", platform]);
        command.arg("--dest").arg(target).arg(&package);
        match command.output() {
            // Not there at all: the next one may be.
            Err(_) => {}
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let lines = text.lines().rev().filter(|l| !l.trim().is_empty()).take(2);
                let mut lines: Vec<&str> = lines.collect();
                lines.reverse();
                let reason = lines.join(" / ");
                // A Python without pip says nothing about the package; a pip that failed would fail again.
                let no_pip = reason.contains("No module named pip");
                reasons.push(format!("{}: {reason}", launcher.join(" ")));
                if !no_pip {
                    break;
                }
            }
        }
    }
    if reasons.is_empty() {
        return Err(FetchError::NoPip);
    }
    Err(FetchError::Pip { reason: reasons.join("; ") })
}
