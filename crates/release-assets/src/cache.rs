use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Damage, Error, Limits, Manifest, Outcome, Phase, Release, Result, Trust,
    external_data::{self, BadGraph},
    extract::Archive,
    files::{self, Temporary},
    lock::Lock,
    manifest::source_precision,
    member_name,
    progress::Progress,
    provenance::{self, Contents, RECORD_NAME, Request},
    release::{is_graph, is_metadata},
    tree::{self, Depth, State},
    url_rule::redact,
};

/// Raised when the layout below the root changes: an older program then simply has its own folder.
const BUCKET: &str = "archives-v1";
const TAG_NAME: &str = "CACHEDIR.TAG";
/// The first line is the one that backup programs look for.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # Verified extractions of model archives. Safe to delete: they are made again from the archives.\n";
const STAGING: &str = ".staging-";
const REPLACED: &str = ".replaced-";
const LOCK: &str = ".lock-";
/// The folder of what is remembered between calls.
pub(crate) const FACTS: &str = "facts-v1";
pub(crate) const WRITING: &str = ".writing-";
pub(crate) const DOWNLOAD: &str = ".download-";
/// The name of an archive that the cache keeps, beside its extractions.
pub(crate) const ARCHIVE_NAME: &str = "release.zip";
/// What a killed process may leave in the bucket.
pub(crate) const LEFTOVERS: &[&str] = &[STAGING, REPLACED, LOCK, DOWNLOAD, WRITING];
/// A working process touches its staging folder and its download as it goes on; what is older belongs to a killed one.
pub(crate) const LEFTOVER_AGE: Duration = Duration::from_hours(1);
/// How long to wait for another process that prepares the same entry and shows no sign of life.
const PATIENCE: Duration = Duration::from_mins(1);
/// Each attempt is lost only to another process that published in between.
const PUBLISH_ATTEMPTS: usize = 50;

/// A folder of verified extractions, each under the SHA-256 of its archive.
///
/// Cheap to clone; all clones, threads and processes may use one folder at the same time.
///
/// ```text
/// <root>/CACHEDIR.TAG
/// <root>/archives-v1/<SHA-256 of the archive>/release.zip     the archive, unless it was opened by its path
/// <root>/archives-v1/<SHA-256 of the archive>/<request>/...   the files
/// <root>/archives-v1/<SHA-256 of the archive>/<request>/release_provenance.json
/// <root>/facts-v1/...                                         revisions, manifests, first uses
/// ```
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    limits: Limits,
    progress: Progress,
    depth: Depth,
    patience: Duration,
}

impl Cache {
    /// A cache below `root`. Nothing is created before something is stored.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            limits: Limits::default(),
            progress: Progress::default(),
            depth: Depth::Full,
            patience: PATIENCE,
        }
    }

    /// The folder for this user's caches: `SAM_KIT_CACHE_DIR` as it is; else `sam-kit` below the model hub's
    /// cache, where the environment moves that (`HF_HUB_CACHE`, or `hub` below `HF_HOME`); else `sam-kit` below
    /// `XDG_CACHE_HOME` or `~/.cache`, on macOS below `~/Library/Caches`, on Windows below `LOCALAPPDATA`.
    /// Relative values are ignored, except in `SAM_KIT_CACHE_DIR`.
    ///
    /// Errors: [`Error::NoCacheFolder`] if none of these is set.
    pub fn default_root() -> Result<PathBuf> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(own) = variable("SAM_KIT_CACHE_DIR") {
            return Ok(own);
        }
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let hub = absolute("HF_HUB_CACHE").or_else(|| absolute("HF_HOME").map(|home| home.join("hub")));
        if let Some(hub) = hub {
            return Ok(hub.join("sam-kit"));
        }
        let base = if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            absolute("HOME").map(|home| home.join("Library").join("Caches"))
        } else {
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        };
        base.map(|base| base.join("sam-kit")).ok_or(Error::NoCacheFolder)
    }

    /// Sets what an archive may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a callback for progress, called with the phase, the bytes done and the bytes in all, at least
    /// every 256 KiB. [`ControlFlow::Break`] cancels: the call ends with [`Error::Cancelled`] and leaves
    /// nothing behind.
    #[must_use]
    pub fn on_progress(
        mut self,
        callback: impl Fn(Phase, u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Progress::new(callback);
        self
    }

    /// How long to wait for another process that does the same work and shows no sign of life, before doing it too
    /// (default one minute). A process that is at work shows one every second.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Looks at names, kinds and sizes, and that no file is dated later than the record, instead of hashing what is
    /// already in the cache. Much faster, and blind to every change that keeps a file's size and sets its time back
    /// (as copying with times does), or the record's forward: for files that nothing but this crate touches. What is
    /// new is hashed all the same.
    #[must_use]
    pub fn stat_only(mut self) -> Self {
        self.depth = Depth::Stat;
        self
    }

    /// Opens a release archive on disk.
    ///
    /// The archive is hashed, and its whole structure checked against every
    /// [`ArchiveRule`](crate::ArchiveRule). If the cache has no extraction of these bytes, one is made aside,
    /// made durable and renamed into place; one that is there is hashed in full first, and replaced if
    /// anything in it is not right.
    ///
    /// The cache keeps no copy of the archive: whoever calls this has it. A path is no proof of content, so
    /// the archive is hashed at every call, and once more after an extraction.
    ///
    /// Errors: [`Error::Archive`] (the archive lies or asks for too much), [`Error::Layout`] (no graph, or
    /// two `metadata.json`), [`Error::Graph`], [`Error::DiskFull`], [`Error::Io`], [`Error::Cancelled`].
    pub fn open_archive(&self, zip: impl AsRef<Path>) -> Result<Release> {
        self.open_path(zip.as_ref(), &Request::default())
    }

    /// Opens the archive of a release folder: one that holds `release_assets.json` and, beside it, the
    /// archive whose name the selected asset's URL ends in, decoded or not.
    ///
    /// `precision` is `auto`, `fp32`, `fp16` or a name of the publisher's, `runtime` is such as `onnx`.
    /// Manifest hash and version, precision, runtime and URL go into the record.
    ///
    /// Errors: those of [`Manifest::select`] and [`Cache::open_archive`].
    pub fn open_release_folder(
        &self,
        folder: impl AsRef<Path>,
        precision: &str,
        runtime: &str,
    ) -> Result<Release> {
        let folder = folder.as_ref();
        let manifest_path = folder.join(Manifest::FILE_NAME);
        let manifest = Manifest::read(&manifest_path)?;
        let asset = manifest.select(precision, runtime, None).map_err(|e| e.in_manifest(&manifest_path))?;
        let (name, encoded) = (asset.file_name(), asset.encoded_file_name());
        // The URL is not ours: its last segment must be a plain file name before it becomes part of a path.
        for name in [&name, encoded] {
            if member_name::check_component(name).is_err() {
                let detail = format!("the download URL ends in `{name}`, no file name");
                return Err(Error::Manifest { path: Some(manifest_path), detail });
            }
        }
        // Programs differ in which of the two they give to what they download.
        let zip = [encoded, &name].map(|name| folder.join(name));
        let zip = zip.iter().find(|zip| files::exists(zip)).unwrap_or(&zip[1]);
        let request = Request {
            manifest_sha256: Some(manifest.sha256().to_owned()),
            manifest_version: manifest.version().map(str::to_owned),
            requested_precision: Some(precision.to_owned()),
            source_precision: Some(source_precision(precision).to_owned()),
            format: Some(runtime.to_owned()),
            download_url: Some(redact(&asset.download_url)),
            tool_versions: asset.tool_versions.clone(),
            ..Request::default()
        };
        self.open_path(zip, &request)
    }

    /// Opens an archive of the caller's.
    fn open_path(&self, zip: &Path, request: &Request) -> Result<Release> {
        let mut archive = Archive::open(zip, None, &self.limits, &self.progress)?;
        let name = zip.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.open_for(&mut archive, &name, request)
    }

    /// Opens an archive for a request; `name` is the file name that is recorded of it.
    pub(crate) fn open_for(&self, archive: &mut Archive, name: &str, request: &Request) -> Result<Release> {
        let entry = self.bucket().join(&archive.sha256);
        let used = || [entry.join(request.key()), entry.clone()].iter().for_each(|path| files::touch(path));
        // Before and after, since hashing takes its time and `gc` goes by this.
        used();
        let release = self.prepare(archive, name, request)?;
        used();
        request.pin.as_ref().map_or(Ok(()), |pin| pin.require_members(&release.inventory))?;
        Ok(release)
    }

    fn prepare(&self, archive: &mut Archive, name: &str, request: &Request) -> Result<Release> {
        let mut entry = Entry {
            folder: self.bucket().join(&archive.sha256).join(request.key()),
            bucket: self.bucket(),
            archive_name: name,
            request,
            depth: self.depth,
            progress: self.progress.clone(),
        };
        if let Err(error) = check_layout(archive) {
            // Whether the publisher's archive is no release, or ours was replaced, its hash tells.
            archive.ensure_hashed(&self.progress)?;
            return Err(error);
        }
        // The usual case first, without writing anything: a read-only cache works as long as it is right.
        if let State::Valid(contents) = entry.inspect(archive)? {
            return Ok(entry.release(archive, contents, Outcome::Reused));
        }
        archive.ensure_hashed(&self.progress)?;
        self.create_bucket()?;
        let lock = self.lock(&archive.sha256)?;
        entry.progress = lock.watched(&self.progress);
        // Whoever held the lock before may have done the work.
        let reasons = match entry.inspect(archive)? {
            State::Valid(contents) => return Ok(entry.release(archive, contents, Outcome::Reused)),
            State::Absent => None,
            State::Damaged(reasons) => Some(reasons),
        };
        let (staging, contents) = entry.build(archive)?;
        let release = entry.publish(archive, staging, contents, reasons)?;
        drop(lock);
        Ok(release)
    }

    pub(crate) fn bucket(&self) -> PathBuf {
        self.root.join(BUCKET)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// This cache with another callback.
    #[cfg(feature = "network")]
    pub(crate) fn with_progress(&self, progress: &Progress) -> Self {
        Self { progress: progress.clone(), ..self.clone() }
    }

    pub(crate) fn archive_limits(&self) -> &Limits {
        &self.limits
    }

    /// The lock for work on one thing, after removing what killed processes left.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock> {
        let bucket = self.bucket();
        files::sweep(&bucket, LEFTOVERS, LEFTOVER_AGE);
        files::sweep(&self.root.join(FACTS), LEFTOVERS, LEFTOVER_AGE);
        let wait = || self.progress.report(Phase::Wait, 0, 0);
        Lock::acquire(&bucket.join(format!("{LOCK}{name}")), self.patience, wait)
    }

    pub(crate) fn create_bucket(&self) -> Result<()> {
        let bucket = &self.bucket();
        files::create_folder(bucket).map_err(|e| Error::writing(bucket, e, None))?;
        let tag = self.root.join(TAG_NAME);
        let written = match files::create_new(&tag) {
            Ok(mut file) => file.write_all(TAG.as_bytes()).and_then(|()| files::sync_folder(&self.root)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        };
        written.map_err(|e| Error::writing(tag, e, TAG.len() as u64))
    }
}

/// One archive's extraction for one request.
struct Entry<'a> {
    bucket: PathBuf,
    folder: PathBuf,
    archive_name: &'a str,
    request: &'a Request,
    depth: Depth,
    progress: Progress,
}

impl Entry<'_> {
    fn inspect(&self, archive: &mut Archive) -> Result<State> {
        tree::inspect(&self.folder, archive, self.request, self.depth, &self.progress)
    }

    fn release(&self, archive: &Archive, contents: Contents, outcome: Outcome) -> Release {
        Release {
            root: self.folder.clone(),
            archive_sha256: archive.sha256.clone(),
            inventory: contents.inventory,
            outcome,
            trust: Trust::Given,
            fetched_bytes: 0,
            commit: self.request.resolved_revision.clone(),
        }
    }

    /// Makes a complete extraction aside: files, then the record, all durable.
    fn build(&self, archive: &mut Archive) -> Result<(Temporary, Contents)> {
        let staging = Temporary::folder(&self.bucket, STAGING, archive.listing.total_bytes)?;
        let root = staging.path();
        let shown = root.to_owned();
        let progress = self.progress.showing_life(move || files::touch(&shown));
        let fingerprints = archive.extract_all(root, &progress)?;
        archive.recheck(&progress)?;
        // The disk has to show the archive's names, no others: some file systems change what they are given.
        if let Some(damage) = tree::check_names_and_sizes(root, archive).into_iter().next() {
            return Err(layout(
                archive,
                format!("this file system does not keep the files as given: {damage}"),
            ));
        }
        let inventory = tree::inventory(archive, fingerprints);
        // What is not pinned does not stay.
        self.request.pin.as_ref().map_or(Ok(()), |pin| pin.require_members(&inventory))?;
        let sidecars = external_data::discover(root, &inventory).map_err(|bad| {
            let BadGraph { graph, source } = bad;
            Error::Graph { archive: archive.path().to_owned(), graph, source }
        })?;
        let contents = Contents { inventory, sidecars };
        let expected = provenance::expected(self.request, &archive.sha256, &contents);
        let bytes = provenance::write(&expected, self.archive_name);
        let limit = provenance::max_bytes(contents.inventory.len() as u64);
        if bytes.len() as u64 > limit {
            let detail = format!("its record would have {} bytes, {limit} are allowed", bytes.len());
            return Err(layout(archive, detail));
        }
        let record = root.join(RECORD_NAME);
        let needed = archive.listing.total_bytes;
        let write = |mut file: File| file.write_all(&bytes).and_then(|()| file.sync_all());
        files::create_new(&record).and_then(write).map_err(|e| Error::writing(&record, e, needed))?;
        files::sync_folder(root).map_err(|e| Error::writing(root, e, needed))?;
        Ok((staging, contents))
    }

    /// Renames a complete extraction into place. What is there already is used if it is right, and otherwise
    /// moved aside until the new one is in its place.
    fn publish(
        &self,
        archive: &mut Archive,
        staging: Temporary,
        contents: Contents,
        mut reasons: Option<Vec<Damage>>,
    ) -> Result<Release> {
        let needed = archive.listing.total_bytes;
        let fail = |e| Error::writing(&self.folder, e, needed);
        let parent = self.folder.parent().unwrap_or(&self.bucket);
        for _ in 0..PUBLISH_ATTEMPTS {
            // May be removed again by another process whose attempt fails.
            files::create_folder(parent).map_err(fail)?;
            let aside = match self.inspect(archive)? {
                State::Valid(found) => {
                    let outcome = reasons.map_or(Outcome::Reused, |reasons| Outcome::Repaired { reasons });
                    return Ok(self.release(archive, found, outcome));
                }
                State::Absent => None,
                State::Damaged(found) => {
                    reasons.get_or_insert(found);
                    self.move_aside().map_err(fail)?
                }
            };
            match files::rename(staging.path(), &self.folder) {
                Ok(()) => {
                    staging.keep();
                    files::sync_folder(parent)
                        .and_then(|()| files::sync_folder(&self.bucket))
                        .map_err(fail)?;
                    let outcome = reasons.map_or(Outcome::Extracted, |reasons| Outcome::Repaired { reasons });
                    return Ok(self.release(archive, contents, outcome));
                }
                // Another process was faster: look at what it brought.
                Err(_) if files::exists(&self.folder) || !files::exists(parent) => {}
                Err(e) => {
                    if let Some(old) = aside
                        && files::rename(old.path(), &self.folder).is_ok()
                    {
                        old.keep();
                    }
                    // Succeeds only if the folder is empty.
                    let _ = fs::remove_dir(parent);
                    return Err(fail(e));
                }
            }
        }
        Err(Error::Contended { path: self.folder.clone() })
    }

    /// Moves what stands in the entry's place into a folder of its own, to be removed at the end. None if it
    /// is gone.
    fn move_aside(&self) -> io::Result<Option<Temporary>> {
        let path = self.bucket.join(files::unique_name(&REPLACED.into()));
        match files::rename(&self.folder, &path) {
            Ok(()) => Ok(Some(Temporary::adopt(path))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// What makes an archive a release: at least one graph, at most one `metadata.json`.
pub(crate) fn check_layout(archive: &Archive) -> Result<()> {
    if !archive.listing.files().any(|entry| is_graph(&entry.path)) {
        return Err(layout(archive, "there is no graph (*.onnx) in the archive".to_owned()));
    }
    let metadata: Vec<_> =
        archive.listing.files().map(|e| e.path.as_str()).filter(|p| is_metadata(p)).collect();
    if metadata.len() > 1 {
        let detail = format!("one metadata.json is allowed, there are {}", metadata.join(", "));
        return Err(layout(archive, detail));
    }
    Ok(())
}

fn layout(archive: &Archive, detail: String) -> Error {
    Error::Layout { archive: archive.path().to_owned(), detail }
}
