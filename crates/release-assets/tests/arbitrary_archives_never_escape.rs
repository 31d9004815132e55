//! Mutated archives never panic and never write outside of the cache; what is accepted is what `zip` reads as
//! well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    fs,
    io::{Cursor, Read},
};

use proptest::prelude::*;
use release_assets::Limits;
use support::{Place, Raw, raw_zip, release_zip, tree};

fn check(bytes: &[u8]) {
    let place = Place::new();
    let path = place.write("release.zip", bytes);
    // Small limits, so that no case takes long.
    let cache = place.cache().limits(Limits::default().total_bytes(1 << 22).entries(64));
    let result = cache.open_archive(path);
    let outside: Vec<String> = tree(place.dir.path())
        .into_iter()
        .filter(|path| !path.starts_with("cache/") && path != "cache")
        .collect();
    assert_eq!(outside, ["release.zip"]);
    let Ok(release) = result else {
        assert_eq!(place.files(), ["release.zip"], "a refused archive left something behind");
        return;
    };
    // The second opinion: a general reader sees the same members with the same bytes.
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut files = 0;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        if member.is_dir() {
            continue;
        }
        files += 1;
        let path = member.enclosed_name().unwrap();
        let mut data = Vec::new();
        member.read_to_end(&mut data).unwrap();
        assert_eq!(fs::read(release.root.join(path)).unwrap(), data);
    }
    assert_eq!(files, release.inventory.len());
    assert_eq!(tree(&release.root).len(), files + 1);
}

fn small_zip() -> Vec<u8> {
    raw_zip(&[Raw::deflated("b/m.onnx", &support::graph()), Raw::new("b/metadata.json", b"{}")])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    /// A few bytes changed anywhere.
    #[test]
    fn changed_bytes(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = small_zip();
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        check(&bytes);
    }

    /// Numbers of headers set to values that matter.
    #[test]
    fn changed_numbers(
        index in any::<prop::sample::Index>(),
        value in prop::sample::select(vec![0u32, 1, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX]),
    ) {
        let mut bytes = release_zip();
        let at = index.index(bytes.len() - 4);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        check(&bytes);
    }

    /// Pieces cut out, doubled or moved.
    #[test]
    fn moved_pieces(
        from in any::<prop::sample::Index>(),
        length in 0usize..60,
        to in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = small_zip();
        let from = from.index(bytes.len());
        let end = (from + length).min(bytes.len());
        let piece: Vec<u8> = bytes[from..end].to_vec();
        if cut {
            bytes.drain(from..end);
        }
        let to = to.index(bytes.len() + 1);
        bytes.splice(to..to, piece);
        check(&bytes);
    }

    /// Names of every kind, as two members beside a graph.
    #[test]
    fn arbitrary_names(
        a in "([./\\\\:A-Za-z \u{0}-\u{1f}é\u{301}ß]|\\PC){0,12}",
        b in "([./\\\\:A-Za-z \u{0}-\u{1f}é\u{301}ß]|\\PC){0,12}",
    ) {
        let named = |name: &str| {
            let data = if name.ends_with(['/', '\\']) { "" } else { "x" };
            Raw::new(name, data).with(|raw| raw.flags = 1 << 11)
        };
        check(&raw_zip(&[named(&a), Raw::graph(), named(&b)]));
    }
}
