//! A strict reader of a ZIP archive's structure.
//!
//! It reads the end record, the central directory and every local header, and accepts an archive only if they
//! agree and every byte of the file belongs to exactly one of them. General readers collapse repeated names,
//! look for archives behind other data and trust one header over the other: each is a way to show two readers
//! two different archives.

use std::{
    collections::HashMap,
    io::{self, Read, Seek, SeekFrom},
};

use crate::{ArchiveRule, Limits, member_name, provenance::RECORD_NAME};

const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const END_LEN: u64 = 22;
const LOCATOR64_LEN: u64 = 20;
const LOCAL_LEN: u64 = 30;

const FLAG_ENCRYPTED: u16 = 1 << 0;
const FLAG_DESCRIPTOR: u16 = 1 << 3;
const FLAG_PATCH: u16 = 1 << 5;
const FLAG_STRONG_ENCRYPTION: u16 = 1 << 6;
const FLAG_UTF8: u16 = 1 << 11;
const FLAG_MASKED_HEADERS: u16 = 1 << 13;

const EXTRA_ZIP64: u16 = 0x0001;
const EXTRA_UNIX: u16 = 0x000d;
const EXTRA_UNICODE_PATH: u16 = 0x7075;

/// Room in the central directory for one member: the fixed part, the longest name and generous extra fields.
const DIRECTORY_BYTES_PER_ENTRY: u64 = 2048;

/// How a member is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflate,
}

/// One member, checked.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path below the extraction's root, `/` between components.
    pub(crate) path: String,
    pub(crate) is_folder: bool,
    pub(crate) method: Method,
    pub(crate) crc32: u32,
    pub(crate) compressed: u64,
    pub(crate) size: u64,
    /// Where the member's bytes start in the archive.
    pub(crate) data_offset: u64,
    flags: u16,
    header_offset: u64,
    /// The name's bytes, which the local header must repeat.
    raw_name: Vec<u8>,
}

/// All members of an archive that keeps every rule that can be checked without decompressing.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// Declared bytes of all members together.
    pub(crate) total_bytes: u64,
}

impl Listing {
    /// The members that are files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_folder)
    }
}

/// Why an archive is refused.
#[derive(Debug)]
pub(crate) enum Fault {
    Rule { member: Option<String>, rule: ArchiveRule },
    Io(io::Error),
}

impl From<ArchiveRule> for Fault {
    fn from(rule: ArchiveRule) -> Self {
        Self::Rule { member: None, rule }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads and checks the structure of the archive of `length` bytes behind `reader`.
pub(crate) fn read<R: Read + Seek>(reader: &mut R, length: u64, limits: &Limits) -> Result<Listing, Fault> {
    let end = find_end(reader, length)?;
    if end.count > limits.entries {
        return Err(ArchiveRule::TooManyEntries { found: end.count, limit: limits.entries }.into());
    }
    let limit = end.count.saturating_mul(DIRECTORY_BYTES_PER_ENTRY);
    if end.directory_bytes > limit {
        return Err(ArchiveRule::DirectoryTooLarge { found: end.directory_bytes, limit }.into());
    }
    match end.directory_offset.checked_add(end.directory_bytes) {
        Some(stop) if stop == end.directory_stop => {}
        // An archive glued behind other data keeps its old offsets, which then point too far to the front.
        Some(stop) if stop < end.directory_stop => return Err(ArchiveRule::PrependedData.into()),
        _ => return Err(ArchiveRule::Directory { what: "it reaches beyond its end" }.into()),
    }
    let directory = read_at(reader, end.directory_offset, end.directory_bytes)?;
    let mut entries = parse_directory(&directory, end.count, limits)?;
    let total_bytes = check_sizes(&entries, limits)?;
    check_paths(&entries)?;
    check_layout(reader, &mut entries, end.directory_offset)?;
    Ok(Listing { entries, total_bytes })
}

struct End {
    count: u64,
    directory_offset: u64,
    directory_bytes: u64,
    /// Where the central directory has to stop: the first byte of the end records.
    directory_stop: u64,
}

fn find_end<R: Read + Seek>(reader: &mut R, length: u64) -> Result<End, Fault> {
    let tail_start = length.saturating_sub(END_LEN + u64::from(u16::MAX));
    let tail = read_at(reader, tail_start, length - tail_start)?;
    let (mut exact, mut last) = (Vec::new(), usize::MAX);
    for position in 0..tail.len().saturating_sub(END_LEN as usize - 1) {
        let mut record = Fields(&tail[position..]);
        if record.u32() != Some(END) {
            continue;
        }
        record.skip(16);
        let comment = record.u16().map(usize::from);
        if comment == Some(tail.len() - position - END_LEN as usize) {
            exact.push(position);
        }
        last = position;
    }
    let position = match exact.as_slice() {
        // A second record inside of the comment is what a reader that does not look at lengths would take.
        [one] if last == *one => *one,
        [] if last != usize::MAX => return Err(ArchiveRule::TrailingData.into()),
        [] => return Err(ArchiveRule::NotZip.into()),
        _ => return Err(ArchiveRule::AmbiguousEnd.into()),
    };
    let end_offset = tail_start + position as u64;
    let cut = || ArchiveRule::NotZip;
    let mut record = Fields(&tail[position + 4..]);
    let disk = record.u16().ok_or_else(cut)?;
    let directory_disk = record.u16().ok_or_else(cut)?;
    let here = record.u16().ok_or_else(cut)?;
    let count = record.u16().ok_or_else(cut)?;
    let bytes = record.u32().ok_or_else(cut)?;
    let offset = record.u32().ok_or_else(cut)?;

    let locator_offset = end_offset.checked_sub(LOCATOR64_LEN);
    let locator = locator_offset.map(|at| read_at(reader, at, LOCATOR64_LEN)).transpose()?;
    let is_zip64 = locator.as_deref().is_some_and(|l| Fields(l).u32() == Some(LOCATOR64));
    let wants_zip64 = count == u16::MAX || bytes == u32::MAX || offset == u32::MAX;
    if !is_zip64 {
        if wants_zip64 {
            return Err(ArchiveRule::Zip64.into());
        }
        if disk != 0 || directory_disk != 0 || here != count {
            return Err(ArchiveRule::MultiVolume.into());
        }
        return Ok(End {
            count: count.into(),
            directory_offset: offset.into(),
            directory_bytes: bytes.into(),
            directory_stop: end_offset,
        });
    }
    let (Some(locator), Some(locator_offset)) = (locator, locator_offset) else {
        return Err(ArchiveRule::Zip64.into());
    };
    let end64 = read_end64(reader, &locator, locator_offset)?;
    // A field of the short record counts unless it says "see the long one".
    let agree = (count == u16::MAX || u64::from(count) == end64.count)
        && (here == u16::MAX || u64::from(here) == end64.count)
        && (bytes == u32::MAX || u64::from(bytes) == end64.directory_bytes)
        && (offset == u32::MAX || u64::from(offset) == end64.directory_offset)
        && [disk, directory_disk].iter().all(|d| [0, u16::MAX].contains(d));
    if agree { Ok(end64) } else { Err(ArchiveRule::Zip64.into()) }
}

fn read_end64<R: Read + Seek>(reader: &mut R, locator: &[u8], locator_offset: u64) -> Result<End, Fault> {
    let wrong = || ArchiveRule::Zip64;
    let mut locator = Fields(locator);
    locator.skip(4);
    let disk = locator.u32().ok_or_else(wrong)?;
    let offset = locator.u64().ok_or_else(wrong)?;
    let disks = locator.u32().ok_or_else(wrong)?;
    if disk != 0 || disks > 1 {
        return Err(ArchiveRule::MultiVolume.into());
    }
    // Only the first version of the record is known: 56 bytes, right before its locator.
    if offset.checked_add(56) != Some(locator_offset) {
        return Err(wrong().into());
    }
    let record = read_at(reader, offset, 56)?;
    let mut record = Fields(&record);
    if record.u32() != Some(END64) || record.u64() != Some(44) {
        return Err(wrong().into());
    }
    record.skip(4);
    let disk = record.u32().ok_or_else(wrong)?;
    let directory_disk = record.u32().ok_or_else(wrong)?;
    let here = record.u64().ok_or_else(wrong)?;
    let count = record.u64().ok_or_else(wrong)?;
    let directory_bytes = record.u64().ok_or_else(wrong)?;
    let directory_offset = record.u64().ok_or_else(wrong)?;
    if disk != 0 || directory_disk != 0 || here != count {
        return Err(ArchiveRule::MultiVolume.into());
    }
    Ok(End { count, directory_offset, directory_bytes, directory_stop: offset })
}

fn parse_directory(directory: &[u8], count: u64, limits: &Limits) -> Result<Vec<Entry>, Fault> {
    let mut fields = Fields(directory);
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(parse_entry(&mut fields, limits)?);
    }
    if fields.0.is_empty() {
        Ok(entries)
    } else {
        Err(ArchiveRule::Directory { what: "there are more members than counted" }.into())
    }
}

fn parse_entry(fields: &mut Fields<'_>, limits: &Limits) -> Result<Entry, Fault> {
    let cut = || ArchiveRule::Directory { what: "a member's record is cut off" };
    if fields.u32() != Some(CENTRAL) {
        return Err(ArchiveRule::Directory { what: "a member's record is missing" }.into());
    }
    fields.skip(4); // versions
    let flags = fields.u16().ok_or_else(cut)?;
    let method = fields.u16().ok_or_else(cut)?;
    fields.skip(4); // time and date
    let crc32 = fields.u32().ok_or_else(cut)?;
    let compressed = fields.u32().ok_or_else(cut)?;
    let size = fields.u32().ok_or_else(cut)?;
    let name_len = fields.u16().ok_or_else(cut)?;
    let extra_len = fields.u16().ok_or_else(cut)?;
    let comment_len = fields.u16().ok_or_else(cut)?;
    let disk = fields.u16().ok_or_else(cut)?;
    fields.skip(2); // internal attributes
    let attributes = fields.u32().ok_or_else(cut)?;
    let offset = fields.u32().ok_or_else(cut)?;
    let raw_name = fields.bytes(name_len.into()).ok_or_else(cut)?;
    let extra = fields.bytes(extra_len.into()).ok_or_else(cut)?;
    fields.bytes(comment_len.into()).ok_or_else(cut)?;

    let fail = |rule| fault(raw_name, rule);
    let name = std::str::from_utf8(raw_name).map_err(|_| fail(ArchiveRule::NotUtf8))?;
    if !name.is_ascii() && flags & FLAG_UTF8 == 0 {
        return Err(fail(ArchiveRule::NotUtf8));
    }
    let member = member_name::parse(name, limits).map_err(fail)?;
    if member_name::case_key(&member.path) == RECORD_NAME {
        return Err(fail(ArchiveRule::ReservedForRecord));
    }
    if flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED_HEADERS) != 0 {
        return Err(fail(ArchiveRule::Encrypted));
    }
    let method = match method {
        0 if flags & FLAG_PATCH == 0 => Method::Stored,
        8 if flags & FLAG_PATCH == 0 => Method::Deflate,
        method => return Err(fail(ArchiveRule::Method { method })),
    };
    let extra = Extra::parse(extra).map_err(fail)?;
    extra.check_names(raw_name).map_err(fail)?;
    let mut long = Fields(extra.zip64.unwrap_or_default());
    let mut widen = |short: u32| match short {
        u32::MAX => long.u64().ok_or_else(|| fail(ArchiveRule::Zip64)),
        short => Ok(u64::from(short)),
    };
    let (size, compressed, offset) = (widen(size)?, widen(compressed)?, widen(offset)?);
    let disk =
        if disk == u16::MAX { long.u32().ok_or_else(|| fail(ArchiveRule::Zip64))? } else { disk.into() };
    if disk != 0 {
        return Err(fail(ArchiveRule::MultiVolume));
    }
    check_kind(attributes, member.is_folder, size).map_err(fail)?;
    Ok(Entry {
        path: member.path,
        is_folder: member.is_folder,
        method,
        crc32,
        compressed,
        size,
        data_offset: 0,
        flags,
        header_offset: offset,
        raw_name: raw_name.to_owned(),
    })
}

/// Only regular files and folders, by Unix mode (whatever system claims to have written it) and by the DOS
/// folder bit.
fn check_kind(attributes: u32, is_folder: bool, size: u64) -> Result<(), ArchiveRule> {
    const DOS_FOLDER: u32 = 0x10;
    let kind = (attributes >> 16) & 0o170_000;
    match kind {
        0 => {}
        0o100_000 if !is_folder => {}
        0o040_000 if is_folder => {}
        0o100_000 | 0o040_000 => return Err(ArchiveRule::FolderMismatch),
        0o120_000 => return Err(ArchiveRule::Link),
        kind => return Err(ArchiveRule::SpecialFile { kind }),
    }
    if (attributes & DOS_FOLDER != 0 && !is_folder) || (is_folder && size != 0) {
        return Err(ArchiveRule::FolderMismatch);
    }
    Ok(())
}

fn check_sizes(entries: &[Entry], limits: &Limits) -> Result<u64, Fault> {
    let mut total = 0u64;
    for entry in entries {
        let fail = |rule| fault(&entry.raw_name, rule);
        let (size, compressed) = (entry.size, entry.compressed);
        if size > limits.entry_bytes {
            return Err(fail(ArchiveRule::EntryTooLarge { found: size, limit: limits.entry_bytes }));
        }
        total = total.saturating_add(size);
        if total > limits.total_bytes {
            return Err(fail(ArchiveRule::TotalTooLarge { found: total, limit: limits.total_bytes }));
        }
        if entry.method == Method::Stored && size != compressed {
            return Err(fail(ArchiveRule::StoredSize { compressed, size }));
        }
        if size > Limits::RATIO_FLOOR && size > compressed.saturating_mul(limits.ratio) {
            return Err(fail(ArchiveRule::Ratio { compressed, size, limit: limits.ratio }));
        }
    }
    Ok(total)
}

#[derive(PartialEq, Eq)]
enum Node {
    File,
    /// A folder with a member of its own.
    Folder,
    /// A folder that exists because something lies in it.
    Parent,
}

/// Duplicates, case twins and files used as folders, over every path and every folder on the way to it.
fn check_paths(entries: &[Entry]) -> Result<(), Fault> {
    let mut nodes: HashMap<String, (&str, Node)> = HashMap::new();
    for entry in entries {
        let fail = |rule| Err(fault(&entry.raw_name, rule));
        let own = if entry.is_folder { Node::Folder } else { Node::File };
        let parents = entry.path.match_indices('/').map(|(at, _)| (&entry.path[..at], Node::Parent));
        for (path, node) in parents.chain([(entry.path.as_str(), own)]) {
            let key = member_name::case_key(path);
            let Some((other, known)) = nodes.get_mut(&key) else {
                nodes.insert(key, (path, node));
                continue;
            };
            if *other != path {
                return fail(ArchiveRule::CaseTwin { other: (*other).to_owned() });
            }
            match (&*known, node) {
                (Node::Folder | Node::Parent, Node::Parent) => {}
                (Node::Parent, Node::Folder) => *known = Node::Folder,
                (Node::File, Node::Parent) | (Node::Parent, Node::File) => {
                    return fail(ArchiveRule::FileAsFolder);
                }
                (Node::File | Node::Folder, Node::File | Node::Folder) => {
                    return fail(ArchiveRule::Duplicate);
                }
            }
        }
    }
    Ok(())
}

/// Reads every local header in the order of the file, and checks that members follow each other without gap
/// or overlap.
fn check_layout<R: Read + Seek>(reader: &mut R, entries: &mut [Entry], directory: u64) -> Result<(), Fault> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&index| entries[index].header_offset);
    let starts: Vec<u64> = order.iter().map(|&index| entries[index].header_offset).collect();
    if starts.first().copied().unwrap_or(directory) != 0 {
        return Err(ArchiveRule::PrependedData.into());
    }
    for (rank, &index) in order.iter().enumerate() {
        let entry = &mut entries[index];
        let next = starts.get(rank + 1).copied().unwrap_or(directory);
        let raw_name = entry.raw_name.clone();
        let fail = |rule| fault(&raw_name, rule);
        if next > directory {
            return Err(fail(ArchiveRule::NoLocalHeader));
        }
        // The header has to end before the next member starts, so that no read goes astray.
        let room = next.saturating_sub(entry.header_offset);
        if room < LOCAL_LEN {
            return Err(fail(ArchiveRule::Overlap));
        }
        let header = read_at(reader, entry.header_offset, LOCAL_LEN)?;
        let lengths = check_local_header(entry, &header).map_err(fail)?;
        let head_bytes = LOCAL_LEN + lengths.0 + lengths.1;
        let data_end =
            entry.header_offset.checked_add(head_bytes).and_then(|o| o.checked_add(entry.compressed));
        let Some(data_end) = data_end.filter(|&end| end <= next) else {
            return Err(fail(ArchiveRule::Overlap));
        };
        let name_and_extra = read_at(reader, entry.header_offset + LOCAL_LEN, lengths.0 + lengths.1)?;
        let (name, extra) = name_and_extra.split_at(lengths.0 as usize);
        check_local_extra(entry, &header, name, extra).map_err(fail)?;
        entry.data_offset = entry.header_offset + head_bytes;
        let gap = next - data_end;
        if gap > 0 {
            // At most 24 bytes are ever a data descriptor.
            let rest = read_at(reader, data_end, gap.min(25))?;
            if entry.flags & FLAG_DESCRIPTOR == 0 || !is_descriptor(entry, &rest) {
                return Err(fail(ArchiveRule::HiddenData { bytes: gap }));
            }
        }
    }
    Ok(())
}

/// Compares the fixed part of a local header; returns the lengths of the name and of the extra fields.
fn check_local_header(entry: &Entry, header: &[u8]) -> Result<(u64, u64), ArchiveRule> {
    const SHARED_FLAGS: u16 = FLAG_ENCRYPTED
        | FLAG_DESCRIPTOR
        | FLAG_PATCH
        | FLAG_STRONG_ENCRYPTION
        | FLAG_UTF8
        | FLAG_MASKED_HEADERS;
    let mut fields = Fields(header);
    if fields.u32() != Some(LOCAL) {
        return Err(ArchiveRule::NoLocalHeader);
    }
    fields.skip(2); // version
    let flags = fields.u16().unwrap_or_default();
    if (flags ^ entry.flags) & SHARED_FLAGS != 0 {
        return Err(ArchiveRule::HeaderMismatch { field: "flags" });
    }
    let method = if entry.method == Method::Stored { 0 } else { 8 };
    if fields.u16() != Some(method) {
        return Err(ArchiveRule::HeaderMismatch { field: "method" });
    }
    fields.skip(4); // time and date
    let crc32 = fields.u32().unwrap_or_default();
    // Where a descriptor follows the data, the header may leave the three numbers at zero.
    let deferred = entry.flags & FLAG_DESCRIPTOR != 0;
    if crc32 != entry.crc32 && !(deferred && crc32 == 0) {
        return Err(ArchiveRule::HeaderMismatch { field: "CRC-32" });
    }
    fields.skip(8); // sizes: with the extra fields
    Ok((fields.u16().unwrap_or_default().into(), fields.u16().unwrap_or_default().into()))
}

/// Compares name and sizes, which may stand in the extra fields.
fn check_local_extra(entry: &Entry, header: &[u8], name: &[u8], extra: &[u8]) -> Result<(), ArchiveRule> {
    if name != entry.raw_name {
        return Err(ArchiveRule::HeaderMismatch { field: "name" });
    }
    let extra = Extra::parse(extra)?;
    extra.check_names(name)?;
    let mut long = Fields(extra.zip64.unwrap_or_default());
    let mut fields = Fields(&header[18..]);
    let (compressed, size) = (fields.u32().unwrap_or_default(), fields.u32().unwrap_or_default());
    let mut widen = |short: u32| match short {
        u32::MAX => long.u64().ok_or(ArchiveRule::Zip64),
        short => Ok(u64::from(short)),
    };
    let (size, compressed) = (widen(size)?, widen(compressed)?);
    let deferred = entry.flags & FLAG_DESCRIPTOR != 0;
    for (found, expected, field) in
        [(size, entry.size, "size"), (compressed, entry.compressed, "compressed size")]
    {
        if found != expected && !(deferred && found == 0) {
            return Err(ArchiveRule::HeaderMismatch { field });
        }
    }
    Ok(())
}

/// True if the bytes are this member's data descriptor: CRC and two sizes of 4 or 8 bytes, with or without a
/// signature.
fn is_descriptor(entry: &Entry, bytes: &[u8]) -> bool {
    let mut fields = Fields(bytes);
    if matches!(bytes.len(), 16 | 24) && fields.u32() != Some(DESCRIPTOR) {
        return false;
    }
    if fields.u32() != Some(entry.crc32) {
        return false;
    }
    let (compressed, size) = match bytes.len() {
        12 | 16 => (fields.u32().map(u64::from), fields.u32().map(u64::from)),
        20 | 24 => (fields.u64(), fields.u64()),
        _ => return false,
    };
    compressed == Some(entry.compressed) && size == Some(entry.size)
}

/// The extra fields that change how a member is read.
#[derive(Default)]
struct Extra<'a> {
    zip64: Option<&'a [u8]>,
    unicode_path: Option<&'a [u8]>,
}

impl<'a> Extra<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveRule> {
        let mut fields = Fields(bytes);
        let mut extra = Self::default();
        while !fields.0.is_empty() {
            let header = fields.u16().zip(fields.u16());
            let Some((id, content)) = header.and_then(|(id, len)| Some((id, fields.bytes(len.into())?)))
            else {
                return Err(ArchiveRule::ExtraField);
            };
            match id {
                EXTRA_ZIP64 if extra.zip64.replace(content).is_some() => return Err(ArchiveRule::Zip64),
                EXTRA_UNICODE_PATH if extra.unicode_path.replace(content).is_some() => {
                    return Err(ArchiveRule::SecondName);
                }
                // The variable part of this field is the target of a link or the number of a device.
                EXTRA_UNIX if content.len() > 12 => return Err(ArchiveRule::Link),
                _ => {}
            }
        }
        Ok(extra)
    }

    /// A second name (version, CRC, name) has to be the first one again.
    fn check_names(&self, name: &[u8]) -> Result<(), ArchiveRule> {
        match self.unicode_path {
            Some(field) if field.get(5..) != Some(name) => Err(ArchiveRule::SecondName),
            _ => Ok(()),
        }
    }
}

/// Little-endian numbers off the front of a slice.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// Past the end nothing is left, and the next number says so.
    fn skip(&mut self, count: usize) {
        self.0 = self.0.get(count..).unwrap_or_default();
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Reads `count` bytes that the structure says are there. Callers bound `count`.
fn read_at<R: Read + Seek>(reader: &mut R, offset: u64, count: u64) -> Result<Vec<u8>, Fault> {
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count {
        Ok(bytes)
    } else {
        Err(ArchiveRule::Directory { what: "the file ends before it" }.into())
    }
}

fn fault(raw_name: &[u8], rule: ArchiveRule) -> Fault {
    Fault::Rule { member: Some(printable(raw_name)), rule }
}

/// A member's name for a message: one line, escaped, of bounded length.
fn printable(raw_name: &[u8]) -> String {
    let mut text: String = String::from_utf8_lossy(raw_name).escape_debug().take(200).collect();
    if text.is_empty() {
        text.push_str("(no name)");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any bytes at all end in a listing or in a fault.
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let length = bytes.len() as u64;
            let _ = read(&mut Cursor::new(bytes), length, &Limits::default());
        }

        /// Bytes with a plausible end record reach the directory reader.
        #[test]
        fn arbitrary_directories_never_panic(
            head in proptest::collection::vec(any::<u8>(), 0..200),
            directory in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0u16..4,
        ) {
            let mut bytes = head.clone();
            bytes.extend(CENTRAL.to_le_bytes());
            bytes.extend(&directory);
            let mut end = END.to_le_bytes().to_vec();
            end.extend([0; 4]);
            end.extend([count, count].iter().flat_map(|c| c.to_le_bytes()));
            end.extend((directory.len() as u32 + 4).to_le_bytes());
            end.extend((head.len() as u32).to_le_bytes());
            end.extend([0; 2]);
            bytes.extend(end);
            let length = bytes.len() as u64;
            let _ = read(&mut Cursor::new(bytes), length, &Limits::default());
        }
    }
}
