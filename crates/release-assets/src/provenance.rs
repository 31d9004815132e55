//! The record of where a release comes from and of every byte it holds, kept in `release_provenance.json`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{InventoryEntry, Pin, hashing};

/// The record's name, at the root of every extraction.
pub(crate) const RECORD_NAME: &str = "release_provenance.json";
/// Larger than the record of any archive within the default limits.
pub(crate) const RECORD_MAX_BYTES: u64 = 64 << 20;

/// Bytes that the record of an archive of so many files may have: what manifest and pin bring, and for each file a long path, its
/// hash and its place in the lists.
pub(crate) fn max_bytes(files: u64) -> u64 {
    ((8 << 20) + files.saturating_mul(4 << 10)).min(RECORD_MAX_BYTES)
}
const SCHEMA_VERSION: u32 = 2;

/// How an archive came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// A file of the caller's.
    #[default]
    Local,
    /// A plain address.
    Url,
    /// A hub's repository.
    Hub,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Local => "local archive",
            Self::Url => "url",
            Self::Hub => "hub",
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        [Self::Local, Self::Url, Self::Hub].into_iter().find(|kind| kind.text() == text)
    }
}

/// Who asked for what: the part of the record that does not follow from the archive. Unknown parts are null.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) repo_id: Option<String>,
    pub(crate) requested_revision: Option<String>,
    pub(crate) resolved_revision: Option<String>,
    pub(crate) pipeline_tag: Option<String>,
    pub(crate) manifest_sha256: Option<String>,
    pub(crate) manifest_version: Option<String>,
    pub(crate) requested_precision: Option<String>,
    pub(crate) source_precision: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) download_url: Option<String>,
    pub(crate) tool_versions: BTreeMap<String, Option<String>>,
    pub(crate) chipset: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) pin: Option<Pin>,
}

impl Request {
    fn fields(&self) -> BTreeMap<&'static str, Value> {
        BTreeMap::from([
            ("repo_id", json!(self.repo_id)),
            ("requested_revision", json!(self.requested_revision)),
            ("resolved_revision", json!(self.resolved_revision)),
            ("pipeline_tag", json!(self.pipeline_tag)),
            ("manifest_sha256", json!(self.manifest_sha256)),
            ("manifest_version", json!(self.manifest_version)),
            ("requested_precision", json!(self.requested_precision)),
            ("source_precision", json!(self.source_precision)),
            ("format", json!(self.format)),
            ("download_url", json!(self.download_url)),
            ("tool_versions", json!(self.tool_versions)),
            ("chipset", json!(self.chipset)),
            ("origin", json!({ "kind": self.kind.text(), "pin": self.pin.as_ref().map(Pin::redacted) })),
        ])
    }

    /// The request that a record speaks of; none if it is not one of ours. What the record says of itself is no
    /// proof: the key made from this must be the folder's name.
    pub(crate) fn of_record(record: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let origin = record.get("origin")?.as_object()?;
        Some(Self {
            repo_id: text("repo_id"),
            requested_revision: text("requested_revision"),
            resolved_revision: text("resolved_revision"),
            pipeline_tag: text("pipeline_tag"),
            manifest_sha256: text("manifest_sha256"),
            manifest_version: text("manifest_version"),
            requested_precision: text("requested_precision"),
            source_precision: text("source_precision"),
            format: text("format"),
            download_url: text("download_url"),
            tool_versions: serde_json::from_value(record.get("tool_versions")?.clone()).ok()?,
            chipset: text("chipset"),
            kind: Kind::from_text(origin.get("kind")?.as_str()?)?,
            pin: serde_json::from_value(origin.get("pin")?.clone()).ok()?,
        })
    }

    /// A short name for this request. Two requests for one archive that differ in anything recorded have two
    /// extractions of it, so that a record never has to speak for another request.
    pub(crate) fn key(&self) -> String {
        let text = json!(self.fields()).to_string();
        hashing::sha256_bytes(text.as_bytes()).chars().take(16).collect()
    }
}

/// The files of an extraction and what was found in them.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    /// Sorted by path, the record not included.
    pub(crate) inventory: Vec<InventoryEntry>,
    /// For each graph, its sidecars, both as paths of the inventory.
    pub(crate) sidecars: BTreeMap<String, Vec<String>>,
}

/// The record as it has to be, apart from the archive's file name. Keys and order: reference, provenance
/// schema 2, extended by `chipset`, `inventory` and `origin`.
pub(crate) fn expected(
    request: &Request,
    archive_sha256: &str,
    contents: &Contents,
) -> BTreeMap<&'static str, Value> {
    let hash_of = |path: &str| {
        let index = contents.inventory.binary_search_by(|entry| entry.path.as_str().cmp(path));
        index.ok().map(|index| contents.inventory[index].sha256.clone())
    };
    let graphs: BTreeMap<_, _> = contents.sidecars.keys().map(|graph| (graph, hash_of(graph))).collect();
    let external: BTreeMap<_, BTreeMap<_, _>> = contents
        .sidecars
        .iter()
        .map(|(graph, sidecars)| (graph, sidecars.iter().map(|path| (path, hash_of(path))).collect()))
        .collect();
    let inventory: BTreeMap<_, _> = contents
        .inventory
        .iter()
        .map(|entry| {
            (&entry.path, BTreeMap::from([("sha256", json!(entry.sha256)), ("size", json!(entry.size))]))
        })
        .collect();
    let mut record = request.fields();
    record.extend([
        ("schema_version", json!(SCHEMA_VERSION)),
        ("archive_sha256", json!(archive_sha256)),
        ("graphs", json!(graphs)),
        ("external_data", json!(external)),
        ("inventory", json!(inventory)),
    ]);
    record
}

/// The record's bytes: two spaces of indent, sorted keys.
pub(crate) fn write(expected: &BTreeMap<&'static str, Value>, file_name: &str) -> Vec<u8> {
    let mut record = expected.clone();
    if let Some(Value::Object(origin)) = record.get_mut("origin") {
        origin.insert("file_name".to_owned(), json!(file_name));
    }
    let mut record: Map<String, Value> =
        record.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    record.values_mut().for_each(Value::sort_all_objects);
    to_bytes(&record)
}

/// The one form of a record: its fields in their order, two spaces of indent.
pub(crate) fn to_bytes(record: &Map<String, Value>) -> Vec<u8> {
    // Objects of texts and numbers always have a JSON form.
    serde_json::to_vec_pretty(record).unwrap_or_default()
}

/// Names the fields of a record that are not as they have to be: changed, missing or unknown. Of the origin
/// everything counts but the file name: that is a note on how the archive was called when it was first opened.
pub(crate) fn differences(
    expected: &BTreeMap<&'static str, Value>,
    record: &Map<String, Value>,
) -> Vec<String> {
    let mut fields: Vec<String> = expected
        .iter()
        .filter(|(field, value)| **field != "origin" && record.get(**field) != Some(*value))
        .map(|(field, _)| (*field).to_owned())
        .collect();
    let origin_is_right = record.get("origin").and_then(Value::as_object).is_some_and(|origin| {
        let mut origin = origin.clone();
        let note = origin.remove("file_name");
        note.is_some_and(|note| note.is_string()) && expected.get("origin") == Some(&Value::Object(origin))
    });
    if !origin_is_right {
        fields.push("origin".to_owned());
    }
    fields.extend(record.keys().filter(|f| !expected.contains_key(f.as_str())).cloned());
    fields
}
