//! What a request stands for: its commit, manifest, address and pin.

use crate::{
    Cache, Client, Error, HubRelease, Manifest, Pin, Result,
    facts::{Facts, Resolution},
    hashing,
    manifest::source_precision,
    network::{Address, RevisionInfo},
    pin::is_commit,
    provenance::{Kind, Request},
};

/// What is to be had, once it is known.
pub(crate) struct Source<'a> {
    pub(crate) client: &'a Client,
    /// None where a pin alone says what is wanted and the manifest is not at hand.
    pub(crate) address: Option<Address>,
    pub(crate) request: Request,
    pub(crate) pin: Option<Pin>,
    pub(crate) accept_changed: bool,
    /// What the hub said of the revision just now.
    pub(crate) resolved: Option<Resolution>,
}

impl Cache {
    pub(crate) fn resolve<'a>(&self, wanted: &HubRelease, client: &'a Client) -> Result<Source<'a>> {
        let facts = Facts::new(self.root());
        let repository = &wanted.repository;
        let endpoint = client.endpoint();
        let source_precision = source_precision(&wanted.precision);
        let asset = (source_precision, wanted.runtime.as_str(), wanted.chipset.as_deref());
        if let Some(pin) = &wanted.pin {
            pin.require("the repository", pin.repository.as_deref(), repository)?;
            pin.require_asset(asset)?;
        }
        let pinned = wanted.pin.as_ref().and_then(|pin| pin.commit.as_deref());
        // Who pins a commit and names no revision means that commit, wherever the branch is by now.
        let revision = wanted.revision.as_deref().or(pinned);
        let known = facts.revision(&endpoint, repository, revision);
        // A commit is nothing but itself, whatever is remembered.
        let known = known.filter(|fact| revision.is_none_or(|r| !is_commit(r) || r == fact.commit));
        // What a branch was last is no answer offline where the pin names another commit.
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
                    revision: revision.map(str::to_owned),
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
        let resolved = (!client.is_offline()).then_some(fact);
        if let Some(fact) = &resolved {
            self.remember_commit(&facts, fact, &bytes)?;
        }
        let (address, accept_changed) = (Some(address), wanted.accept_changed);
        Ok(Source { client, address, request, pin, accept_changed, resolved })
    }

    /// Remembers the manifest at a commit. Nothing is written where it is known already, so that a read-only cache can
    /// be used online.
    fn remember_commit(&self, facts: &Facts, fact: &Resolution, manifest: &[u8]) -> Result<()> {
        // The commit as such is as good a name, and what another answer is held against.
        let by_commit = Resolution { revision: Some(fact.commit.clone()), ..fact.clone() };
        let here = facts.manifest(&fact.repository, &fact.commit, &fact.manifest_sha256).is_some();
        if facts.knows(&by_commit) && here {
            return Ok(());
        }
        self.create_bucket()?;
        facts.remember_manifest(&fact.repository, &fact.commit, manifest)?;
        facts.remember_revision(&by_commit)
    }

    /// Remembers what a revision is, for use without a network: once its release is here, since until then the one before
    /// is what can be used.
    pub(crate) fn remember_revision(&self, fact: &Resolution) -> Result<()> {
        let facts = Facts::new(self.root());
        if facts.knows(fact) { Ok(()) } else { facts.remember_revision(fact) }
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
    Ok(Source { client, address: None, request, pin: Some(pin), accept_changed: false, resolved: None })
}

/// What stands at a commit never changes; a hub that says otherwise is wrong now or was before.
fn check_manifest(facts: &Facts, found: &Resolution, wanted: &HubRelease) -> Result<()> {
    let before = match facts.commit(&found.endpoint, &found.repository, &found.commit) {
        // A pin says itself what the archive is.
        Err(Error::DamagedFact { .. }) if wanted.accept_changed || wanted.pin.is_some() => None,
        before => before?,
    };
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
