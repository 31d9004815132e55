//! The two answers of a model hub that a release needs: which commit a revision is, and the manifest at it.

use serde::Deserialize;

use super::{Address, Client, exchange::Ended, fetch::Answer};
use crate::{
    Error, Manifest, NetworkFault, Result, manifest::MANIFEST_MAX_BYTES, pin::is_commit, progress::Progress,
};

/// The hub lists every file of a repository here.
const INFO_MAX_BYTES: u64 = 32 << 20;

/// Tags have some twenty; what is remembered of a revision has to stay small.
const TAG_MAX_BYTES: usize = 256;

/// What a revision is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevisionInfo {
    /// 40 hex digits.
    pub(crate) commit: String,
    /// The hub's name for what the model does, such as `mask-generation`.
    pub(crate) pipeline_tag: Option<String>,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Document {
    Info,
    Manifest,
}

#[derive(Deserialize)]
struct Info {
    sha: String,
    pipeline_tag: Option<String>,
}

impl Client {
    /// Asks which commit a revision (the default branch if none) is.
    pub(crate) fn revision(
        &self,
        repository: &str,
        revision: Option<&str>,
        progress: &Progress,
    ) -> Result<RevisionInfo> {
        let segments = ["api", "models"].into_iter().chain(repository.split('/'));
        let segments = segments.chain(revision.iter().flat_map(|revision| ["revision", *revision]));
        let address = self.settings().endpoint.below(segments);
        let answer = self.ask(&address, Document::Info, repository, revision, progress)?;
        let fail = |detail: String| Error::Hub { url: address.to_string(), detail };
        let info: Info = serde_json::from_slice(&answer.body).map_err(|e| fail(e.to_string()))?;
        if !is_commit(&info.sha) {
            return Err(fail(format!("`{}` is no commit", info.sha)));
        }
        if let Some(asked) = revision.filter(|revision| is_commit(revision) && *revision != info.sha) {
            return Err(fail(format!("asked for commit {asked}, it answered with {}", info.sha)));
        }
        if let Some(bytes) =
            info.pipeline_tag.as_ref().map(String::len).filter(|bytes| *bytes > TAG_MAX_BYTES)
        {
            return Err(fail(format!("its pipeline tag has {bytes} bytes, {TAG_MAX_BYTES} are allowed")));
        }
        Ok(RevisionInfo { commit: info.sha, pipeline_tag: info.pipeline_tag })
    }

    /// The manifest's bytes at exactly this commit.
    ///
    /// Errors: [`Error::NoReleases`] if the repository has no such file there, which is no fault.
    pub(crate) fn manifest(&self, repository: &str, commit: &str, progress: &Progress) -> Result<Vec<u8>> {
        let segments = repository.split('/').chain(["resolve", commit, Manifest::FILE_NAME]);
        let address = self.settings().endpoint.below(segments);
        let answer = self.ask(&address, Document::Manifest, repository, Some(commit), progress)?;
        if let Some(other) = answer.commit.filter(|other| other != commit) {
            let detail = format!("asked for commit {commit}, it answered with {other}");
            return Err(Error::Hub { url: address.to_string(), detail });
        }
        Ok(answer.body)
    }

    fn ask(
        &self,
        address: &Address,
        document: Document,
        repository: &str,
        revision: Option<&str>,
        progress: &Progress,
    ) -> Result<Answer> {
        let url = || address.to_string();
        let cap = match document {
            Document::Info => INFO_MAX_BYTES,
            Document::Manifest => MANIFEST_MAX_BYTES,
        };
        let answer = self.small(address, cap, progress).map_err(|ended| match ended {
            Ended::Caller(error) => error,
            Ended::Network(fault) if fault.is_unreachable() => Error::Unreachable { url: url(), fault },
            Ended::Network(fault) => Error::HubFault { url: url(), fault },
        })?;
        let (repository, revision) = (repository.to_owned(), revision.map(str::to_owned));
        let token_sent = self.settings().token.is_some();
        // The hub hides repositories from strangers: 401 may also mean that there is none.
        match (answer.status, answer.error_code.as_deref()) {
            (200, _) => Ok(answer),
            (404, Some("EntryNotFound")) if document == Document::Manifest => {
                Err(Error::NoReleases { repository, commit: revision.unwrap_or_default() })
            }
            (_, Some("RepoNotFound")) => Err(Error::NotFound { repository, revision: None, token_sent }),
            (401 | 403, code) => Err(Error::Unauthorised {
                url: url(),
                status: answer.status,
                gated: code == Some("GatedRepo"),
                token_sent,
            }),
            // A revision that does not exist. Mirrors do not always send the code, and a missing path at an
            // answering host is still no proof that there are no releases.
            (404, _) => Err(Error::NotFound { repository, revision, token_sent }),
            (status, _) => Err(Error::HubFault { url: url(), fault: NetworkFault::Status { status } }),
        }
    }
}
