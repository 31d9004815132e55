//! The hub's own environment variables, under the names and rules of its Python client.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::Address;
use crate::{Error, Result};

/// Where the public hub answers; `HF_ENDPOINT` names a mirror.
const ENDPOINT: &str = "https://huggingface.co";

/// The values that its client takes for true.
pub(super) fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// A variable's text, if it holds any. One that is no text is not left out: what its owner wants would be done otherwise in silence.
fn text(name: &'static str) -> Result<Option<String>> {
    let value = env::var_os(name).map(OsString::into_string).transpose();
    let value = value.map_err(|_| Error::Setting { name, detail: "its value is not UTF-8".to_owned() })?;
    Ok(value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()))
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(super) fn endpoint() -> Result<Address> {
    const NAME: &str = "HF_ENDPOINT";
    let Some(text) = text(NAME)? else { return Address::parse(ENDPOINT) };
    Address::parse(&text).map_err(|error| Error::Setting { name: NAME, detail: error.to_string() })
}

fn is_set(name: &'static str) -> Result<bool> {
    Ok(text(name)?.is_some_and(|value| is_true(&value)))
}

/// `HF_HUB_OFFLINE`, or `TRANSFORMERS_OFFLINE` as its client has it.
pub(super) fn offline() -> Result<bool> {
    Ok(is_set("HF_HUB_OFFLINE")? || is_set("TRANSFORMERS_OFFLINE")?)
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
pub(super) fn token() -> Result<Option<String>> {
    if is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN")? {
        return Ok(None);
    }
    let file = || path("HF_TOKEN_PATH").or_else(|| home().map(|home| home.join("token")));
    Ok(text("HF_TOKEN")?.or_else(|| read_token(&file()?)))
}

fn read_token(path: &Path) -> Option<String> {
    // A login's file holds one short line.
    let small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= 4096);
    let token = small.then(|| fs::read(path).ok())??;
    // What is no text makes no token of visible ASCII, which is told; to send none instead would not be.
    Some(String::from_utf8_lossy(&token).trim().to_owned()).filter(|token| !token.is_empty())
}

/// The proxy that the environment names, with the hosts to which none leads. One that cannot be understood is not left out: going
/// straight is just what its owner does not want.
pub(super) fn proxy() -> Result<Option<ureq::Proxy>> {
    for name in ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
        if text(name)?.is_some_and(|address| ureq::Proxy::new(&address).is_err()) {
            return Err(Error::Setting { name, detail: "its address cannot be understood".to_owned() });
        }
    }
    text("NO_PROXY")?;
    text("no_proxy")?;
    Ok(ureq::Proxy::try_from_env())
}
