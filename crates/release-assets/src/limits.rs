/// How much an archive may ask for. What is declared is checked before anything is written, and the bytes are
/// counted again while they are.
///
/// ```
/// use release_assets::Limits;
/// let limits = Limits::default().entries(100).total_bytes(1 << 30);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub(crate) entries: u64,
    pub(crate) entry_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) ratio: u64,
    pub(crate) path_bytes: usize,
    pub(crate) path_depth: usize,
}

impl Default for Limits {
    /// 10,000 members, 8 GiB each, 20 GiB in all, expansion by 200, paths of 400 bytes and 16 components.
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self {
            entries: 10_000,
            entry_bytes: 8 * GIB,
            total_bytes: 20 * GIB,
            ratio: 200,
            path_bytes: 400,
            path_depth: 16,
        }
    }
}

impl Limits {
    /// Expansion is not looked at below this size: a small member cannot fill a disk, and short runs compress
    /// well.
    pub(crate) const RATIO_FLOOR: u64 = 1 << 20;
    /// The same for all members together.
    pub(crate) const TOTAL_RATIO_FLOOR: u64 = 16 << 20;
    /// No common file system takes a longer component.
    pub(crate) const COMPONENT_BYTES: usize = 255;

    /// Members of the archive, folders counted (default 10,000).
    #[must_use]
    pub fn entries(mut self, count: u64) -> Self {
        self.entries = count;
        self
    }

    /// Bytes of one member after decompression (default 8 GiB).
    #[must_use]
    pub fn entry_bytes(mut self, bytes: u64) -> Self {
        self.entry_bytes = bytes;
        self
    }

    /// Bytes of all members together after decompression (default 20 GiB, the reference's).
    #[must_use]
    pub fn total_bytes(mut self, bytes: u64) -> Self {
        self.total_bytes = bytes;
        self
    }

    /// How many times larger than its compressed form a member over 1 MiB, and an archive over 16 MiB, may be
    /// (default 200; deflate ends at 1,032).
    #[must_use]
    pub fn ratio(mut self, times: u64) -> Self {
        self.ratio = times;
        self
    }

    /// Bytes of a member's path (default 400). One component never has more than 255.
    #[must_use]
    pub fn path_bytes(mut self, bytes: usize) -> Self {
        self.path_bytes = bytes;
        self
    }

    /// Components of a member's path (default 16).
    #[must_use]
    pub fn path_depth(mut self, components: usize) -> Self {
        self.path_depth = components;
        self
    }
}
