//! Archives for the tests: ordinary ones, and ones that lie in any field.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::{
    env, fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use release_assets::{ArchiveRule, Cache, Error, Limits, Release};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// A folder with a cache and a place for archives.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn cache_root(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache::new(self.cache_root())
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn open(&self, bytes: &[u8]) -> Result<Release, Error> {
        self.cache().open_archive(self.write("release.zip", bytes))
    }

    /// Opens an archive that must be refused, and checks that nothing of it stays anywhere.
    pub(crate) fn refuse(&self, bytes: &[u8]) -> ArchiveRule {
        self.refuse_with(bytes, Limits::default())
    }

    pub(crate) fn refuse_with(&self, bytes: &[u8], limits: Limits) -> ArchiveRule {
        let path = self.write("release.zip", bytes);
        let error = self.cache().limits(limits).open_archive(path).expect_err("the archive must be refused");
        assert_eq!(self.files(), ["release.zip"], "a refused archive left something behind");
        match error {
            Error::Archive { rule, .. } => rule,
            other => panic!("refused for another reason: {other}"),
        }
    }

    /// Every file and every empty folder below the place but the cache's own tag and bucket.
    pub(crate) fn files(&self) -> Vec<String> {
        let ours = ["cache", "cache/CACHEDIR.TAG", "cache/archives-v1"];
        tree(self.dir.path()).into_iter().filter(|path| !ours.contains(&path.as_str())).collect()
    }
}

/// This test program once more, as a process of its own that runs its `child` and nothing else.
pub(crate) fn child() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).stdout(Stdio::null());
    command
}

/// A small file system in memory, gone with its value. Only who may mount can have one.
pub(crate) struct Disk {
    folder: TempDir,
}

impl Disk {
    pub(crate) fn new(kib: u32) -> Self {
        let disk = Self { folder: tempfile::tempdir().unwrap() };
        disk.mount(&format!("size={kib}k"));
        disk
    }

    pub(crate) fn make_read_only(&self) {
        self.mount("remount,ro");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache::new(self.path().join("cache"))
    }

    fn mount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(self.path()).status().unwrap();
        assert!(status.success(), "this test has to be allowed to mount");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

/// Paths below a folder, sorted: all files and links, and the folders that are empty.
pub(crate) fn tree(root: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) -> bool {
        let mut any = false;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            any = true;
            let path = entry.path();
            let is_folder = entry.file_type().unwrap().is_dir();
            if !is_folder || !walk(root, &path, found) {
                found.push(path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"));
            }
        }
        any
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

/// The content of every file below a folder.
pub(crate) fn contents(root: &Path) -> Vec<(String, Vec<u8>)> {
    tree(root).into_iter().map(|path| (path.clone(), fs::read(root.join(path)).unwrap())).collect()
}

/// Random numbers, always the same for a seed other than 0: xorshift64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to below 1.
    pub(crate) fn next(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Bytes that do not compress, always the same.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    (0..bytes).map(|_| random.bits() as u8).collect()
}

// ---- ordinary archives

/// A release as published: one folder, two graphs, one with its weights beside it, and `metadata.json`.
pub(crate) fn release_members() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("bundle/encoder.onnx", graph_with_sidecar("weights.data", 64)),
        ("bundle/weights.data", (0..=255).collect()),
        ("bundle/decoder.onnx", graph()),
        ("bundle/metadata.json", br#"{"runtime":"onnx","precision":"float"}"#.to_vec()),
    ]
}

pub(crate) fn release_zip() -> Vec<u8> {
    zip_of(&release_members())
}

pub(crate) fn zip_of<N: AsRef<str>, D: AsRef<[u8]>>(members: &[(N, D)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (index, (name, data)) in members.iter().enumerate() {
        let method = [CompressionMethod::Deflated, CompressionMethod::Stored][index % 2];
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(name.as_ref(), options).unwrap();
        writer.write_all(data.as_ref()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

// ---- graphs, encoded by hand: the field numbers are those of ONNX's protobuf

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend(content);
    out
}

fn model(graph: &[u8]) -> Vec<u8> {
    [number(1, 8), bytes(7, graph), bytes(8, &number(2, 17))].concat()
}

/// A model without any tensor.
pub(crate) fn graph() -> Vec<u8> {
    model(&bytes(2, b"empty"))
}

/// A model with one float tensor of `elements`, kept at `location`.
pub(crate) fn graph_with_sidecar(location: &str, elements: u64) -> Vec<u8> {
    let entry = [bytes(1, b"location"), bytes(2, location.as_bytes())].concat();
    let tensor = [number(1, elements), number(2, 1), bytes(8, b"weight"), bytes(13, &entry), number(14, 1)];
    model(&[bytes(2, b"main"), bytes(5, &tensor.concat())].concat())
}

// ---- archives that lie

/// One member, with every field free. `Default` of the overrides is the truth.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) attributes: u32,
    pub(crate) extra: Vec<u8>,
    pub(crate) local_extra: Vec<u8>,
    /// Bytes between the member's data and the next header.
    pub(crate) after: Vec<u8>,
    pub(crate) crc: Option<u32>,
    pub(crate) size: Option<u32>,
    pub(crate) compressed: Option<u32>,
    pub(crate) offset: Option<u32>,
    pub(crate) local_name: Option<Vec<u8>>,
    pub(crate) local_method: Option<u16>,
    pub(crate) local_flags: Option<u16>,
    pub(crate) local_crc: Option<u32>,
    pub(crate) local_size: Option<u32>,
    pub(crate) local_compressed: Option<u32>,
    /// In the central directory alone: no header and no data of its own.
    pub(crate) phantom: bool,
}

pub(crate) fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}

pub(crate) fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

impl Raw {
    pub(crate) fn new(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            data: data.as_ref().to_vec(),
            method: 0,
            flags: 0,
            attributes: 0,
            extra: Vec::new(),
            local_extra: Vec::new(),
            after: Vec::new(),
            crc: None,
            size: None,
            compressed: None,
            offset: None,
            local_name: None,
            local_method: None,
            local_flags: None,
            local_crc: None,
            local_size: None,
            local_compressed: None,
            phantom: false,
        }
    }

    /// A member with a graph, so that only the lie can be the reason for a refusal.
    pub(crate) fn graph() -> Self {
        Self::new("m.onnx", graph())
    }

    pub(crate) fn deflated(name: &str, plain: &[u8]) -> Self {
        let mut raw = Self::new(name, deflate(plain));
        raw.method = 8;
        raw.crc = Some(crc32(plain));
        raw.size = Some(plain.len() as u32);
        raw
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn mode(self, mode: u32) -> Self {
        self.with(|raw| raw.attributes = mode << 16)
    }
}

fn put(out: &mut Vec<u8>, short: &[u16], long: &[u32]) {
    out.extend(short.iter().flat_map(|v| v.to_le_bytes()));
    out.extend(long.iter().flat_map(|v| v.to_le_bytes()));
}

/// Writes the members one behind the other; nothing is checked.
pub(crate) fn raw_zip(members: &[Raw]) -> Vec<u8> {
    raw_zip_with(members, members.len() as u16, 0, b"")
}

/// As [`raw_zip`], with a count, a lie about the directory's size, and a comment.
pub(crate) fn raw_zip_with(members: &[Raw], count: u16, directory_lie: i32, comment: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for raw in members {
        let crc = raw.crc.unwrap_or_else(|| crc32(&raw.data));
        let compressed = raw.compressed.unwrap_or(raw.data.len() as u32);
        let size = raw.size.unwrap_or(raw.data.len() as u32);
        let offset = raw.offset.unwrap_or(out.len() as u32);
        if !raw.phantom {
            let name = raw.local_name.as_ref().unwrap_or(&raw.name);
            out.extend(b"PK\x03\x04");
            let flags = raw.local_flags.unwrap_or(raw.flags);
            put(&mut out, &[20, flags, raw.local_method.unwrap_or(raw.method), 0, 0x21], &[]);
            let numbers = [
                raw.local_crc.unwrap_or(crc),
                raw.local_compressed.unwrap_or(compressed),
                raw.local_size.unwrap_or(size),
            ];
            put(&mut out, &[], &numbers);
            put(&mut out, &[name.len() as u16, raw.local_extra.len() as u16], &[]);
            out.extend(name);
            out.extend(&raw.local_extra);
            out.extend(&raw.data);
            out.extend(&raw.after);
        }
        directory.extend(b"PK\x01\x02");
        put(&mut directory, &[0x0314, 20, raw.flags, raw.method, 0, 0x21], &[crc, compressed, size]);
        put(
            &mut directory,
            &[raw.name.len() as u16, raw.extra.len() as u16, 0, 0, 0],
            &[raw.attributes, offset],
        );
        directory.extend(&raw.name);
        directory.extend(&raw.extra);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06");
    let size = (directory.len() as i32 + directory_lie) as u32;
    put(&mut out, &[0, 0, count, count], &[size, start]);
    put(&mut out, &[comment.len() as u16], &[]);
    out.extend(comment);
    out
}
