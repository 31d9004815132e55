//! The hub's own environment variables, under the names and rules of its Python client.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Where the public hub answers; `HF_ENDPOINT` names a mirror.
const ENDPOINT: &str = "https://huggingface.co";

/// The values that its client takes for true.
pub(super) fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(super) fn endpoint() -> String {
    text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned())
}

/// `HF_HUB_OFFLINE`, or `TRANSFORMERS_OFFLINE` as its client has it.
pub(super) fn offline() -> bool {
    ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].iter().any(|name| text(name).is_some_and(|v| is_true(&v)))
}

fn home() -> Option<PathBuf> {
    path("HF_HOME").or_else(|| {
        let base = path("XDG_CACHE_HOME").or_else(|| {
            let user = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
            path(user).map(|user| user.join(".cache"))
        });
        base.map(|base| base.join("huggingface"))
    })
}

/// `HF_TOKEN`, else the file that a login wrote (`HF_TOKEN_PATH`, or `token` in the hub's home), unless
/// `HF_HUB_DISABLE_IMPLICIT_TOKEN` says that no token is sent unasked.
pub(super) fn token() -> Option<String> {
    if text("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|v| is_true(&v)) {
        return None;
    }
    text("HF_TOKEN")
        .or_else(|| read_token(&path("HF_TOKEN_PATH").or_else(|| home().map(|h| h.join("token")))?))
}

fn read_token(path: &Path) -> Option<String> {
    // A login's file holds one short line.
    let small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= 4096);
    let token = small.then(|| fs::read_to_string(path).ok())??;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// The variables that name a proxy, in the order in which they are looked at, with what they hold.
pub(super) fn proxies() -> impl Iterator<Item = (&'static str, String)> {
    let names = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    names.into_iter().filter_map(|name| Some((name, text(name)?)))
}
