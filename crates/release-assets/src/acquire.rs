//! From a request to a verified release: find or fetch the archive, open it.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    Cache, Client, Damage, Error, HubRelease, Outcome, Phase, Pin, Release, Result, Trust, UrlRelease,
    cache::{self, ARCHIVE_NAME, DOWNLOAD},
    extract::Archive,
    facts::{Facts, FirstUse},
    files::{self, Temporary},
    hashing,
    network::Address,
    progress::Progress,
    provenance::{Kind, Request},
    resolve::Source,
};

/// Each attempt after the first is lost only to somebody who damages what was just fetched.
const ATTEMPTS: usize = 3;

impl Source<'_> {
    /// What is remembered of the address. Where a pin or the caller decides, it may be damaged.
    fn first_use(&self, facts: &Facts) -> Result<Option<FirstUse>> {
        let Some(address) = &self.address else { return Ok(None) };
        match facts.first_use(address) {
            Err(Error::DamagedFact { .. }) if !self.must_be_the_same() => Ok(None),
            found => found,
        }
    }

    /// Whether the address's first use is all that the archive can be held against.
    fn must_be_the_same(&self) -> bool {
        self.pin.is_none() && !self.accept_changed
    }

    /// What the caller knows an archive of the cache by.
    fn name(&self, kept: &Path) -> PathBuf {
        self.address.as_ref().map_or_else(|| kept.to_owned(), |address| address.to_string().into())
    }

    /// Holds an opened release against the pin, and completes it.
    fn accept(&self, mut release: Release, size: u64, found_wrong: Vec<Damage>) -> Result<Release> {
        if let Some(pin) = &self.pin {
            pin.require_size(size)?;
            release.trust = Trust::pinned(pin);
        }
        release.outcome = release.outcome.after(found_wrong);
        Ok(release)
    }
}

impl Cache {
    /// Acquires a release of a model hub: the revision is resolved to a commit, the manifest read at exactly that
    /// commit, the archive downloaded unless it is here, and everything verified as by
    /// [`open_archive`](Self::open_archive).
    ///
    /// A full commit whose manifest is in the cache needs no network; a pinned commit is the revision where none is
    /// given. A client that is [offline](crate::ClientBuilder::offline) uses what a revision was when its release was
    /// last acquired. The archive is hashed at every call; one that was changed is downloaded again and must be what it
    /// was.
    ///
    /// Errors: [`Error::NoReleases`] if the repository publishes none, the hub's
    /// ([`NotFound`](Error::NotFound), [`Unauthorised`](Error::Unauthorised),
    /// [`Unreachable`](Error::Unreachable), ...), [`Error::Manifest`] and [`Error::NoAsset`], [`Error::Url`],
    /// [`Error::Download`], [`Error::PinBroken`], [`Error::ArchiveReplaced`], [`Error::Offline`], and those of
    /// [`open_archive`](Self::open_archive).
    pub fn acquire(&self, wanted: &HubRelease, client: &Client) -> Result<Release> {
        wanted.validate()?;
        let source = self.resolve(wanted, client)?;
        let release = self.obtain(&source)?;
        source.resolved.as_ref().map_or(Ok(()), |fact| self.remember_revision(fact))?;
        Ok(release)
    }

    /// Acquires an archive by its address; otherwise as [`acquire`](Self::acquire).
    pub fn acquire_url(&self, wanted: &UrlRelease, client: &Client) -> Result<Release> {
        let address = Address::parse(&wanted.url)?;
        let pin = wanted.pin.clone();
        if let Some(pin) = &pin {
            pin.validate()?;
            pin.require_address(&wanted.url)?;
        }
        let request = Request {
            download_url: Some(address.to_string()),
            kind: Kind::Url,
            pin: pin.clone(),
            ..Request::default()
        };
        let (address, accept_changed) = (Some(address), wanted.accept_changed);
        self.obtain(&Source { client, address, request, pin, accept_changed, resolved: None })
    }

    /// Copies an archive from disk into the cache, verified like a downloaded one, and opens it. With a pin it must
    /// be the pinned one, and an offline client's requests for the pinned release find it.
    ///
    /// Errors: [`Error::HashMismatch`] and [`Error::PinBroken`] (not the pinned archive), [`Error::Setting`] and
    /// [`Error::Url`] (the pin's form), [`Error::ArchiveChanged`] (while it was copied), and those of
    /// [`open_archive`](Self::open_archive).
    pub fn import(&self, zip: impl AsRef<Path>, pin: Option<&Pin>) -> Result<Release> {
        let zip = zip.as_ref();
        let expected = pin.map(|pin| pin.validate().map(|()| pin.sha256.as_str())).transpose()?;
        let mut archive = Archive::open(zip, expected, self.archive_limits(), self.progress())?;
        pin.map_or(Ok(()), |pin| pin.require_size(archive.size()))?;
        let request = Request { pin: pin.cloned(), ..Request::default() };
        // Only what turned out to be a release is kept.
        let mut release = self.open_for(&mut archive, ARCHIVE_NAME, &request)?;
        let sha256 = archive.sha256.clone();
        if !self.keeps(&sha256, self.progress())? {
            let was_here = files::exists(&self.kept_archive(&sha256));
            let lock = self.lock(&sha256)?;
            let progress = lock.watched(self.progress());
            // Whoever held the lock before may have done the work.
            if !self.keeps(&sha256, &progress)? {
                self.with_progress(&progress).keep_copy(&mut archive)?;
            }
            release.outcome = release.outcome.after(Vec::from_iter(was_here.then_some(Damage::Archive)));
        }
        if let Some(pin) = pin {
            release.trust = Trust::pinned(pin);
            if let Some(url) = &pin.url {
                let address = Address::parse(url)?;
                // What the address gave before is not overruled by a file that somebody brought.
                let fact = first_use(&address, &sha256, archive.size());
                match Facts::new(self.root()).claim_first_use(&address, &fact) {
                    // Neither is something that cannot be understood, which who asks without a pin is told.
                    Ok(_) | Err(Error::DamagedFact { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(release)
    }

    /// Finds the archive or fetches it, and opens it.
    fn obtain(&self, source: &Source<'_>) -> Result<Release> {
        let facts = Facts::new(self.root());
        let mut found_wrong: Vec<Damage> = Vec::new();
        // Who accepts another archive than the first wants to know what the address gives now.
        let mut ask_anew = source.accept_changed && source.pin.is_none() && !source.client.is_offline();
        for attempt in 0..=ATTEMPTS {
            let first = source.first_use(&facts)?;
            let pinned = source.pin.as_ref().map(|pin| &pin.sha256);
            if let Some(sha256) = pinned.or(first.as_ref().map(|first| &first.sha256))
                && !mem::take(&mut ask_anew)
            {
                let path = self.kept_archive(sha256);
                match self.open_kept(sha256, &source.request) {
                    Ok((mut release, size)) => {
                        if let Some(first) = first {
                            release.trust = Trust::SinceFirstUse { at: first.at };
                        }
                        return source.accept(release, size, found_wrong);
                    }
                    Err(error) => {
                        let damage = damage_of_archive(error, &path)
                            .map_err(|error| error.of_archive(&path, &source.name(&path)))?;
                        // An archive that was never here, or was removed with all that was made of it, is no damage.
                        let folder_is_here = path.parent().is_some_and(files::exists);
                        let was_here = files::exists(&path) || (first.is_some() && folder_is_here);
                        found_wrong.extend(Some(damage).filter(|d| was_here && !found_wrong.contains(d)));
                    }
                }
            }
            if source.client.is_offline() {
                return Err(Error::Offline { missing: missing_archive(source, !found_wrong.is_empty()) });
            }
            if attempt == ATTEMPTS {
                break;
            }
            match self.download(source, &facts, &found_wrong) {
                Ok(None) => {}
                Ok(Some(release)) => return Ok(release),
                Err(error) => return Err(error.while_repairing(&found_wrong)),
            }
        }
        Err(Error::Contended { path: self.bucket() })
    }

    /// Downloads the archive into the cache and opens it. None if another thread or process has just brought it.
    fn download(
        &self,
        source: &Source<'_>,
        facts: &Facts,
        found_wrong: &[Damage],
    ) -> Result<Option<Release>> {
        let Some(address) = &source.address else {
            return Err(Error::Offline { missing: missing_archive(source, false) });
        };
        self.create_bucket()?;
        let lock = self.lock(&hashing::sha256_bytes(address.secret_text().as_bytes())[..32])?;
        let progress = lock.watched(self.progress());
        let first = source.first_use(facts)?;
        let expected =
            source.pin.as_ref().map(|pin| &pin.sha256).or(first.as_ref().map(|first| &first.sha256));
        // Whoever held the lock before may have done the work.
        if let Some(sha256) = expected
            && !source.accept_changed
            && self.keeps(sha256, &progress)?
        {
            return Ok(None);
        }
        let size = source.pin.as_ref().and_then(|pin| pin.size);
        let (mut file, temporary) = Temporary::file(&self.bucket(), &DOWNLOAD.into(), size)?;
        let done = source.client.download(address, size, &mut file, temporary.path(), &progress)?;
        drop(file);
        // Unpacking may take longer than a file may lie untouched.
        let shown = temporary.path().to_owned();
        let progress = progress.showing_life(move || files::touch(&shown));
        // What is not pinned is not even read.
        if let Some(pin) = &source.pin {
            pin.require(&format!("the SHA-256 of {address}"), Some(&pin.sha256), &done.sha256)?;
        }
        let rename = |error: Error| error.of_archive(temporary.path(), &source.name(temporary.path()));
        let limits = self.archive_limits();
        let mut archive =
            Archive::open(temporary.path(), Some(&done.sha256), limits, &progress).map_err(rename)?;
        cache::check_layout(&archive).map_err(rename)?;
        let replaced = |first: &FirstUse| Error::ArchiveReplaced {
            url: address.to_string(),
            first: first.sha256.clone(),
            found: done.sha256.clone(),
        };
        let must_be_the_same = source.must_be_the_same();
        // Another thread or process may have been first meanwhile.
        match source.first_use(facts)? {
            Some(first) if must_be_the_same && first.sha256 != done.sha256 => return Err(replaced(&first)),
            _ => {}
        }
        // Only what turned out to be a release is kept and remembered.
        let opened = self.with_progress(&progress).open_for(&mut archive, ARCHIVE_NAME, &source.request);
        let mut release = opened.map_err(rename)?;
        drop(archive);
        self.keep(temporary, &done.sha256, done.size)?;
        let fact = first_use(address, &done.sha256, done.size);
        let held = match facts.claim_first_use(address, &fact) {
            Err(Error::DamagedFact { .. }) if source.accept_changed => {
                facts.replace_first_use(address, &fact)?;
                None
            }
            // A pin decides for its own caller; the others are told of the damage.
            Err(Error::DamagedFact { .. }) if source.pin.is_some() => None,
            held => held?,
        };
        release.trust = match held {
            Some(first) if first.sha256 == done.sha256 => Trust::SinceFirstUse { at: first.at },
            // Lost by an instant: what was brought stays unused, until `gc` removes it.
            Some(first) if must_be_the_same => return Err(replaced(&first)),
            before => {
                if before.is_some() && source.accept_changed {
                    facts.replace_first_use(address, &fact)?;
                }
                Trust::FirstUse
            }
        };
        release.fetched_bytes = done.fetched;
        source.accept(release, done.size, found_wrong.to_vec()).map(Some)
    }

    /// Puts a complete archive in its place, over a damaged one too.
    fn keep(&self, temporary: Temporary, sha256: &str, size: u64) -> Result<()> {
        let path = self.kept_archive(sha256);
        let folder = self.bucket().join(sha256);
        let fail = |e| Error::writing(&path, e, size);
        for _ in 0..ATTEMPTS {
            files::create_folder(&folder).map_err(fail)?;
            // A folder in the archive's place would stay there.
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                files::remove(&path).map_err(fail)?;
            }
            match files::rename(temporary.path(), &path) {
                Ok(()) => {
                    temporary.keep();
                    // Both, so that nothing is remembered of an archive that a loss of power takes away.
                    let synced =
                        files::sync_folder(&folder).and_then(|()| files::sync_folder(&self.bucket()));
                    return synced.map_err(fail);
                }
                // The folder may just have been removed by an extraction that failed.
                Err(_) if !files::exists(&folder) => {}
                Err(e) => return Err(fail(e)),
            }
        }
        Err(Error::Contended { path })
    }

    /// The release and its archive's bytes.
    fn open_kept(&self, sha256: &str, request: &Request) -> Result<(Release, u64)> {
        let path = self.kept_archive(sha256);
        match self.open_expected(&path, sha256, request) {
            Err(Error::Io { .. }) if !files::exists(&path) && files::exists(&self.bucket()) => {
                // `gc` has an archive aside for an instant before it knows whether it stays, and the lock for as long.
                drop(self.lock(sha256)?);
                self.open_expected(&path, sha256, request)
            }
            other => other,
        }
    }

    /// Opens the cache's own archive, which is held against its hash beside the files.
    fn open_expected(&self, path: &Path, sha256: &str, request: &Request) -> Result<(Release, u64)> {
        // Before it is opened, so that `gc` sees the use.
        files::touch(&self.bucket().join(sha256));
        let mut archive = Archive::open_unhashed(path, sha256, self.archive_limits(), self.progress())?;
        let release = self.open_for(&mut archive, ARCHIVE_NAME, request)?;
        if !files::exists(path) {
            // Somebody removed it meanwhile; the open file still has every byte.
            self.keep_copy(&mut archive)?;
        }
        Ok((release, archive.size()))
    }

    /// Copies an archive into the cache. Fails with [`Error::ArchiveChanged`] where it is not what was hashed.
    fn keep_copy(&self, archive: &mut Archive) -> Result<()> {
        let (sha256, size) = (archive.sha256.clone(), archive.size());
        let (mut file, temporary) = Temporary::file(&self.bucket(), &DOWNLOAD.into(), Some(size))?;
        let copied = archive.copy_to(&mut file, temporary.path(), self.progress())?;
        if copied != sha256 {
            let (path, before) = (archive.path().to_owned(), sha256);
            return Err(Error::ArchiveChanged { path, before, after: copied });
        }
        self.keep(temporary, &sha256, size)
    }

    /// Whether the archive is in the cache, sound. The only error is a cancelled run.
    fn keeps(&self, sha256: &str, progress: &Progress) -> Result<bool> {
        let path = self.kept_archive(sha256);
        let Ok((mut file, size)) = files::open_regular(&path) else { return Ok(false) };
        let counter = progress.phase(Phase::HashArchive, size)?;
        match hashing::hash_open_file(&mut file, &path, Some(counter)) {
            Ok(found) => Ok(found == sha256),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(_) => Ok(false),
        }
    }

    fn kept_archive(&self, sha256: &str) -> PathBuf {
        self.bucket().join(sha256).join(ARCHIVE_NAME)
    }
}

fn first_use(address: &Address, sha256: &str, size: u64) -> FirstUse {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    FirstUse { url: address.to_string(), sha256: sha256.to_owned(), size, at }
}

impl Trust {
    fn pinned(pin: &Pin) -> Self {
        Self::Pinned { by: pin.pinned_by.clone(), at: pin.pinned_at.clone() }
    }
}

impl Outcome {
    /// What was done in all, where something was found wrong before.
    fn after(self, before: Vec<Damage>) -> Self {
        if before.is_empty() {
            return self;
        }
        let mut reasons = before;
        if let Self::Repaired { reasons: more } = self {
            reasons.extend(more);
        }
        Self::Repaired { reasons }
    }
}

/// Tells a missing or changed archive of ours from every other error.
fn damage_of_archive(error: Error, archive: &Path) -> Result<Damage> {
    match &error {
        Error::Io { path, source } if path == archive => match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Ok(Damage::ArchiveMissing),
            // The archive, its folder or the bucket, as a link that leads nowhere but to itself.
            _ if archive.ancestors().take(3).any(is_broken_link) => Ok(Damage::ArchiveMissing),
            _ => Err(error),
        },
        Error::HashMismatch { path, .. } | Error::NotAFile { path } if path == archive => Ok(Damage::Archive),
        _ => Err(error),
    }
}

fn is_broken_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) && fs::metadata(path).is_err()
}

fn missing_archive(source: &Source<'_>, damaged: bool) -> String {
    let what = match (&source.address, &source.pin) {
        (Some(address), _) => address.to_string(),
        (None, Some(pin)) => format!("with SHA-256 {}", pin.sha256),
        (None, None) => String::new(),
    };
    let state = if damaged { "a sound copy of " } else { "" };
    format!("{state}the archive {what}")
}
