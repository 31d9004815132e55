use serde::{Deserialize, Serialize};

#[cfg(feature = "network")]
use crate::url_rule::without_fragment;
use crate::{Error, InventoryEntry, Result, hashing, url_rule::redact};

/// The bytes that a release must have, and who says so. Given a pin, nothing else is accepted.
///
/// Serialises to JSON, to be kept under version control beside the program that uses it.
///
/// ```
/// let pin = release_assets::Pin::sam2();
/// assert_eq!(pin.repository.as_deref(), Some("qualcomm/Segment-Anything-Model-2"));
/// let text = serde_json::to_string_pretty(&pin)?;
/// assert_eq!(serde_json::from_str::<release_assets::Pin>(&text)?, pin);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pin {
    /// SHA-256 of the archive, lower-case hex.
    pub sha256: String,
    /// Bytes of the archive, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where the archive is. None where the manifest at the pinned commit says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The hub's repository, as `owner/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The commit of that repository, 40 lower-case hex digits. It is the revision where a request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// SHA-256 of the manifest at that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<String>,
    /// The publisher's name of the runtime that the archive is for. Where it is given, a request for another one, for another
    /// `precision` or for another `chipset` is not met by this pin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The publisher's name of the precision, such as `float`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The chipset that the archive is for. None means the one for all of them, where `runtime` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chipset: Option<String>,
    /// Files that the archive must hold; others may be there too.
    #[serde(default)]
    pub members: Vec<PinnedMember>,
    /// The licence of the release, as an SPDX expression where it has one.
    pub licence: String,
    /// Who looked at the release and wrote the pin.
    pub pinned_by: String,
    /// The day on which that was, as `YYYY-MM-DD`.
    pub pinned_at: String,
}

/// One file that a pinned archive must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedMember {
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    /// The path in the archive, `/` between components; none where only the content is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Bytes of the file, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl PinnedMember {
    /// A file by its hash alone; path and size are fields.
    ///
    /// ```
    /// use release_assets::{Pin, PinnedMember};
    /// let mut pin = Pin::new("0".repeat(64), "Apache-2.0", "me", "2026-11-30");
    /// let mut metadata = PinnedMember::new("1".repeat(64));
    /// metadata.path = Some("release/metadata.json".to_owned());
    /// pin.members.push(metadata);
    /// ```
    pub fn new(sha256: impl Into<String>) -> Self {
        Self { sha256: sha256.into(), path: None, size: None }
    }
}

impl Pin {
    /// A pin of an archive by its hash alone.
    pub fn new(
        sha256: impl Into<String>,
        licence: impl Into<String>,
        pinned_by: impl Into<String>,
        pinned_at: impl Into<String>,
    ) -> Self {
        Self {
            sha256: sha256.into(),
            size: None,
            url: None,
            repository: None,
            commit: None,
            manifest_sha256: None,
            runtime: None,
            precision: None,
            chipset: None,
            members: Vec::new(),
            licence: licence.into(),
            pinned_by: pinned_by.into(),
            pinned_at: pinned_at.into(),
        }
    }

    /// The `float` ONNX release of SAM 2 in `qualcomm/Segment-Anything-Model-2`, publisher version 0.58.0:
    /// graphs and sidecars of encoder and decoder. The numbers are those that a public tool recorded when it
    /// acquired the release; they were not checked against the publisher's host by this project.
    pub fn sam2() -> Self {
        Self {
            repository: Some("qualcomm/Segment-Anything-Model-2".to_owned()),
            commit: Some("b79dd7131b5409ff0c74d1c2793656305403476c".to_owned()),
            manifest_sha256: Some(
                "8d05f332a0b78994adbbf60589b70fbfc2d33688d14a9f80c34bab79c9205641".to_owned(),
            ),
            runtime: Some("onnx".to_owned()),
            precision: Some("float".to_owned()),
            members: vec![
                PinnedMember::new("d0e5eee1603ac256babf93058997b5a90354470595349f6a5433a112b3caf157"),
                PinnedMember::new("97fdcb37bdb1723aa1187356fc152d1c864666ebda4d3e6d7abf1895b635785f"),
                PinnedMember::new("bcf847720ec944a87704e3965556602d137f1523deb78b5d2ec7e2c29759fea6"),
                PinnedMember::new("eb0ddcfbd041fce511ef5ee57b58fce7858299d2cd56214b817d201cfb852818"),
            ],
            ..Self::new(
                "6c47f7e4eacfad4212d512c434277dfab60d980fea467b4b13d4110baa7f25cf",
                "Apache-2.0 for SAM 2 itself; the export is under the terms of the publisher's model card",
                "sam-kit, from public records",
                "2026-11-30",
            )
        }
    }

    /// As it goes into a record: without what may be secret.
    pub(crate) fn redacted(&self) -> Self {
        Self { url: self.url.as_deref().map(redact), ..self.clone() }
    }

    /// Holds the files of a release against the pinned ones.
    pub(crate) fn require_members(&self, inventory: &[InventoryEntry]) -> Result<()> {
        for member in &self.members {
            let what = || match &member.path {
                Some(path) => format!("the file {path}"),
                None => "a file known by its content alone".to_owned(),
            };
            let found = match &member.path {
                Some(path) => inventory.iter().find(|entry| entry.path == *path),
                None => inventory.iter().find(|entry| entry.sha256 == member.sha256),
            };
            let Some(found) = found else {
                return Err(self.broken(&what(), &member.sha256, "missing"));
            };
            if found.sha256 != member.sha256 {
                return Err(self.broken(&what(), &member.sha256, &found.sha256));
            }
            if let Some(size) = member.size.filter(|size| *size != found.size) {
                return Err(self.broken(&what(), &format!("{size} bytes"), &format!("{} bytes", found.size)));
            }
        }
        Ok(())
    }

    pub(crate) fn broken(&self, what: &str, expected: &str, found: &str) -> Error {
        Error::PinBroken {
            what: what.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
            pinned_by: self.pinned_by.clone(),
            pinned_at: self.pinned_at.clone(),
        }
    }
}

#[cfg(feature = "network")]
impl Pin {
    /// The pin that ships with this crate for an asset at a commit, if there is one. Commits are the same in copies of a
    /// repository and however its name is written.
    pub(crate) fn built_in(commit: &str, wanted: (&str, &str, Option<&str>)) -> Option<Self> {
        let pin = Self::sam2();
        (pin.commit.as_deref() == Some(commit) && pin.require_asset(wanted).is_ok()).then_some(pin)
    }

    /// Holds precision (the publisher's name), runtime and chipset of a request against the pin's.
    pub(crate) fn require_asset(
        &self,
        (precision, runtime, chipset): (&str, &str, Option<&str>),
    ) -> Result<()> {
        self.require("the precision", self.precision.as_deref(), precision)?;
        self.require("the runtime", self.runtime.as_deref(), runtime)?;
        if (self.runtime.is_some() || self.chipset.is_some()) && self.chipset.as_deref() != chipset {
            let name = |chipset: Option<&str>| chipset.unwrap_or("any").to_owned();
            return Err(self.broken("the chipset", &name(self.chipset.as_deref()), &name(chipset)));
        }
        Ok(())
    }

    /// Holds an address against the pin's, showing neither's query.
    pub(crate) fn require_address(&self, url: &str) -> Result<()> {
        match &self.url {
            Some(pinned) if without_fragment(pinned) != without_fragment(url) => {
                Err(self.broken("the address", &redact(pinned), &redact(url)))
            }
            _ => Ok(()),
        }
    }

    /// Holds the size of an archive against the pin's.
    pub(crate) fn require_size(&self, bytes: u64) -> Result<()> {
        match self.size {
            Some(size) if size != bytes => {
                Err(self.broken("the archive", &format!("{size} bytes"), &format!("{bytes} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// Checks the form of what was given.
    pub(crate) fn validate(&self) -> Result<()> {
        let hashes =
            self.members.iter().map(|m| &m.sha256).chain(&self.manifest_sha256).chain([&self.sha256]);
        for hash in hashes {
            if !is_sha256(hash) {
                let detail = format!("`{hash}` is no SHA-256 in lower-case hex");
                return Err(Error::Setting { name: "pin", detail });
            }
        }
        if let Some(commit) = self.commit.as_ref().filter(|commit| !is_commit(commit)) {
            let detail = format!("`{commit}` is no full commit in lower-case hex");
            return Err(Error::Setting { name: "pin", detail });
        }
        if let Some(url) = &self.url {
            crate::network::Address::parse(url)?;
        }
        Ok(())
    }

    /// Holds a value against the pin's.
    pub(crate) fn require(&self, what: &str, pinned: Option<&str>, found: &str) -> Result<()> {
        match pinned {
            Some(pinned) if pinned != found => Err(self.broken(what, pinned, found)),
            _ => Ok(()),
        }
    }
}

/// A full commit hash, which never means anything else later.
#[cfg(feature = "network")]
pub(crate) fn is_commit(text: &str) -> bool {
    hashing::is_hex(text, 40)
}

/// 64 lower-case hex digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    hashing::is_hex(text, 64)
}
