//! Z1, Z5, RA1: a name that could leave the extraction, or that systems read differently, refuses the whole
//! archive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use release_assets::{ArchiveRule as Rule, Limits};
use support::{Place, Raw, raw_zip};

const UTF8: u16 = 1 << 11;

/// Refuses a graph together with one member of this name, in either order: nothing before the bad name is
/// written.
fn refuse(name: impl AsRef<[u8]>) -> Rule {
    refuse_with(name, Limits::default())
}

fn refuse_with(name: impl AsRef<[u8]>, limits: Limits) -> Rule {
    let bad = Raw::new(name, b"x").with(|raw| raw.flags = UTF8);
    let first = Place::new().refuse_with(&raw_zip(&[bad.clone(), Raw::graph()]), limits);
    let last = Place::new().refuse_with(&raw_zip(&[Raw::graph(), bad]), limits);
    assert_eq!(first, last);
    first
}

/// Z1, RA1
#[test]
fn climbing() {
    for name in ["../escape.onnx", "a/../../x", "a/..", "..", "a\\..\\..\\x", "..\\x", "./../x", "a/./../x"] {
        assert_eq!(refuse(name), Rule::ParentComponent, "{name}");
    }
    assert_eq!(refuse("..././x"), Rule::TrailingDotOrSpace { component: "...".into() });
}

/// Z1
#[test]
fn absolute() {
    for name in ["/etc/x", "//host/share/x", "\\x", "\\\\host\\share\\x", "/"] {
        assert_eq!(refuse(name), Rule::Absolute, "{name}");
    }
}

/// Z1: in any component, not the first alone.
#[test]
fn drives_and_streams() {
    for name in ["C:x", "C:/x", "c:\\x", "d/C:x", "a/b:stream", "a:$DATA", "a/b:"] {
        assert_eq!(refuse(name), Rule::DriveOrStream, "{name}");
    }
}

/// Z5
#[test]
fn empty() {
    for name in ["", ".", "./", "./."] {
        assert_eq!(refuse(name), Rule::EmptyName, "{name}");
    }
}

/// Z5
#[test]
fn control_and_invisible_characters() {
    for code in [0, 1, 9, 10, 13, 0x1f, 0x7f, 0x85, 0xad, 0x200b, 0x202e, 0x2066, 0xfeff] {
        let name = format!("a{}b", char::from_u32(code).unwrap());
        assert_eq!(refuse(name), Rule::ControlCharacter { code });
    }
}

/// Z5: bytes that are not UTF-8, and UTF-8 that is not marked as such, which other readers take for code page
/// 437.
#[test]
fn other_encodings() {
    assert_eq!(refuse(b"a\xffb"), Rule::NotUtf8);
    let unmarked = raw_zip(&[Raw::graph(), Raw::new("é", b"x")]);
    assert_eq!(Place::new().refuse(&unmarked), Rule::NotUtf8);
    let marked = raw_zip(&[Raw::graph(), Raw::new("é", b"x").with(|raw| raw.flags = UTF8)]);
    assert!(Place::new().open(&marked).is_ok());
}

/// Z5
#[test]
fn reserved_device_names() {
    for name in [
        "CON",
        "con",
        "d/nul",
        "aux.txt",
        "PRN.tar.gz",
        "com0",
        "COM1.onnx",
        "lpt9",
        "COM¹",
        "lpt³.x",
        "CONIN$",
        "NUL .txt",
        "a/com5/b",
    ] {
        assert!(matches!(refuse(name), Rule::ReservedName { .. }), "{name}");
    }
}

/// Z5
#[test]
fn trailing_dots_and_spaces() {
    for name in ["a.", "a ", "a./b", "a /b", "NUL.", "..."] {
        assert!(matches!(refuse(name), Rule::TrailingDotOrSpace { .. }), "{name}");
    }
}

/// Z5
#[test]
fn characters_that_windows_forbids() {
    for character in "<>\"|?*".chars() {
        assert_eq!(refuse(format!("a/b{character}c")), Rule::ForbiddenCharacter { character });
    }
}

/// Z4
#[test]
fn long_and_deep_paths() {
    assert_eq!(refuse("a".repeat(256)), Rule::PathTooLong { found: 256, limit: 255 });
    let limits = Limits::default().path_bytes(20).path_depth(3);
    assert_eq!(refuse_with("a/".repeat(10) + "b", limits), Rule::PathTooLong { found: 21, limit: 20 });
    assert_eq!(refuse_with("a/b/c/d", limits), Rule::PathTooDeep { found: 4, limit: 3 });
    // Exactly at the limits is inside of them.
    let at_limit = raw_zip(&[Raw::graph(), Raw::new("a/b/0123456789012345", b"x")]);
    let place = Place::new();
    let path = place.write("a.zip", &at_limit);
    assert!(place.cache().limits(limits).open_archive(path).is_ok());
}

/// An extra field by which some readers replace the name.
#[test]
fn second_names() {
    let field = |name: &[u8]| {
        let content = [&[1, 0, 0, 0, 0], name].concat();
        [&0x7075u16.to_le_bytes()[..], &(content.len() as u16).to_le_bytes(), &content].concat()
    };
    let zip = |central: &[u8], local: &[u8]| {
        raw_zip(&[Raw::graph().with(|raw| (raw.extra, raw.local_extra) = (central.to_vec(), local.to_vec()))])
    };
    assert_eq!(Place::new().refuse(&zip(&field(b"../m.onnx"), b"")), Rule::SecondName);
    assert_eq!(Place::new().refuse(&zip(b"", &field(b"other.onnx"))), Rule::SecondName);
    assert!(Place::new().open(&zip(&field(b"m.onnx"), &field(b"m.onnx"))).is_ok());
}

/// The cache's own record cannot be brought along.
#[test]
fn the_records_own_name() {
    for name in ["release_provenance.json", "./Release_Provenance.JSON"] {
        assert_eq!(refuse(name), Rule::ReservedForRecord);
    }
    for name in ["release_provenance.json/x", "RELEASE_provenance.json\\a/b", "release_provenance.json/"] {
        assert_eq!(refuse(name), Rule::ReservedForRecord, "nor a folder of its name");
    }
    // Elsewhere it is a name like any other.
    let zip = raw_zip(&[Raw::graph(), Raw::new("a/release_provenance.json", b"{}")]);
    assert!(Place::new().open(&zip).is_ok());
}

/// The message says which member of which archive broke which rule, on one line.
#[test]
fn the_error_names_archive_member_and_rule() {
    let place = Place::new();
    let zip = raw_zip(&[Raw::graph(), Raw::new("a\n/../b", b"x")]);
    let message = place.open(&zip).unwrap_err().to_string();
    assert!(message.contains("release.zip"), "{message}");
    assert!(message.contains("`a\\n/../b`"), "{message}");
    assert!(message.contains("U+000A"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

/// Everything that can be known without writing is known before the cache is even created.
#[test]
fn nothing_is_created_before_the_whole_archive_is_checked() {
    let place = Place::new();
    place.refuse(&raw_zip(&[Raw::graph(), Raw::new("../x", b"x")]));
    assert!(!place.cache_root().exists());
}
