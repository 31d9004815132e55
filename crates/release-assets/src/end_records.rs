//! The end of a ZIP archive, which says where its central directory is.

use std::io::{Read, Seek};

use crate::{
    ArchiveRule,
    zip_fields::{Fault, Fields, read_at},
};

pub(crate) const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const END_LEN: u64 = 22;
const LOCATOR64_LEN: u64 = 20;

/// Where the central directory is, and how many members it has.
pub(crate) struct End {
    pub(crate) count: u64,
    pub(crate) directory_offset: u64,
    pub(crate) directory_bytes: u64,
    /// Where the central directory has to stop: the first byte of the end records.
    pub(crate) directory_stop: u64,
}

/// Finds the one end record that there has to be, and the long one before it if there is one.
pub(crate) fn find_end<R: Read + Seek>(reader: &mut R, length: u64) -> Result<End, Fault> {
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
