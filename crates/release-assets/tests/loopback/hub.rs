//! A hub with one repository and the host of its archive, on one server.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::sync::{Arc, Mutex};

use release_assets::{HubRelease, Pin};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::server::{Reply, Request, Server};

pub(crate) const REPOSITORY: &str = "owner/Model-1";
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const ARCHIVE: &str = "/files/model-onnx-float.zip";

type Change = dyn Fn(&Request, Reply) -> Reply + Send + Sync;

/// What the repository holds; may be changed while the server runs.
pub(crate) struct World {
    pub(crate) archive: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) commit: String,
    /// Called with every answer, to make a bad one of it.
    change: Arc<Change>,
}

pub(crate) struct Hub {
    pub(crate) server: Server,
    pub(crate) world: Arc<Mutex<World>>,
}

impl Hub {
    pub(crate) fn new(archive: Vec<u8>) -> Self {
        let world = Arc::new(Mutex::new(World {
            archive,
            manifest: Vec::new(),
            commit: COMMIT.to_owned(),
            change: Arc::new(|_, reply| reply),
        }));
        let server = Server::start(|base| {
            world.lock().unwrap().manifest = manifest(&format!("{base}{ARCHIVE}"));
            let world = world.clone();
            move |request| {
                let (reply, change) = {
                    let world = world.lock().unwrap();
                    (honest(&world, request), world.change.clone())
                };
                change(request, reply)
            }
        });
        Self { server, world }
    }

    /// From now on every answer goes through `change`.
    pub(crate) fn misbehave(&self, change: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) {
        self.world.lock().unwrap().change = Arc::new(change);
    }

    pub(crate) fn behave(&self) {
        self.misbehave(|_, reply| reply);
    }

    /// Only the archive's answers go through `change`, with the number of the request, from 0.
    pub(crate) fn misbehave_at_archive(
        &self,
        change: impl Fn(usize, &Request, Reply) -> Reply + Send + Sync + 'static,
    ) {
        let count = Mutex::new(0);
        self.misbehave(move |request, reply| {
            if request.path != ARCHIVE {
                return reply;
            }
            let number = {
                let mut count = count.lock().unwrap();
                *count += 1;
                *count - 1
            };
            change(number, request, reply)
        });
    }

    pub(crate) fn downloads(&self) -> usize {
        self.server.count(ARCHIVE)
    }

    pub(crate) fn archive_sha256(&self) -> String {
        digest(&self.world.lock().unwrap().archive)
    }

    /// A pin of exactly what the hub has.
    pub(crate) fn pin(&self) -> Pin {
        let mut pin = Pin::new(self.archive_sha256(), "MIT", "the tests", "2026-11-30");
        pin.repository = Some(REPOSITORY.to_owned());
        pin.commit = Some(COMMIT.to_owned());
        pin.manifest_sha256 = Some(digest(&self.world.lock().unwrap().manifest));
        pin.size = Some(self.world.lock().unwrap().archive.len() as u64);
        pin
    }
}

pub(crate) fn wanted() -> HubRelease {
    HubRelease::new(REPOSITORY)
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn manifest(url: &str) -> Vec<u8> {
    let asset = |url: &str| json!({"download_url": url, "tool_versions": {"onnx": "1.18.0", "qairt": null}});
    json!({
        "version": "0.58.0",
        "precisions": {
            "float": {
                "universal_assets": {"onnx": asset(url), "tflite": asset("https://localhost:1/x.zip")},
                "chipset_assets": {"snapdragon-x": {"onnx": asset("https://localhost:1/chip.zip")}},
            },
            "w8a8": {"universal_assets": {"onnx": {"tool_versions": {}}}},
        },
    })
    .to_string()
    .into_bytes()
}

/// What the public hub answers, with its own headers.
fn honest(world: &World, request: &Request) -> Reply {
    let info = format!("/api/models/{REPOSITORY}");
    let file = format!("/{REPOSITORY}/resolve/{}/release_assets.json", world.commit);
    let revisions = ["main", "v1", world.commit.as_str()].map(|name| format!("{info}/revision/{name}"));
    if request.path == info || revisions.contains(&request.path) {
        let info =
            json!({"id": REPOSITORY, "sha": world.commit, "pipeline_tag": "mask-generation", "siblings": []});
        Reply::ok(info.to_string())
    } else if request.path.starts_with(&info) {
        Reply::new(404, r#"{"error":"Invalid rev id"}"#).header("x-error-code", "RevisionNotFound")
    } else if request.path == file {
        Reply::ok(&world.manifest).header("x-repo-commit", &world.commit)
    } else if request.path == ARCHIVE {
        Reply::file(request, &world.archive, "tag-1")
    } else {
        Reply::new(404, "not here").header("x-error-code", "RepoNotFound")
    }
}
