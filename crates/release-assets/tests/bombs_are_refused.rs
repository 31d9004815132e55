//! Z4: limits on what is declared, before anything is written, and on what is really there, while it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use release_assets::{ArchiveRule as Rule, Held, Limits};
use support::{Place, Raw, raw_zip};

#[test]
fn too_many_members() {
    let zip = raw_zip(&[Raw::graph(), Raw::new("a", b""), Raw::new("b", b"")]);
    let rule = Place::new().refuse_with(&zip, Limits::default().entries(2));
    assert_eq!(rule, Rule::TooManyEntries { found: 3, limit: 2 });
    let place = Place::new();
    let path = place.write("a.zip", &zip);
    assert!(place.cache().limits(Limits::default().entries(3)).open_archive(path).is_ok());
}

#[test]
fn one_member_too_large() {
    let zip = raw_zip(&[Raw::graph(), Raw::deflated("a", &[7; 1001])]);
    let rule = Place::new().refuse_with(&zip, Limits::default().entry_bytes(1000));
    assert_eq!(rule, Rule::EntryTooLarge { found: 1001, limit: 1000 });
}

#[test]
fn all_together_too_large() {
    let zip = raw_zip(&[Raw::new("a", [7; 600]), Raw::new("b", [7; 600]), Raw::graph()]);
    let rule = Place::new().refuse_with(&zip, Limits::default().total_bytes(1000));
    assert_eq!(rule, Rule::TotalTooLarge { found: 1200, limit: 1000 });
}

/// Sizes whose sum overflows are still too large.
#[test]
fn declared_sizes_that_overflow() {
    let huge = |name: &str| {
        let field = [&[1, 0, 8, 0][..], &(u64::MAX / 2 + 1).to_le_bytes()].concat();
        Raw::deflated(name, b"x").with(|raw| {
            raw.size = Some(u32::MAX);
            raw.extra = field.clone();
            raw.local_extra = field;
        })
    };
    let limits = Limits::default().entry_bytes(u64::MAX).ratio(u64::MAX).total_bytes(u64::MAX - 1);
    let rule = Place::new().refuse_with(&raw_zip(&[huge("a"), huge("b"), Raw::graph()]), limits);
    assert_eq!(rule, Rule::TotalTooLarge { found: u64::MAX, limit: u64::MAX - 1 });
}

#[test]
fn expansion_beyond_the_ratio() {
    let bomb = raw_zip(&[Raw::graph(), Raw::deflated("a", &vec![0; 4 << 20])]);
    assert!(matches!(Place::new().refuse(&bomb), Rule::Ratio { size: 4_194_304, limit: 200, .. }));
    // The same run of zeros below the floor harms nobody.
    let small = raw_zip(&[Raw::graph(), Raw::deflated("a", &vec![0; 1 << 20])]);
    assert!(Place::new().open(&small).is_ok());
}

/// A member that declares little and holds much: writing stops at the first byte too many.
#[test]
fn more_bytes_than_declared() {
    let plain = vec![0; 8 << 20];
    let liar = Raw::deflated("a", &plain).with(|raw| raw.size = Some(1000));
    let rule = Place::new().refuse(&raw_zip(&[Raw::graph(), liar]));
    assert_eq!(rule, Rule::ActualSize { declared: 1000, held: Held::More });
}

#[test]
fn fewer_bytes_than_declared() {
    let liar = Raw::deflated("a", &[7; 500]).with(|raw| raw.size = Some(1000));
    let rule = Place::new().refuse(&raw_zip(&[Raw::graph(), liar]));
    assert_eq!(rule, Rule::ActualSize { declared: 1000, held: Held::Exactly(500) });
}

/// Compressed bytes behind the end of the deflate stream.
#[test]
fn leftover_compressed_bytes() {
    let liar = Raw::deflated("a", &[7; 500]).with(|raw| raw.data.extend(b"hidden"));
    let rule = Place::new().refuse(&raw_zip(&[Raw::graph(), liar]));
    assert_eq!(rule, Rule::ActualSize { declared: 500, held: Held::Leftover });
}

/// Many members that share one run of compressed bytes.
#[test]
fn members_that_share_their_bytes() {
    let first = Raw::graph();
    let same = first.clone().with(|raw| {
        raw.name = b"n.onnx".to_vec();
        raw.offset = Some(0);
        raw.phantom = true;
    });
    assert_eq!(Place::new().refuse(&raw_zip(&[first, same])), Rule::Overlap);
}

/// A member whose bytes contain the next member's header and bytes.
#[test]
fn members_inside_of_members() {
    let inner = Raw::graph();
    let inner_bytes = (30 + inner.name.len() + inner.data.len()) as u32;
    let outer = Raw::new("outer", b"").with(|raw| {
        raw.compressed = Some(inner_bytes);
        raw.size = Some(inner_bytes);
    });
    assert_eq!(Place::new().refuse(&raw_zip(&[outer, inner])), Rule::Overlap);
}

/// A directory that claims a few members and an enormous size is not read into memory.
#[test]
fn an_enormous_directory() {
    let zip = support::raw_zip_with(&[Raw::graph()], 1, i32::MAX - 100, b"");
    assert!(matches!(Place::new().refuse(&zip), Rule::DirectoryTooLarge { .. }));
}

/// Many members, each below the size from which its own ratio counts.
#[test]
fn many_small_bombs() {
    let bombs = |count: usize| -> Vec<Raw> {
        let one = Raw::deflated("", &vec![0; 1 << 20]);
        let named = |index| one.clone().with(|raw| raw.name = format!("{index}").into_bytes());
        [Raw::graph()].into_iter().chain((0..count).map(named)).collect()
    };
    let rule = Place::new().refuse(&raw_zip(&bombs(17)));
    assert!(matches!(rule, Rule::Ratio { size, limit: 200, .. } if size > 17 << 20), "{rule:?}");
    assert!(Place::new().open(&raw_zip(&bombs(15))).is_ok(), "a small archive harms nobody");
    // What does not compress pays for what does.
    let mut members = bombs(17);
    members.push(Raw::new("weights", support::noise(100_000)));
    assert!(Place::new().open(&raw_zip(&members)).is_ok());
}
