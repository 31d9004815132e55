//! What the cache remembers between calls: which commit a revision was, the manifest at a commit, and which
//! archive an address gave first.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    cache::{FACTS, WRITING},
    files::{self, Temporary},
    hashing,
    manifest::MANIFEST_MAX_BYTES,
    network::Address,
    pin::is_sha256,
};

const MAX_BYTES: u64 = 64 << 10;
/// Each attempt is lost only to somebody who damages the fact in between.
const CLAIMS: usize = 10;

/// Small files, each written aside and renamed. One that cannot be understood, or speaks of something else,
/// counts as absent.
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
        let found: Resolution = read(&self.revision_path(endpoint, repository, revision))?;
        let same = found.endpoint == endpoint && found.repository == repository;
        (same && found.revision.as_deref() == revision).then_some(found)
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

    pub(crate) fn first_use(&self, address: &Address) -> Option<FirstUse> {
        understood(&self.first_use_path(address.secret_text()), address)
    }

    /// Remembers what an address gave first, unless something is remembered: then that is the answer. Of many who do
    /// this at once, with or without locks, one alone is told that it was the first.
    pub(crate) fn claim_first_use(&self, address: &Address, fact: &FirstUse) -> Result<Option<FirstUse>> {
        let path = self.first_use_path(address.secret_text());
        let bytes = to_json(fact);
        let fail = |e| Error::writing(&path, e, bytes.len() as u64);
        files::create_folder(&self.0).map_err(fail)?;
        for _ in 0..CLAIMS {
            if let Some(held) = self.first_use(address) {
                return Ok(Some(held));
            }
            if files::exists(&path) {
                self.clear_away(&path, address)?;
            }
            if files::write_new(&self.0, WRITING, &path, &bytes, |from, to| fs::hard_link(from, to))? {
                return Ok(self.first_use(address).filter(|held| held != fact));
            }
        }
        Err(Error::Contended { path })
    }

    /// Removes what cannot be understood, but nothing that somebody has put there since it was looked at.
    fn clear_away(&self, path: &Path, address: &Address) -> Result<()> {
        let aside = Temporary::adopt(self.0.join(files::unique_name(&WRITING.into())));
        match files::rename(path, aside.path()) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::io(path, e)),
        }
        if understood(aside.path(), address).is_some() {
            // If the name is taken again by now, that one counts.
            let _ = fs::hard_link(aside.path(), path);
        }
        Ok(())
    }

    /// Remembers another archive than the first: the caller said so.
    pub(crate) fn replace_first_use(&self, address: &Address, fact: &FirstUse) -> Result<()> {
        self.write(&self.first_use_path(address.secret_text()), &to_json(fact))
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

/// A first use of just this address.
fn understood(path: &Path, address: &Address) -> Option<FirstUse> {
    let found: FirstUse = read(path)?;
    (found.url == address.to_string() && is_sha256(&found.sha256)).then_some(found)
}

fn key(parts: &[&str]) -> String {
    hashing::sha256_bytes(serde_json::json!(parts).to_string().as_bytes()).chars().take(32).collect()
}

fn to_json(fact: &impl Serialize) -> Vec<u8> {
    // Plain structures of texts and numbers always have a JSON form.
    serde_json::to_vec_pretty(fact).unwrap_or_default()
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&files::read_small(path, MAX_BYTES).ok()?).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fact(address: &Address, digit: &str) -> FirstUse {
        FirstUse { url: address.to_string(), sha256: digit.repeat(64), size: 1, at: 1 }
    }

    /// What is remembered is not written over, what makes no sense is, and nothing is left lying about.
    #[test]
    fn the_first_claim_stands() {
        let place = tempfile::tempdir().unwrap();
        let facts = Facts::new(place.path());
        let address = Address::parse("https://archives.example/x.zip").unwrap();
        let (one, two) = (fact(&address, "1"), fact(&address, "2"));
        let path = facts.first_use_path(address.secret_text());
        for rubbish in [None, Some("{"), Some(r#"{"url": "x"}"#)] {
            if let Some(text) = rubbish {
                fs::write(&path, text).unwrap();
            }
            assert_eq!(facts.claim_first_use(&address, &one).unwrap(), None);
            assert_eq!(facts.claim_first_use(&address, &two).unwrap(), Some(one.clone()));
            assert_eq!(facts.first_use(&address), Some(one.clone()));
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(facts.claim_first_use(&address, &one).unwrap(), None);
        facts.replace_first_use(&address, &two).unwrap();
        assert_eq!(facts.first_use(&address), Some(two));
        assert_eq!(fs::read_dir(place.path().join(FACTS)).unwrap().count(), 1);
    }

    /// What was cleared away by mistake comes back.
    #[test]
    fn a_fact_that_can_be_understood_is_not_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let facts = Facts::new(place.path());
        let address = Address::parse("https://archives.example/x.zip").unwrap();
        let one = fact(&address, "1");
        facts.replace_first_use(&address, &one).unwrap();
        facts.clear_away(&facts.first_use_path(address.secret_text()), &address).unwrap();
        assert_eq!(facts.first_use(&address), Some(one));
    }
}
