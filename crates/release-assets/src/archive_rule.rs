/// The ways in which an archive can lie, ask for too much, or be no archive at all.
///
/// One broken rule rejects the whole archive: nothing is renamed, sanitised or skipped. Sources: ZIP
/// application note 6.3 (structure), the public advisories on archive extraction (traversal, links, bombs,
/// overlaps), and Windows' rules for file names, which hold on every operating system alike so that a release
/// means the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveRule {
    // ---- names
    /// No name, or one that consists of separators and `.` alone.
    #[error("the name is empty")]
    EmptyName,
    /// The name starts with a separator.
    #[error("the path is absolute")]
    Absolute,
    /// A colon in any component: a drive (`C:x`) or a stream (`a:b`).
    #[error("a colon names a drive or a stream")]
    DriveOrStream,
    /// A `..` component.
    #[error("the path climbs with `..`")]
    ParentComponent,
    /// NUL, a control character, or an invisible formatting character such as a direction override.
    #[error("the name holds the control or invisible character U+{code:04X}")]
    ControlCharacter {
        /// The character's code point.
        code: u32,
    },
    /// The name is not UTF-8, or is not ASCII and not marked as UTF-8, so that readers disagree about it.
    #[error("the name is not UTF-8, or not marked as such")]
    NotUtf8,
    /// An extra field gives the member a second name that differs from the first.
    #[error("an extra field gives a second, different name")]
    SecondName,
    /// A device name of Windows, with or without an extension.
    #[error("`{component}` is a reserved device name")]
    ReservedName {
        /// The component.
        component: String,
    },
    /// A component ends in a dot or a space, which Windows drops.
    #[error("`{component}` ends in a dot or a space")]
    TrailingDotOrSpace {
        /// The component.
        component: String,
    },
    /// One of `<>"|?*`, or a separator where a single name belongs.
    #[error("the name holds `{character}`")]
    ForbiddenCharacter {
        /// The character.
        character: char,
    },
    /// The path, or one component of it, is longer than allowed.
    #[error("the path has {found} bytes, {limit} are allowed")]
    PathTooLong {
        /// Bytes of the path or component.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// More components than allowed.
    #[error("the path has {found} components, {limit} are allowed")]
    PathTooDeep {
        /// Components of the path.
        found: usize,
        /// Components allowed.
        limit: usize,
    },
    /// The name under which the cache keeps its own record, or a path below it.
    #[error("the name is reserved for the cache's own record")]
    ReservedForRecord,
    /// Two members have the same path once `.` and doubled separators are gone.
    #[error("the path occurs twice")]
    Duplicate,
    /// Two paths differ in letter case alone.
    #[error("differs from `{other}` in letter case alone")]
    CaseTwin {
        /// The earlier path.
        other: String,
    },
    /// A file is also used as the folder of another member.
    #[error("a file is used as a folder")]
    FileAsFolder,
    /// The file system takes two of the archive's paths for one.
    #[error("this file system takes the path for another one in the archive")]
    FileSystemTwin,

    // ---- kinds
    /// A symbolic or hard link.
    #[error("the member is a link")]
    Link,
    /// A device, pipe or socket.
    #[error("the member is a device, pipe or socket (type {kind:#o})")]
    SpecialFile {
        /// The file type bits of the Unix mode.
        kind: u32,
    },
    /// Name, attributes and size disagree on whether the member is a folder.
    #[error("name, attributes and size disagree on whether this is a folder")]
    FolderMismatch,
    /// A folder with bytes of its own. None, and the two of an empty deflate stream that some tools write, are accepted.
    #[error("the member is a folder and holds {bytes} bytes")]
    FolderData {
        /// Bytes in the archive.
        bytes: u64,
    },
    /// The member is encrypted, or its headers are.
    #[error("the member is encrypted")]
    Encrypted,
    /// A compression method other than stored (0) and deflate (8).
    #[error("compression method {method} is not supported; stored (0) and deflate (8) are")]
    Method {
        /// The method's number in the ZIP format.
        method: u16,
    },

    // ---- limits
    /// More members than [`Limits::entries`](crate::Limits::entries).
    #[error("{found} members, {limit} are allowed")]
    TooManyEntries {
        /// Members declared.
        found: u64,
        /// Members allowed.
        limit: u64,
    },
    /// The central directory is larger than the allowed number of members can need.
    #[error("the central directory has {found} bytes, {limit} are allowed")]
    DirectoryTooLarge {
        /// Bytes declared.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// One member declares more bytes than [`Limits::entry_bytes`](crate::Limits::entry_bytes).
    #[error("{found} bytes are declared, {limit} are allowed for one member")]
    EntryTooLarge {
        /// Bytes declared.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// All members together declare more bytes than [`Limits::total_bytes`](crate::Limits::total_bytes).
    #[error("{found} bytes are declared up to here, {limit} are allowed in all")]
    TotalTooLarge {
        /// Bytes declared up to and with this member.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The member, or where none is named all of them together, claims to expand more than
    /// [`Limits::ratio`](crate::Limits::ratio) times.
    #[error("expands from {compressed} to {size} bytes, more than {limit} times")]
    Ratio {
        /// Bytes in the archive.
        compressed: u64,
        /// Bytes declared.
        size: u64,
        /// Times allowed.
        limit: u64,
    },

    // ---- structure
    /// There is no end-of-central-directory record.
    #[error("not a ZIP archive, or cut off at the end")]
    NotZip,
    /// More than one place can be read as the archive's end.
    #[error("more than one place can be read as the archive's end")]
    AmbiguousEnd,
    /// Bytes follow the archive's end.
    #[error("bytes follow the end of the archive")]
    TrailingData,
    /// Bytes stand before the first member.
    #[error("bytes stand before the first member")]
    PrependedData,
    /// Bytes that belong to no member and no record.
    #[error("{bytes} bytes belong to no member")]
    HiddenData {
        /// Number of unaccounted bytes.
        bytes: u64,
    },
    /// The archive says it is one of several volumes.
    #[error("the archive is split over several volumes")]
    MultiVolume,
    /// The central directory is cut off, ends early, or does not hold what its end record says.
    #[error("the central directory does not hold what the archive's end says: {what}")]
    Directory {
        /// What is wrong.
        what: &'static str,
    },
    /// The ZIP64 fields are missing, doubled, cut off or disagree with the others.
    #[error("the ZIP64 fields are missing or disagree with the others")]
    Zip64,
    /// The extra fields cannot be read.
    #[error("the extra fields cannot be read")]
    ExtraField,
    /// No local header stands where the central directory says.
    #[error("there is no local header where the central directory says")]
    NoLocalHeader,
    /// The local header and the central directory disagree.
    #[error("local header and central directory disagree on the {field}")]
    HeaderMismatch {
        /// What they disagree on.
        field: &'static str,
    },
    /// Two members use the same bytes, or one uses those of the central directory.
    #[error("the member's bytes overlap with others")]
    Overlap,
    /// A stored member whose two sizes differ.
    #[error("stored without compression, yet {compressed} bytes are said to hold {size}")]
    StoredSize {
        /// Bytes in the archive.
        compressed: u64,
        /// Bytes declared.
        size: u64,
    },

    // ---- content, known only while writing
    /// The compressed bytes are not valid deflate, or end early.
    #[error("the compressed bytes are damaged")]
    Corrupt,
    /// The member holds more or fewer bytes than it declares.
    #[error("{declared} bytes are declared, the member holds {held}")]
    ActualSize {
        /// Bytes declared.
        declared: u64,
        /// Says how many bytes there are.
        held: Held,
    },
    /// The bytes do not have the declared CRC-32.
    #[error("CRC-32 is {found:08x}, {declared:08x} is declared")]
    Crc {
        /// The declared checksum.
        declared: u32,
        /// The checksum of the bytes.
        found: u32,
    },
}

/// How many bytes a member holds: extraction stops at the first byte too many, so that "more" has no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Held {
    /// Exactly this many bytes.
    Exactly(u64),
    /// More than declared.
    More,
    /// The declared bytes, and compressed bytes that belong to nothing behind them.
    Leftover,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(bytes) => write!(f, "{bytes}"),
            Self::More => f.write_str("more"),
            Self::Leftover => f.write_str("more compressed bytes than these"),
        }
    }
}
