//! Numbers and byte ranges of a ZIP archive's records, and what is wrong where they are not there.

use std::io::{self, Read, Seek, SeekFrom};

use crate::ArchiveRule;

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

/// Little-endian numbers off the front of a slice.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// Past the end nothing is left, and the next number says so.
    pub(crate) fn skip(&mut self, count: usize) {
        self.0 = self.0.get(count..).unwrap_or_default();
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Reads `count` bytes that the structure says are there. Callers bound `count`.
pub(crate) fn read_at<R: Read + Seek>(reader: &mut R, offset: u64, count: u64) -> Result<Vec<u8>, Fault> {
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count {
        Ok(bytes)
    } else {
        Err(ArchiveRule::Directory { what: "the file ends before it" }.into())
    }
}

/// A rule that a member breaks.
pub(crate) fn fault(raw_name: &[u8], rule: ArchiveRule) -> Fault {
    let name = if raw_name.is_empty() { "(no name)".into() } else { String::from_utf8_lossy(raw_name) };
    Fault::Rule { member: Some(name.into_owned()), rule }
}
