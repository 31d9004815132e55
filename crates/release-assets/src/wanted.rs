use crate::{Error, Pin, Result};

/// A release of a hub repository: what to acquire.
///
/// ```
/// use release_assets::HubRelease;
/// let release = HubRelease::new("qualcomm/EdgeTAM").revision("main").precision("fp16");
/// let pinned = HubRelease::sam2();
/// ```
#[derive(Debug, Clone)]
pub struct HubRelease {
    pub(crate) repository: String,
    pub(crate) revision: Option<String>,
    pub(crate) precision: String,
    pub(crate) runtime: String,
    pub(crate) chipset: Option<String>,
    pub(crate) pin: Option<Pin>,
    pub(crate) accept_changed: bool,
}

impl HubRelease {
    /// The newest release of a repository (`owner/name`), in ONNX, of precision `auto`.
    pub fn new(repository: impl Into<String>) -> Self {
        Self {
            repository: repository.into(),
            revision: None,
            precision: "auto".to_owned(),
            runtime: "onnx".to_owned(),
            chipset: None,
            pin: None,
            accept_changed: false,
        }
    }

    /// The pinned release of SAM 2, at exactly the pinned commit.
    pub fn sam2() -> Self {
        let pin = Pin::sam2();
        let wanted = Self::new(pin.repository.clone().unwrap_or_default());
        Self { revision: pin.commit.clone(), pin: Some(pin), ..wanted }
    }

    /// A branch, tag or full commit (default: the default branch).
    #[must_use]
    pub fn revision(mut self, revision: impl Into<String>) -> Self {
        self.revision = Some(revision.into());
        self
    }

    /// `auto`, `fp32` or `fp16` (all three the publisher's `float`), or a name of the publisher's such as
    /// `w8a16` (default `auto`).
    #[must_use]
    pub fn precision(mut self, precision: impl Into<String>) -> Self {
        self.precision = precision.into();
        self
    }

    /// The publisher's name of the runtime (default `onnx`).
    #[must_use]
    pub fn runtime(mut self, runtime: impl Into<String>) -> Self {
        self.runtime = runtime.into();
        self
    }

    /// The archive for one chipset; without, the one for all of them.
    #[must_use]
    pub fn chipset(mut self, chipset: impl Into<String>) -> Self {
        self.chipset = Some(chipset.into());
        self
    }

    /// Accepts only what is pinned. Without, the pin that ships with this crate for the resolved commit is
    /// used where there is one, and else the first download is remembered.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Asks the address anew, whatever is in the cache, and accepts what it gives now as its first use, for this
    /// call. A pin still holds, and who is offline gets what is here.
    #[must_use]
    pub fn accept_changed_archive(mut self) -> Self {
        self.accept_changed = true;
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let bad =
            |name, value: &str, why: &str| Err(Error::Setting { name, detail: format!("`{value}`: {why}") });
        // The hub's own rule for names, but for its reserved endings.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let component =
            |c: &str| !c.is_empty() && c.chars().all(plain) && !c.starts_with('.') && c.len() <= 96;
        let parts: Vec<_> = self.repository.split('/').collect();
        if parts.len() > 2 || !parts.iter().all(|part| component(part)) {
            return bad("repository", &self.repository, "it is not of the form owner/name");
        }
        if let Some(revision) = &self.revision {
            let dots = revision.split('/').any(|part| part.is_empty() || part == "." || part == "..");
            if dots || revision.len() > 255 || revision.chars().any(char::is_control) {
                return bad("revision", revision, "it is no branch, tag or commit");
            }
        }
        for (name, value) in [("precision", &self.precision), ("runtime", &self.runtime)] {
            if value.is_empty() {
                return bad(name, value, "it is empty");
            }
        }
        self.pin.as_ref().map_or(Ok(()), Pin::validate)
    }
}

/// An archive at an address: what to acquire.
///
/// ```
/// use release_assets::UrlRelease;
/// let release = UrlRelease::new("https://models.example/edgetam.zip");
/// ```
#[derive(Debug, Clone)]
pub struct UrlRelease {
    pub(crate) url: String,
    pub(crate) pin: Option<Pin>,
    pub(crate) accept_changed: bool,
}

impl UrlRelease {
    /// Whatever the address gives first, and nothing else afterwards.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), pin: None, accept_changed: false }
    }

    /// Accepts only what is pinned.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Asks the address anew, whatever is in the cache, and accepts what it gives now as its first use, for this
    /// call. A pin still holds, and who is offline gets what is here.
    #[must_use]
    pub fn accept_changed_archive(mut self) -> Self {
        self.accept_changed = true;
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_mean_another_path_are_refused() {
        for good in ["a/b", "qualcomm/Segment-Anything-Model-2", "gpt2", "A_1.x/b.c"] {
            HubRelease::new(good).validate().unwrap();
        }
        for bad in ["", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a b/c", "a/b?x", "a%2f/b", "a\\b/c", "ä/b"]
        {
            let error = HubRelease::new(bad).validate().unwrap_err();
            assert!(matches!(error, Error::Setting { name: "repository", .. }), "{bad}");
        }
        for good in ["main", "v0.58.0", "refs/pr/1", "feature/x-y"] {
            HubRelease::new("a/b").revision(good).validate().unwrap();
        }
        for bad in ["", ".", "..", "a/../b", "a//b", "a\nb", "/"] {
            let error = HubRelease::new("a/b").revision(bad).validate().unwrap_err();
            assert!(matches!(error, Error::Setting { name: "revision", .. }), "{bad}");
        }
    }
}
