//! The one place of unsafe code: what a loaded graph left free goes back to the system.

/// Gives back the pages that are free inside the heap.
///
/// Loading takes as much again as the weights, in pieces between those that stay; glibc returns only what is free at the heap's end,
/// so the rest would count until the program ends (`malloc_trim(3)`). Elsewhere allocators give memory back themselves.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the C library's own function, which Rust does not wrap")]
    // SAFETY: it takes a number alone, may be called at any time from any thread, and touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
