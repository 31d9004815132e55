//! From a request to a verified release: resolve, find or fetch the archive, open it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    Cache, Client, Damage, Error, HubRelease, Manifest, Outcome, Phase, Pin, Release, Result, Trust,
    UrlRelease,
    cache::{self, ARCHIVE_NAME, DOWNLOAD},
    extract::Archive,
    facts::{Facts, FirstUse, Resolution},
    files::{self, Temporary},
    hashing,
    manifest::source_precision,
    network::{Address, RevisionInfo, is_commit},
    progress::Progress,
    provenance::{Kind, Request},
};

/// Each attempt after the first is lost only to somebody who damages what was just fetched.
const ATTEMPTS: usize = 3;

/// What is to be had, once it is known.
struct Source<'a> {
    client: &'a Client,
    /// None where a pin alone says what is wanted and the manifest is not at hand.
    address: Option<Address>,
    request: Request,
    pin: Option<Pin>,
    accept_changed: bool,
}

impl Source<'_> {
    /// What the archive was held against: the pin, or the address's first use where that is what the archive is.
    fn trust(&self, first: Option<&FirstUse>) -> Trust {
        match (&self.pin, first) {
            (Some(pin), _) => Trust::pinned(pin),
            (None, Some(first)) => Trust::SinceFirstUse { at: first.at },
            (None, None) => Trust::FirstUse,
        }
    }
}

/// How an archive came into the cache.
struct Stored {
    fetched: u64,
    trust: Trust,
}

impl Cache {
    /// Acquires a release of a model hub: the revision is resolved to a commit, the manifest read at exactly that
    /// commit, the archive downloaded unless it is here, and everything verified as by
    /// [`open_archive`](Self::open_archive).
    ///
    /// A full commit whose manifest is in the cache needs no network. A client that is
    /// [offline](crate::ClientBuilder::offline) uses what a revision was when it was last resolved. The archive is
    /// hashed at every call; one that was changed is downloaded again and must be what it was.
    ///
    /// Errors: [`Error::NoReleases`] if the repository publishes none, the hub's
    /// ([`NotFound`](Error::NotFound), [`Unauthorised`](Error::Unauthorised),
    /// [`Unreachable`](Error::Unreachable), ...), [`Error::Manifest`] and [`Error::NoAsset`], [`Error::Url`],
    /// [`Error::Download`], [`Error::PinBroken`], [`Error::ArchiveReplaced`], [`Error::Offline`], and those of
    /// [`open_archive`](Self::open_archive).
    pub fn acquire(&self, wanted: &HubRelease, client: &Client) -> Result<Release> {
        wanted.validate()?;
        let source = self.resolve(wanted, client)?;
        self.obtain(&source)
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
        self.obtain(&Source { client, address, request, pin, accept_changed })
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
        cache::check_layout(&archive)?;
        pin.map_or(Ok(()), |pin| pin.require_size(archive.size()))?;
        let sha256 = archive.sha256.clone();
        self.create_bucket()?;
        let kept = self.kept_archive(&sha256);
        let mut found_wrong = Vec::new();
        if !self.keeps(&sha256, self.progress())? {
            found_wrong.extend(files::exists(&kept).then_some(Damage::Archive));
            let lock = self.lock(&sha256)?;
            let progress = lock.watched(self.progress());
            // Whoever held the lock before may have done the work.
            if !self.keeps(&sha256, &progress)? {
                archive.check_contents(&progress)?;
                let (mut file, temporary) = Temporary::file(&self.bucket(), &DOWNLOAD.into())?;
                let copied = archive.copy_to(&mut file, temporary.path(), &progress)?;
                if copied != sha256 {
                    return Err(Error::ArchiveChanged {
                        path: zip.to_owned(),
                        before: sha256,
                        after: copied,
                    });
                }
                self.keep(temporary, &sha256)?;
            }
        }
        let request = Request { pin: pin.cloned(), ..Request::default() };
        let opened = self.open(&kept, Some(&sha256), &request);
        let mut release = opened.map_err(|error| error.of_archive(&kept, zip))?;
        release.outcome = release.outcome.after(found_wrong);
        if let Some(pin) = pin {
            pin.require_members(&release.inventory)?;
            release.trust = Trust::pinned(pin);
            if let Some(url) = &pin.url {
                let address = Address::parse(url)?;
                // What the address gave before is not overruled by a file that somebody brought.
                if Facts::new(self.root()).first_use(&address).is_none() {
                    self.remember(&address, &sha256, archive.size())?;
                }
            }
        }
        Ok(release)
    }

    fn resolve<'a>(&self, wanted: &HubRelease, client: &'a Client) -> Result<Source<'a>> {
        let facts = Facts::new(self.root());
        let (repository, revision) = (&wanted.repository, wanted.revision.as_deref());
        let endpoint = client.endpoint();
        let source_precision = source_precision(&wanted.precision);
        let asset = (source_precision, wanted.runtime.as_str(), wanted.chipset.as_deref());
        if let Some(pin) = &wanted.pin {
            pin.require("the repository", pin.repository.as_deref(), repository)?;
            pin.require_asset(asset)?;
        }
        let known = facts.revision(&endpoint, repository, revision);
        // A commit is nothing but itself, whatever is remembered.
        let known = known.filter(|fact| revision.is_none_or(|r| !is_commit(r) || r == fact.commit));
        // What a branch was last is no answer offline where the pin names another commit.
        let pinned = wanted.pin.as_ref().and_then(|pin| pin.commit.as_deref());
        let known =
            known.filter(|fact| !client.is_offline() || pinned.is_none_or(|commit| commit == fact.commit));
        let here = known.and_then(|fact| {
            let bytes = facts.manifest(repository, &fact.commit, &fact.manifest_sha256)?;
            Some((fact, bytes))
        });
        // A commit never means anything else later; a branch may.
        let settled = client.is_offline() || revision.is_some_and(is_commit);
        let (fact, bytes) = match here {
            Some(here) if settled => here,
            _ if client.is_offline() => return resolve_by_pin(wanted, client),
            _ => {
                let RevisionInfo { commit, pipeline_tag } =
                    client.revision(repository, revision, self.progress())?;
                let bytes = client.manifest(repository, &commit, self.progress())?;
                let fact = Resolution {
                    endpoint,
                    repository: repository.clone(),
                    revision: wanted.revision.clone(),
                    commit,
                    pipeline_tag,
                    manifest_sha256: hashing::sha256_bytes(&bytes),
                };
                check_manifest(&facts, &fact, wanted)?;
                (fact, bytes)
            }
        };
        let manifest = Manifest::parse(&bytes)?;
        let pin = wanted.pin.clone().or_else(|| Pin::built_in(&fact.commit, asset));
        if let Some(pin) = &pin {
            pin.require("the commit", pin.commit.as_deref(), &fact.commit)?;
            pin.require("the manifest's SHA-256", pin.manifest_sha256.as_deref(), manifest.sha256())?;
        }
        let asset = manifest.select(&wanted.precision, &wanted.runtime, wanted.chipset.as_deref())?;
        let address = Address::parse(&asset.download_url)?;
        if let Some(pin) = &pin {
            pin.require_address(&asset.download_url)?;
        }
        let request = Request {
            repo_id: Some(repository.clone()),
            requested_revision: wanted.revision.clone(),
            resolved_revision: Some(fact.commit.clone()),
            pipeline_tag: fact.pipeline_tag.clone(),
            manifest_sha256: Some(manifest.sha256().to_owned()),
            manifest_version: manifest.version().map(str::to_owned),
            requested_precision: Some(wanted.precision.clone()),
            source_precision: Some(source_precision.to_owned()),
            format: Some(wanted.runtime.clone()),
            download_url: Some(address.to_string()),
            tool_versions: asset.tool_versions.clone(),
            chipset: wanted.chipset.clone(),
            kind: Kind::Hub,
            pin: pin.clone(),
        };
        if !client.is_offline() {
            self.remember_resolution(&facts, &fact, &bytes)?;
        }
        Ok(Source { client, address: Some(address), request, pin, accept_changed: wanted.accept_changed })
    }

    /// Finds the archive or fetches it, and opens it.
    fn obtain(&self, source: &Source<'_>) -> Result<Release> {
        let facts = Facts::new(self.root());
        let mut stored: Option<Stored> = None;
        let mut found_wrong: Vec<Damage> = Vec::new();
        for attempt in 0..=ATTEMPTS {
            let first = source.address.as_ref().and_then(|address| facts.first_use(address));
            let pinned = source.pin.as_ref().map(|pin| pin.sha256.clone());
            if let Some(sha256) = pinned.or_else(|| first.as_ref().map(|first| first.sha256.clone())) {
                let path = self.kept_archive(&sha256);
                match self.open_kept(&sha256, &source.request) {
                    Ok(mut release) => {
                        if let Some(pin) = &source.pin {
                            pin.require_size(fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len())?;
                            pin.require_members(&release.inventory)?;
                        }
                        let Stored { fetched, trust } = stored
                            .unwrap_or_else(|| Stored { fetched: 0, trust: source.trust(first.as_ref()) });
                        release.outcome = release.outcome.after(found_wrong);
                        (release.fetched_bytes, release.trust) = (fetched, trust);
                        return Ok(release);
                    }
                    Err(error) => {
                        // A sound archive that is no usable release stays what it is, unless the caller expects another
                        // one, or a pin says that just this one is wanted.
                        let refused = matches!(
                            error,
                            Error::Archive { .. } | Error::Layout { .. } | Error::Graph { .. }
                        );
                        let damage =
                            if refused && source.accept_changed && source.pin.is_none() && stored.is_none() {
                                Damage::Archive
                            } else {
                                damage_of_archive(error, &path)?
                            };
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
            let before = stored.as_ref().map_or(0, |stored| stored.fetched);
            let mut next = self.download(source, &facts).map_err(|e| e.while_repairing(&found_wrong))?;
            next.fetched += before;
            stored = Some(next);
        }
        Err(Error::Contended { path: self.bucket() })
    }

    /// Downloads the archive into the cache, unless another thread or process has just done so.
    fn download(&self, source: &Source<'_>, facts: &Facts) -> Result<Stored> {
        let Some(address) = &source.address else {
            return Err(Error::Offline { missing: missing_archive(source, false) });
        };
        self.create_bucket()?;
        let lock = self.lock(&hashing::sha256_bytes(address.secret_text().as_bytes())[..32])?;
        let progress = lock.watched(self.progress());
        let first = facts.first_use(address);
        let expected =
            source.pin.as_ref().map(|pin| &pin.sha256).or(first.as_ref().map(|first| &first.sha256));
        // Whoever held the lock before may have done the work.
        if let Some(sha256) = expected
            && !source.accept_changed
            && self.keeps(sha256, &progress)?
        {
            return Ok(Stored { fetched: 0, trust: source.trust(first.as_ref()) });
        }
        let (mut file, temporary) = Temporary::file(&self.bucket(), &DOWNLOAD.into())?;
        let size = source.pin.as_ref().and_then(|pin| pin.size);
        let done = source.client.download(address, size, &mut file, temporary.path(), &progress)?;
        drop(file);
        if let Some(pin) = &source.pin {
            pin.require(&format!("the SHA-256 of {address}"), Some(&pin.sha256), &done.sha256)?;
        } else if let Some(first) = &first
            && first.sha256 != done.sha256
            && !source.accept_changed
        {
            let (url, first, found) = (address.to_string(), first.sha256.clone(), done.sha256);
            return Err(Error::ArchiveReplaced { url, first, found });
        }
        // Only a sound archive is kept and remembered.
        let archive = Archive::open(temporary.path(), Some(&done.sha256), self.archive_limits(), &progress);
        let sound = archive.and_then(|mut archive| {
            cache::check_layout(&archive)?;
            archive.check_contents(&progress)
        });
        sound.map_err(|error| error.of_archive(temporary.path(), &PathBuf::from(address.to_string())))?;
        self.keep(temporary, &done.sha256)?;
        let changed = first.as_ref().is_none_or(|first| first.sha256 != done.sha256);
        if changed {
            self.remember(address, &done.sha256, done.size)?;
        }
        Ok(Stored { fetched: done.fetched, trust: source.trust(first.as_ref().filter(|_| !changed)) })
    }

    /// Puts a complete archive in its place, over a damaged one too.
    fn keep(&self, temporary: Temporary, sha256: &str) -> Result<()> {
        let path = self.kept_archive(sha256);
        let folder = self.bucket().join(sha256);
        let fail = |e| Error::writing(&path, e, 0);
        for _ in 0..ATTEMPTS {
            files::create_folder(&folder).map_err(fail)?;
            // A folder in the archive's place would stay there.
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                files::remove(&path).map_err(fail)?;
            }
            match files::rename(temporary.path(), &path) {
                Ok(()) => {
                    temporary.keep();
                    return files::sync_folder(&folder).map_err(fail);
                }
                // The folder may just have been removed by an extraction that failed.
                Err(_) if !files::exists(&folder) => {}
                Err(e) => return Err(fail(e)),
            }
        }
        Err(Error::Contended { path })
    }

    fn open_kept(&self, sha256: &str, request: &Request) -> Result<Release> {
        let path = self.kept_archive(sha256);
        match self.open(&path, Some(sha256), request) {
            Err(Error::Io { .. }) if !files::exists(&path) && files::exists(&self.bucket()) => {
                // `gc` has an archive aside for an instant before it knows whether it stays, and the lock for as long.
                drop(self.lock(sha256)?);
                self.open(&path, Some(sha256), request)
            }
            other => other,
        }
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

    fn remember(&self, address: &Address, sha256: &str, size: u64) -> Result<()> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let fact = FirstUse { url: address.to_string(), sha256: sha256.to_owned(), size, at };
        Facts::new(self.root()).remember_first_use(address.secret_text(), &fact)
    }

    /// Remembers what a revision is, for use without a network. Nothing is written where it is known already, so
    /// that a read-only cache can be used online.
    fn remember_resolution(&self, facts: &Facts, fact: &Resolution, manifest: &[u8]) -> Result<()> {
        // The commit as such is as good a name, and what another answer is held against: it comes first.
        let by_commit = Resolution { revision: Some(fact.commit.clone()), ..fact.clone() };
        let is_known = |fact: &Resolution| {
            facts.revision(&fact.endpoint, &fact.repository, fact.revision.as_deref()).as_ref() == Some(fact)
        };
        let here = facts.manifest(&fact.repository, &fact.commit, &fact.manifest_sha256).is_some();
        if is_known(&by_commit) && is_known(fact) && here {
            return Ok(());
        }
        self.create_bucket()?;
        facts.remember_manifest(&fact.repository, &fact.commit, manifest)?;
        facts.remember_revision(&by_commit)?;
        facts.remember_revision(fact)
    }
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

/// Offline, with nothing remembered of the revision: a pin still says which archive is wanted.
fn resolve_by_pin<'a>(wanted: &HubRelease, client: &'a Client) -> Result<Source<'a>> {
    let revision = wanted.revision.as_deref().unwrap_or("the default branch");
    let missing = || Error::Offline {
        missing: format!("what {revision} of {} is, and its manifest", wanted.repository),
    };
    let built_in = || {
        let asset = (source_precision(&wanted.precision), wanted.runtime.as_str(), wanted.chipset.as_deref());
        // Nobody resolved the commit here, so the pin's word has to be for this repository.
        Pin::built_in(wanted.revision.as_deref()?, asset)
            .filter(|pin| pin.repository.as_ref().is_some_and(|r| r.eq_ignore_ascii_case(&wanted.repository)))
    };
    let pin = wanted.pin.clone().or_else(built_in).ok_or_else(missing)?;
    // The pin has to speak of the same commit, or of none while the caller's own words are all there is.
    if wanted.revision.is_some() && pin.commit.is_some() && pin.commit != wanted.revision {
        return Err(missing());
    }
    let request = Request {
        repo_id: Some(wanted.repository.clone()),
        requested_revision: wanted.revision.clone(),
        resolved_revision: pin.commit.clone(),
        manifest_sha256: pin.manifest_sha256.clone(),
        requested_precision: Some(wanted.precision.clone()),
        source_precision: Some(source_precision(&wanted.precision).to_owned()),
        format: Some(wanted.runtime.clone()),
        chipset: wanted.chipset.clone(),
        kind: Kind::Hub,
        pin: Some(pin.clone()),
        ..Request::default()
    };
    Ok(Source { client, address: None, request, pin: Some(pin), accept_changed: false })
}

/// What stands at a commit never changes; a hub that says otherwise is wrong now or was before.
fn check_manifest(facts: &Facts, found: &Resolution, wanted: &HubRelease) -> Result<()> {
    let before = facts.revision(&found.endpoint, &found.repository, Some(&found.commit));
    match before.filter(|before| before.manifest_sha256 != found.manifest_sha256) {
        Some(before) if !wanted.accept_changed => Err(Error::Hub {
            url: found.endpoint.clone(),
            detail: format!(
                "the manifest of {} at commit {} had SHA-256 {} before and has {} now, which cannot be",
                found.repository, found.commit, before.manifest_sha256, found.manifest_sha256
            ),
        }),
        _ => Ok(()),
    }
}

/// Tells a missing or changed archive of ours from every other error.
fn damage_of_archive(error: Error, archive: &Path) -> Result<Damage> {
    match &error {
        Error::Io { path, source } if path == archive => match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Ok(Damage::ArchiveMissing),
            _ => Err(error),
        },
        Error::HashMismatch { path, .. } | Error::NotAFile { path } if path == archive => Ok(Damage::Archive),
        _ => Err(error),
    }
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
