//! A strict reader of a ZIP archive's structure.
//!
//! It reads the end records, the central directory and every local header, and accepts an archive only if they
//! agree and every byte of the file belongs to exactly one of them. General readers collapse repeated names,
//! look for archives behind other data and trust one header over the other: each is a way to show two readers
//! two different archives.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use crate::{
    ArchiveRule, Limits,
    end_records::find_end,
    member_name,
    provenance::RECORD_NAME,
    zip_fields::{Fault, Fields, fault, read_at},
};

const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
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

/// What deflate makes of nothing.
const EMPTY_DEFLATE: &[u8] = &[3, 0];

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
    // Whole or as a folder: below it nothing could be written either, once the record is.
    if member.path.split('/').next().is_some_and(|first| member_name::case_key(first) == RECORD_NAME) {
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
    let (mut total, mut total_compressed) = (0u64, 0u64);
    for entry in entries {
        let fail = |rule| fault(&entry.raw_name, rule);
        let (size, compressed) = (entry.size, entry.compressed);
        if size > limits.entry_bytes {
            return Err(fail(ArchiveRule::EntryTooLarge { found: size, limit: limits.entry_bytes }));
        }
        total = total.saturating_add(size);
        total_compressed = total_compressed.saturating_add(compressed);
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
    // Many members below their own floor can fill a disk together.
    if total > Limits::TOTAL_RATIO_FLOOR && total > total_compressed.saturating_mul(limits.ratio) {
        let (compressed, size, limit) = (total_compressed, total, limits.ratio);
        return Err(ArchiveRule::Ratio { compressed, size, limit }.into());
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
        if entry.is_folder {
            check_folder(reader, entry)?;
        }
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

/// A folder is never decoded, so that its bytes are looked at here: none, or the end mark of an empty deflate stream.
fn check_folder<R: Read + Seek>(reader: &mut R, entry: &Entry) -> Result<(), Fault> {
    let fail = |rule| Err(fault(&entry.raw_name, rule));
    let bytes = read_at(reader, entry.data_offset, entry.compressed.min(EMPTY_DEFLATE.len() as u64))?;
    if entry.compressed != bytes.len() as u64 || !(bytes.is_empty() || bytes == EMPTY_DEFLATE) {
        return fail(ArchiveRule::FolderData { bytes: entry.compressed });
    }
    if entry.crc32 != 0 {
        return fail(ArchiveRule::Crc { declared: entry.crc32, found: 0 });
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::end_records::END;

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
