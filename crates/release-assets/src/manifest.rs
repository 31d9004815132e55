use std::{collections::BTreeMap, path::Path};

use serde_json::{Map, Value};

use crate::{Error, Result, files, hashing};

/// The largest manifest that is read; published ones have some ten kilobytes.
pub(crate) const MANIFEST_MAX_BYTES: u64 = 4 << 20;

/// The publisher's list of archives, `release_assets.json` at the root of a model repository.
///
/// Unknown fields are ignored, and a damaged entry only matters to who asks for it.
#[derive(Debug, Clone)]
pub struct Manifest {
    version: Option<String>,
    sha256: String,
    /// `precision/runtime` and `precision/chipset/runtime`, which is also how errors list them.
    assets: BTreeMap<Key, Result<Asset, String>>,
}

type Key = (String, Option<String>, String);

/// One published archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asset {
    /// Where the archive can be downloaded, as published.
    pub download_url: String,
    /// The tools that made it and their versions, where the publisher says.
    pub tool_versions: BTreeMap<String, Option<String>>,
}

impl Asset {
    /// The archive's file name: the last segment of the URL's path with its percent signs decoded, or
    /// `release.zip` where that is empty. It is the publisher's word, and may be no name that a file can have.
    pub fn file_name(&self) -> String {
        let name = self.encoded_file_name();
        percent_decoded(name).unwrap_or_else(|| name.to_owned())
    }

    /// The same as it stands in the URL, which is how some programs name what they download.
    pub(crate) fn encoded_file_name(&self) -> &str {
        let url = self.download_url.as_str();
        let path = url.split(['?', '#']).next().unwrap_or(url);
        let path = path
            .split_once("://")
            .map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
        match path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => "release.zip",
        }
    }
}

/// None where a percent sign is not followed by two hex digits, or what comes out is no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.as_bytes().split_at_checked(2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
        bytes.extend(rest);
    }
    String::from_utf8(bytes).ok()
}

/// The publisher's name for a requested precision: `auto`, `fp32` and `fp16` all use the `float` archive (for
/// `fp16` the weights are converted later); any other name is the publisher's own.
pub fn source_precision(requested: &str) -> &str {
    match requested {
        "auto" | "fp32" | "fp16" => "float",
        other => other,
    }
}

impl Manifest {
    /// The manifest's name at the root of a repository or release folder.
    pub const FILE_NAME: &'static str = "release_assets.json";
    /// Reads a manifest file of at most 4 MiB.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::parse(&files::read_small(path, MANIFEST_MAX_BYTES)?).map_err(|error| error.in_manifest(path))
    }

    /// Parses a manifest: UTF-8 JSON with an object at the top; a byte order mark is tolerated.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let fail = |detail: String| Error::Manifest { path: None, detail };
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let root: Value = serde_json::from_slice(text).map_err(|e| fail(e.to_string()))?;
        let Value::Object(root) = root else {
            return Err(fail("the top level is not an object".to_owned()));
        };
        let mut assets = BTreeMap::new();
        for (precision, details) in object(root.get("precisions")).into_iter().flatten() {
            for (runtime, asset) in object(details.get("universal_assets")).into_iter().flatten() {
                assets.insert((precision.clone(), None, runtime.clone()), parse_asset(asset));
            }
            for (chipset, by_runtime) in object(details.get("chipset_assets")).into_iter().flatten() {
                for (runtime, asset) in object(Some(by_runtime)).into_iter().flatten() {
                    let key = (precision.clone(), Some(chipset.clone()), runtime.clone());
                    assets.insert(key, parse_asset(asset));
                }
            }
        }
        let version = root.get("version").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { version, sha256: hashing::sha256_bytes(bytes), assets })
    }

    /// The publisher's release, such as `0.58.0`.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// SHA-256 of the manifest's bytes, in lower-case hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The archive for a precision (`auto`, `fp32`, `fp16`, or a name of the publisher's), a runtime (such as
    /// `onnx`) and, if given, one chipset. Without a chipset only archives for all of them are considered,
    /// with one only its own.
    ///
    /// Errors: [`Error::NoAsset`] says what was asked for and what there is; [`Error::Manifest`] if the asset
    /// is damaged.
    pub fn select(&self, precision: &str, runtime: &str, chipset: Option<&str>) -> Result<&Asset> {
        let source = source_precision(precision);
        let key = (source.to_owned(), chipset.map(str::to_owned), runtime.to_owned());
        match self.assets.get(&key) {
            Some(Ok(asset)) => Ok(asset),
            Some(Err(detail)) => {
                let detail = format!("asset {}: {detail}", key_text(&key));
                Err(Error::Manifest { path: None, detail })
            }
            None => Err(Error::NoAsset {
                precision: precision.to_owned(),
                source_precision: source.to_owned(),
                runtime: runtime.to_owned(),
                chipset: chipset.map(str::to_owned),
                available: self.assets.keys().map(key_text).collect(),
            }),
        }
    }
}

fn key_text((precision, chipset, runtime): &Key) -> String {
    chipset.as_ref().map_or_else(
        || format!("{precision}/{runtime}"),
        |chipset| format!("{precision}/{chipset}/{runtime}"),
    )
}

fn object(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn parse_asset(value: &Value) -> Result<Asset, String> {
    let asset = value.as_object().ok_or("it is not an object")?;
    let url = asset.get("download_url").and_then(Value::as_str).ok_or("it has no `download_url` text")?;
    let mut tool_versions = BTreeMap::new();
    for (tool, version) in object(asset.get("tool_versions")).into_iter().flatten() {
        let version = match version {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => return Err(format!("the version of `{tool}` is neither text nor null")),
        };
        tool_versions.insert(tool.clone(), version);
    }
    Ok(Asset { download_url: url.to_owned(), tool_versions })
}
