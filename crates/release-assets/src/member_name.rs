//! A member's name, as an archive spells it, made into the one path that every operating system reads alike.

use crate::{ArchiveRule, Limits};

/// The path a name stands for: `/` between components, no `.`, and whether it names a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberName {
    pub(crate) path: String,
    pub(crate) is_folder: bool,
}

/// Reads a member's name, with `\` taken for a separator.
pub(crate) fn parse(name: &str, limits: &Limits) -> Result<MemberName, ArchiveRule> {
    let name = name.replace('\\', "/");
    if name.is_empty() {
        return Err(ArchiveRule::EmptyName);
    }
    if name.starts_with('/') {
        return Err(ArchiveRule::Absolute);
    }
    let mut components = Vec::new();
    for component in name.split('/').filter(|c| !c.is_empty() && *c != ".") {
        check_component(component)?;
        components.push(component);
    }
    let path = components.join("/");
    if path.is_empty() {
        return Err(ArchiveRule::EmptyName);
    }
    if path.len() > limits.path_bytes {
        return Err(ArchiveRule::PathTooLong { found: path.len(), limit: limits.path_bytes });
    }
    if components.len() > limits.path_depth {
        return Err(ArchiveRule::PathTooDeep { found: components.len(), limit: limits.path_depth });
    }
    // `a/.` names a folder as much as `a/` does.
    let is_folder = name.ends_with('/') || name.ends_with("/.");
    Ok(MemberName { path, is_folder })
}

/// Checks one component that stands alone, such as the file name at the end of a URL.
pub(crate) fn check_component(component: &str) -> Result<(), ArchiveRule> {
    if component.is_empty() {
        return Err(ArchiveRule::EmptyName);
    }
    if let Some(bad) = component.chars().find(|&c| is_control_or_invisible(c)) {
        return Err(ArchiveRule::ControlCharacter { code: u32::from(bad) });
    }
    if component == ".." {
        return Err(ArchiveRule::ParentComponent);
    }
    if component.len() > Limits::COMPONENT_BYTES {
        return Err(ArchiveRule::PathTooLong { found: component.len(), limit: Limits::COMPONENT_BYTES });
    }
    if component.contains(':') {
        return Err(ArchiveRule::DriveOrStream);
    }
    if let Some(character) = component.chars().find(|c| "<>\"|?*/\\".contains(*c)) {
        return Err(ArchiveRule::ForbiddenCharacter { character });
    }
    // Before the reserved names: `NUL.` is one because Windows drops the dot.
    if component.ends_with(['.', ' ']) {
        return Err(ArchiveRule::TrailingDotOrSpace { component: component.to_owned() });
    }
    if is_reserved(component) {
        return Err(ArchiveRule::ReservedName { component: component.to_owned() });
    }
    Ok(())
}

/// The key under which paths that differ in letter case alone are equal: upper-case and back, which also
/// joins `ß` with `ss` and `ſ` with `s`. Composed and decomposed accents stay apart here.
pub(crate) fn case_key(path: &str) -> String {
    path.to_uppercase().to_lowercase()
}

/// A device of Windows, whatever follows the first dot. The superscript digits count as digits there.
fn is_reserved(component: &str) -> bool {
    let stem = component.split('.').next().unwrap_or_default().trim_end_matches(' ').to_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let digits = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let mut digits = digits.unwrap_or_default().chars();
    matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
}

/// Controls, and format characters that some file systems ignore and no reader sees.
pub(crate) fn is_control_or_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn parse(name: &str) -> Result<MemberName, ArchiveRule> {
        super::parse(name, &Limits::default())
    }

    #[test]
    fn spellings_of_one_path_are_one_path() {
        for (name, path, is_folder) in [
            ("a", "a", false),
            ("./a", "a", false),
            ("a/./b", "a/b", false),
            ("a//b", "a/b", false),
            ("a\\b", "a/b", false),
            ("a/", "a", true),
            ("a\\", "a", true),
            ("a/.", "a", true),
        ] {
            assert_eq!(parse(name).unwrap(), MemberName { path: path.into(), is_folder }, "{name}");
        }
    }

    /// Of a component that stands alone nothing is made a separator, nor left out.
    #[test]
    fn components_hold_no_separator() {
        for (name, character) in [("a\\b", '\\'), ("a/b", '/')] {
            assert_eq!(check_component(name), Err(ArchiveRule::ForbiddenCharacter { character }));
        }
        assert_eq!(check_component("a\0"), Err(ArchiveRule::ControlCharacter { code: 0 }));
        assert_eq!(check_component(""), Err(ArchiveRule::EmptyName));
        assert!(check_component(".").is_err());
    }

    #[test]
    fn case_keys_join_what_file_systems_join() {
        for (a, b) in [("Enc.ONNX", "enc.onnx"), ("straße", "STRASSE"), ("ſ", "s"), ("K", "k"), ("ς", "Σ")]
        {
            assert_eq!(case_key(a), case_key(b));
        }
        assert_ne!(case_key("a"), case_key("b"));
    }

    #[test]
    fn names_that_only_look_like_devices_are_accepted() {
        for name in ["console.txt", "COM10", "com", "LPTx", "nullable", "a.con", "auxiliary/x"] {
            assert!(parse(name).is_ok(), "{name}");
        }
    }

    proptest! {
        /// Whatever comes out is relative, has only plain components, and is a fixed point.
        #[test]
        fn an_accepted_name_stays_below_its_root(name in "(\\PC|[./\\\\:A-Za-z \u{0}\u{202e}]){0,24}") {
            if let Ok(member) = parse(&name) {
                let path = std::path::Path::new(&member.path);
                prop_assert!(path.components().all(|c| matches!(c, std::path::Component::Normal(_))));
                prop_assert!(!member.path.contains(['\\', ':', '\0']));
                let again = parse(&member.path).unwrap();
                prop_assert_eq!(again.path, member.path);
            }
        }

        /// A `..` anywhere is never normalised away.
        #[test]
        fn climbing_is_never_accepted(before in "[a-z]{0,3}", after in "[a-z]{0,3}", sep in "[/\\\\]{1,2}") {
            let climbing = format!("{before}{sep}..{sep}{after}");
            prop_assert!(parse(&climbing).is_err());
        }
    }
}
