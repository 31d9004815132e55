//! Texts of others in messages.

use std::fmt::{Display, Write};

use crate::member_name::is_control_or_invisible;

/// Paths are no longer on common systems.
const MAX_CHARS: usize = 4096;

/// A text that a file, a server or a name on a disk gave, as a part of one line: it commands no terminal, forges no further line, and
/// has an end.
pub(crate) fn shown(text: impl Display) -> String {
    let text = text.to_string();
    let mut chars = text.chars();
    let mut line = String::new();
    for c in chars.by_ref().take(MAX_CHARS) {
        // Writing into a string cannot fail.
        let _ = if is_control_or_invisible(c) {
            write!(line, "{}", c.escape_default())
        } else {
            line.write_char(c)
        };
    }
    if chars.next().is_some() {
        line.push('…');
    }
    line
}
