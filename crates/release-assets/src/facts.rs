//! What the cache remembers between calls: which commit a revision was, the manifest at a commit, and which
//! archive an address gave first.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Error, Manifest, Result,
    cache::{FACTS, WRITING},
    files, hashing,
    manifest::MANIFEST_MAX_BYTES,
    network::Address,
    pin::is_sha256,
};

const MAX_BYTES: u64 = 64 << 10;
/// Each attempt is lost only to somebody who removes the fact in between.
const CLAIMS: usize = 10;
/// How often what cannot be understood is looked at, and the time between.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a fact says, or why it cannot be used. None where there is none.
type Understood<T> = std::result::Result<Option<T>, String>;

/// Small files, each written aside and renamed. What only saves asking again counts as absent where it cannot be
/// understood or speaks of something else; what later answers are held against does not.
#[derive(Debug)]
pub(crate) struct Facts(PathBuf);

/// Which commit a revision was when it was last asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) endpoint: String,
    pub(crate) repository: String,
    pub(crate) revision: Option<String>,
    pub(crate) commit: String,
    pub(crate) pipeline_tag: Option<String>,
    pub(crate) manifest_sha256: String,
}

/// Which archive an address gave first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstUse {
    /// Without query; the file's name is made from all of it.
    pub(crate) url: String,
    pub(crate) sha256: String,
    pub(crate) size: u64,
    /// Seconds since 1970.
    pub(crate) at: u64,
}

impl Facts {
    pub(crate) fn new(cache_root: &Path) -> Self {
        Self(cache_root.join(FACTS))
    }

    pub(crate) fn revision(
        &self,
        endpoint: &str,
        repository: &str,
        revision: Option<&str>,
    ) -> Option<Resolution> {
        self.resolution(endpoint, repository, revision).ok().flatten()
    }

    /// What a commit was found to be, which it stays.
    ///
    /// Errors: [`Error::DamagedFact`].
    pub(crate) fn commit(
        &self,
        endpoint: &str,
        repository: &str,
        commit: &str,
    ) -> Result<Option<Resolution>> {
        self.resolution(endpoint, repository, Some(commit)).map_err(|reason| {
            let path = self.revision_path(endpoint, repository, Some(commit));
            Error::DamagedFact { of: format!("commit {commit} of {repository}"), path, reason }
        })
    }

    fn resolution(&self, endpoint: &str, repository: &str, revision: Option<&str>) -> Understood<Resolution> {
        let is_this = |found: &Resolution| {
            found.endpoint == endpoint
                && found.repository == repository
                && found.revision.as_deref() == revision
        };
        read(&self.revision_path(endpoint, repository, revision), is_this)
    }

    /// Whether just this is remembered.
    pub(crate) fn knows(&self, fact: &Resolution) -> bool {
        self.revision(&fact.endpoint, &fact.repository, fact.revision.as_deref()).as_ref() == Some(fact)
    }

    pub(crate) fn remember_revision(&self, fact: &Resolution) -> Result<()> {
        let path = self.revision_path(&fact.endpoint, &fact.repository, fact.revision.as_deref());
        self.write(&path, &to_json(fact))
    }

    /// The manifest at a commit, if it is here with the hash it is remembered by.
    pub(crate) fn manifest(&self, repository: &str, commit: &str, sha256: &str) -> Option<Vec<u8>> {
        let path = self.manifest_path(repository, commit, sha256);
        let bytes = files::read_small(&path, MANIFEST_MAX_BYTES).ok()?;
        (hashing::sha256_bytes(&bytes) == sha256).then_some(bytes)
    }

    pub(crate) fn remember_manifest(&self, repository: &str, commit: &str, bytes: &[u8]) -> Result<()> {
        let sha256 = hashing::sha256_bytes(bytes);
        self.write(&self.manifest_path(repository, commit, &sha256), bytes)
    }

    /// Which archive an address gave first.
    ///
    /// Errors: [`Error::DamagedFact`].
    pub(crate) fn first_use(&self, address: &Address) -> Result<Option<FirstUse>> {
        let path = self.first_use_path(address.secret_text());
        let is_this = |found: &FirstUse| found.url == address.to_string() && is_sha256(&found.sha256);
        let mut looks = LOOKS;
        loop {
            looks -= 1;
            match read(&path, is_this) {
                Ok(found) => return Ok(found),
                Err(reason) if looks == 0 => {
                    return Err(Error::DamagedFact { of: address.to_string(), path, reason });
                }
                // Where a file cannot have two names, it can be seen while it is written.
                Err(_) => thread::sleep(LOOK_AGAIN),
            }
        }
    }

    /// Remembers what an address gave first, unless something is remembered: then that is the answer. Of many who do
    /// this at once, with or without locks, one alone is told that it was the first.
    pub(crate) fn claim_first_use(&self, address: &Address, fact: &FirstUse) -> Result<Option<FirstUse>> {
        let path = self.first_use_path(address.secret_text());
        let bytes = to_json(fact);
        files::create_folder(&self.0).map_err(|e| Error::writing(&path, e, bytes.len() as u64))?;
        for _ in 0..CLAIMS {
            if let Some(held) = self.first_use(address)? {
                return Ok(Some(held));
            }
            if files::write_new(&self.0, WRITING, &path, &bytes, |from, to| fs::hard_link(from, to))? {
                return Ok(self.first_use(address)?.filter(|held| held != fact));
            }
        }
        Err(Error::Contended { path })
    }

    /// Remembers another archive than the first: the caller said so.
    pub(crate) fn replace_first_use(&self, address: &Address, fact: &FirstUse) -> Result<()> {
        self.write(&self.first_use_path(address.secret_text()), &to_json(fact))
    }

    /// What cannot be understood, with the reason.
    pub(crate) fn damaged(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let state = if name.starts_with("archive-") {
                read(&path, |fact: &FirstUse| is_sha256(&fact.sha256)).map(drop)
            } else if name.starts_with("revision-") {
                let of =
                    |f: &Resolution| self.revision_path(&f.endpoint, &f.repository, f.revision.as_deref());
                read(&path, |fact: &Resolution| of(fact) == path).map(drop)
            } else if name.starts_with("manifest-") && files::exists(&path) {
                Manifest::read(&path).map(drop).map_err(|error| error.with_causes())
            } else {
                continue;
            };
            found.extend(state.err().map(|reason| (path, reason)));
        }
        found.sort();
        found
    }

    fn revision_path(&self, endpoint: &str, repository: &str, revision: Option<&str>) -> PathBuf {
        self.0.join(format!("revision-{}.json", key(&[endpoint, repository, revision.unwrap_or("")])))
    }

    fn manifest_path(&self, repository: &str, commit: &str, sha256: &str) -> PathBuf {
        self.0.join(format!("manifest-{}.json", key(&[repository, commit, sha256])))
    }

    fn first_use_path(&self, secret_url: &str) -> PathBuf {
        self.0.join(format!("archive-{}.json", key(&[secret_url])))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let fail = |e| Error::writing(path, e, bytes.len() as u64);
        files::create_folder(&self.0).map_err(fail)?;
        // A folder in the file's place would stay there.
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            files::remove(path).map_err(fail)?;
        }
        files::write_whole(&self.0, WRITING, path, bytes)
    }
}

fn key(parts: &[&str]) -> String {
    hashing::sha256_bytes(serde_json::json!(parts).to_string().as_bytes()).chars().take(32).collect()
}

fn to_json(fact: &impl Serialize) -> Vec<u8> {
    // Plain structures of texts and numbers always have a JSON form.
    serde_json::to_vec_pretty(fact).unwrap_or_default()
}

fn read<T: DeserializeOwned>(path: &Path, is_this: impl FnOnce(&T) -> bool) -> Understood<T> {
    let bytes = loop {
        match files::read_small(path, MAX_BYTES) {
            Ok(bytes) => break bytes,
            Err(Error::Io { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                match fs::symlink_metadata(path) {
                    // A link that leads nowhere is something, and in the way of what would be written.
                    Ok(found) if found.is_symlink() && fs::metadata(path).is_err() => {
                        return Err("it leads nowhere".to_owned());
                    }
                    // Another process has written it since.
                    Ok(_) => {}
                    Err(_) => return Ok(None),
                }
            }
            Err(error) => return Err(error.with_causes()),
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(found) if is_this(&found) => Ok(Some(found)),
        Ok(_) => Err("it speaks of something else".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fact(address: &Address, digit: &str) -> FirstUse {
        FirstUse { url: address.to_string(), sha256: digit.repeat(64), size: 1, at: 1 }
    }

    /// A fact that another process writes between two looks at it is no damage.
    #[test]
    fn a_fact_that_comes_and_goes_is_there_or_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("fact.json");
        let done = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    fs::write(place.path().join("aside"), "7").unwrap();
                    fs::rename(place.path().join("aside"), &path).unwrap();
                    fs::remove_file(&path).unwrap();
                }
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let found = read::<u32>(&path, |_| true);
                assert!(matches!(found, Ok(None | Some(7))), "{found:?}");
            }
        });
    }

    /// What is remembered is not written over, what makes no sense neither, and nothing is left lying about.
    #[test]
    fn the_first_claim_stands() {
        let place = tempfile::tempdir().unwrap();
        let facts = Facts::new(place.path());
        let address = Address::parse("https://archives.example/x.zip").unwrap();
        let (one, two) = (fact(&address, "1"), fact(&address, "2"));
        let path = facts.first_use_path(address.secret_text());
        assert_eq!(facts.claim_first_use(&address, &one).unwrap(), None);
        assert_eq!(facts.claim_first_use(&address, &two).unwrap(), Some(one.clone()));
        assert_eq!(facts.first_use(&address).unwrap(), Some(one.clone()));
        for rubbish in ["", "{", r#"{"url": "x"}"#] {
            fs::write(&path, rubbish).unwrap();
            assert!(matches!(facts.claim_first_use(&address, &one), Err(Error::DamagedFact { .. })));
            assert_eq!(fs::read(&path).unwrap(), rubbish.as_bytes());
        }
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert!(matches!(facts.claim_first_use(&address, &one), Err(Error::DamagedFact { .. })));
            assert_eq!(facts.damaged().len(), 1);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(facts.claim_first_use(&address, &one), Err(Error::DamagedFact { .. })));
        facts.replace_first_use(&address, &two).unwrap();
        assert_eq!(facts.first_use(&address).unwrap(), Some(two));
        assert_eq!(fs::read_dir(place.path().join(FACTS)).unwrap().count(), 1);
    }

    /// A file that is being written is waited for.
    #[test]
    fn half_a_fact_may_become_a_whole_one() {
        let place = tempfile::tempdir().unwrap();
        let facts = Facts::new(place.path());
        let address = Address::parse("https://archives.example/x.zip").unwrap();
        let one = fact(&address, "1");
        facts.replace_first_use(&address, &one).unwrap();
        let path = facts.first_use_path(address.secret_text());
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..9]).unwrap();
        thread::scope(|scope| {
            let reader = scope.spawn(|| facts.first_use(&address));
            thread::sleep(LOOK_AGAIN / 2);
            fs::write(&path, &whole).unwrap();
            assert_eq!(reader.join().unwrap().unwrap(), Some(one));
        });
    }
}
