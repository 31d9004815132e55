//! D2, W4: a pin decides; without one the first download does, and says so.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use loopback::hub::{self, ARCHIVE, Hub, wanted};
use release_assets::{
    ArchiveRule, Error, HubRelease, NetworkFault, Pin, PinnedMember, Release, Trust, UrlRelease,
};
use support::{Place, release_members, release_zip, zip_of};

struct Case {
    place: Place,
    hub: Hub,
}

impl Case {
    fn new() -> Self {
        Self { place: Place::new(), hub: Hub::new(release_zip()) }
    }

    fn acquire(&self, wanted: &HubRelease) -> Result<Release, Error> {
        self.place.cache().acquire(wanted, &self.hub.server.client().build().unwrap())
    }

    fn url(&self, pin: Option<&Pin>) -> Result<Release, Error> {
        let client = self.hub.server.client().build().unwrap();
        let wanted = UrlRelease::new(self.hub.server.url(ARCHIVE));
        let wanted = pin.map_or(wanted.clone(), |pin| wanted.pin(pin.clone()));
        self.place.cache().acquire_url(&wanted, &client)
    }
}

/// Another archive with the same files but one.
fn other_zip() -> Vec<u8> {
    let mut members = release_members();
    members[3].1 = b"{}".to_vec();
    zip_of(&members)
}

fn broken(result: Result<Release, Error>, expected: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::PinBroken { ref what, .. } if what.starts_with(expected)), "{error:?}");
    assert!(error.to_string().contains("pinned by the tests on 2026-11-30"), "{error}");
}

#[test]
fn the_pinned_release_is_accepted_and_recorded() {
    let case = Case::new();
    let release = case.acquire(&wanted().pin(case.hub.pin())).unwrap();
    assert_eq!(release.trust, Trust::Pinned { by: "the tests".to_owned(), at: "2026-11-30".to_owned() });
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(release.provenance()).unwrap()).unwrap();
    assert_eq!(record["origin"]["pin"], serde_json::to_value(case.hub.pin()).unwrap());
    assert_eq!(record["origin"]["pin"]["licence"], "MIT");
}

#[test]
fn each_part_of_a_pin_is_held() {
    let with = |change: fn(&mut Pin)| {
        let case = Case::new();
        let mut pin = case.hub.pin();
        change(&mut pin);
        case.acquire(&wanted().revision("main").pin(pin))
    };
    let hash = || "0".repeat(64);
    broken(with(|pin| pin.repository = Some("owner/other".to_owned())), "the repository");
    broken(with(|pin| pin.commit = Some("f".repeat(40))), "the commit");
    broken(with(|pin| pin.manifest_sha256 = Some("0".repeat(64))), "the manifest's SHA-256");
    broken(with(|pin| pin.url = Some("https://localhost:1/other.zip".to_owned())), "the address");
    broken(with(|pin| pin.sha256 = "0".repeat(64)), "the SHA-256 of https://localhost");
    let error = with(|pin| pin.size = Some(7)).unwrap_err();
    assert!(matches!(error, Error::Download { fault: NetworkFault::NotTheFile(_), .. }), "{error:?}");
    let error = with(|pin| pin.sha256 = "not a hash".to_owned()).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "pin", .. }), "{error:?}");

    let with_member = |sha256: &str, path: Option<&str>, size: Option<u64>| {
        let case = Case::new();
        let mut pin = case.hub.pin();
        let mut member = PinnedMember::new(sha256);
        (member.path, member.size) = (path.map(str::to_owned), size);
        pin.members.push(member);
        case.acquire(&wanted().pin(pin))
    };
    let metadata = hub::digest(&release_members()[3].1);
    let path = Some("bundle/metadata.json");
    with_member(&metadata, path, Some(38)).unwrap();
    with_member(&metadata, None, None).unwrap();
    broken(with_member(&hash(), path, None), "the file bundle/metadata.json");
    broken(with_member(&metadata, Some("none"), None), "the file none");
    broken(with_member(&hash(), None, None), "a file known by its content alone");
    broken(with_member(&metadata, path, Some(1)), "the file bundle/metadata.json");
}

/// Nothing of another archive stays, and the right one is taken as soon as it is there.
#[test]
fn another_archive_is_refused_and_leaves_nothing() {
    let case = Case::new();
    let pin = case.hub.pin();
    case.hub.world.lock().unwrap().archive = other_zip();
    let mut unsized_pin = pin.clone();
    unsized_pin.size = None;
    broken(case.acquire(&wanted().pin(unsized_pin.clone())), "the SHA-256 of https://localhost");
    let left = case.place.files();
    assert!(
        left.iter()
            .all(|path| path.starts_with("cache/facts-v1/revision")
                || path.starts_with("cache/facts-v1/manifest")),
        "{left:?}"
    );
    case.hub.world.lock().unwrap().archive = release_zip();
    case.acquire(&wanted().pin(unsized_pin)).unwrap();
}

/// Trust on first use: the same address must go on giving the same bytes, until the caller says otherwise, once.
#[test]
fn a_replaced_archive_is_noticed() {
    let case = Case::new();
    let first = case.acquire(&wanted()).unwrap();
    assert_eq!(first.trust, Trust::FirstUse);
    case.hub.world.lock().unwrap().archive = other_zip();
    // As long as the first one is here there is nothing to ask for.
    case.acquire(&wanted()).unwrap();
    std::fs::remove_dir_all(first.root.parent().unwrap()).unwrap();
    let error = case.acquire(&wanted()).unwrap_err();
    let Error::ArchiveReplaced { first: before, found, .. } = &error else { panic!("{error:?}") };
    assert_eq!((before, found), (&first.archive_sha256, &hub::digest(&other_zip())));
    assert!(case.acquire(&wanted()).is_err(), "asking twice is no consent");
    let accepted = case.acquire(&wanted().accept_changed_archive()).unwrap();
    assert_eq!((&accepted.archive_sha256, &accepted.trust), (found, &Trust::FirstUse));
    assert!(matches!(case.acquire(&wanted()).unwrap().trust, Trust::SinceFirstUse { .. }));
    // A pin has the last word.
    let pin = Pin::new(first.archive_sha256, "MIT", "the tests", "2026-11-30");
    broken(case.acquire(&wanted().pin(pin).accept_changed_archive()), "the SHA-256 of https://localhost");
}

/// As at a hub, so at a plain address.
#[test]
fn a_replaced_archive_at_an_address_can_be_accepted() {
    let case = Case::new();
    let client = case.hub.server.client().build().unwrap();
    let wanted = UrlRelease::new(case.hub.server.url(ARCHIVE));
    let first = case.url(None).unwrap();
    case.hub.world.lock().unwrap().archive = other_zip();
    std::fs::remove_dir_all(first.root.parent().unwrap()).unwrap();
    assert!(matches!(case.url(None).unwrap_err(), Error::ArchiveReplaced { .. }));
    let accepted = case.place.cache().acquire_url(&wanted.accept_changed_archive(), &client).unwrap();
    assert_eq!(accepted.archive_sha256, hub::digest(&other_zip()));
    assert!(matches!(case.url(None).unwrap().trust, Trust::SinceFirstUse { .. }));
}

#[test]
fn plain_addresses_are_pinned_or_remembered_alike() {
    let case = Case::new();
    assert_eq!(case.url(None).unwrap().trust, Trust::FirstUse);
    assert!(matches!(case.url(None).unwrap().trust, Trust::SinceFirstUse { .. }));
    let pin = Pin::new(case.hub.archive_sha256(), "MIT", "the tests", "2026-11-30");
    assert!(matches!(case.url(Some(&pin)).unwrap().trust, Trust::Pinned { .. }));
    assert_eq!(case.hub.downloads(), 1);
    let other = Pin::new("0".repeat(64), "MIT", "the tests", "2026-11-30");
    broken(case.url(Some(&other)), "the SHA-256 of https://localhost");
    let client = case.hub.server.client().build().unwrap();
    for url in ["http://localhost/x.zip", "x.zip", "https://u:p@localhost/x.zip"] {
        let error = case.place.cache().acquire_url(&UrlRelease::new(url), &client).unwrap_err();
        assert!(matches!(error, Error::Url { .. }), "{error:?}");
    }
}

/// Reference 10: the numbers of the built-in pin, and that it is applied where it speaks of the commit asked for.
#[test]
fn the_release_of_sam_2_is_pinned() {
    let pin = Pin::sam2();
    assert_eq!(pin.commit.as_deref(), Some("b79dd7131b5409ff0c74d1c2793656305403476c"));
    assert_eq!(pin.sha256, "6c47f7e4eacfad4212d512c434277dfab60d980fea467b4b13d4110baa7f25cf");
    assert_eq!(pin.members.len(), 4);
    let case = Case::new();
    let commit = pin.commit.clone().unwrap();
    let manifest = hub::manifest(&case.hub.server.url(ARCHIVE));
    case.hub.misbehave(move |request, reply| {
        if request.path.starts_with("/api/models/qualcomm/") {
            loopback::server::Reply::ok(format!(r#"{{"sha": "{commit}", "pipeline_tag": null}}"#))
        } else if request.path.starts_with("/qualcomm/") {
            loopback::server::Reply::ok(&manifest)
        } else {
            reply
        }
    });
    // The hub of this test has another manifest at that commit, which is just what a pin is for.
    for wanted in [HubRelease::sam2(), HubRelease::new("qualcomm/Segment-Anything-Model-2").precision("fp16")]
    {
        let error = case.acquire(&wanted).unwrap_err();
        assert!(
            matches!(error, Error::PinBroken { ref what, .. } if what == "the manifest's SHA-256"),
            "{error:?}"
        );
    }
    assert_eq!(case.hub.downloads(), 0);
}

/// A pin is of one asset: another precision, runtime or chipset is not served from it, whatever is in the cache.
#[test]
fn a_pin_is_of_one_asset() {
    let case = Case::new();
    let mut pin = case.hub.pin();
    (pin.precision, pin.runtime) = (Some("float".to_owned()), Some("onnx".to_owned()));
    case.acquire(&wanted().pin(pin.clone())).unwrap();
    let with = |change: fn(HubRelease) -> HubRelease| case.acquire(&change(wanted()).pin(pin.clone()));
    with(|wanted| wanted.precision("fp16")).unwrap();
    broken(with(|wanted| wanted.precision("w8a8")), "the precision");
    broken(with(|wanted| wanted.runtime("tflite")), "the runtime");
    broken(with(|wanted| wanted.chipset("snapdragon-x")), "the chipset");
    // The built-in one likewise, without a network too.
    let offline = case.hub.server.client().offline(true).build().unwrap();
    for wanted in [
        HubRelease::sam2().chipset("x"),
        HubRelease::sam2().precision("w8a16"),
        HubRelease::sam2().runtime("tflite"),
    ] {
        let error = case.place.cache().acquire(&wanted, &offline).unwrap_err();
        assert!(matches!(error, Error::PinBroken { .. }), "{error:?}");
    }
}

/// What is pinned is held at every use, and a pin that says something unknown is none.
#[test]
fn sizes_and_unknown_fields() {
    let case = Case::new();
    case.acquire(&wanted()).unwrap();
    let mut pin = case.hub.pin();
    pin.size = Some(1);
    broken(case.acquire(&wanted().pin(pin.clone())), "the archive");
    let zip = case.place.write("x.zip", &release_zip());
    broken(case.place.cache().import(&zip, Some(&pin)), "the archive");
    let mut text = serde_json::to_value(case.hub.pin()).unwrap();
    text["sha265"] = "x".into();
    assert!(serde_json::from_value::<Pin>(text).is_err());
}

/// Signed addresses are compared in full and shown and recorded without what is secret.
#[test]
fn secrets_of_pinned_addresses_are_not_shown() {
    let case = Case::new();
    let client = case.hub.server.client().build().unwrap();
    let mut pin = Pin::new(case.hub.archive_sha256(), "MIT", "the tests", "2026-11-30");
    pin.url = Some("https://archives.example/x.zip?sig=hunter2".to_owned());
    let error = case
        .place
        .cache()
        .acquire_url(&UrlRelease::new("https://archives.example/x.zip?sig=hunter3").pin(pin.clone()), &client)
        .unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(matches!(error, Error::PinBroken { .. }) && !shown.contains("hunter"), "{shown}");
    let zip = case.place.write("x.zip", &release_zip());
    let release = case.place.cache().import(&zip, Some(&pin)).unwrap();
    let record = std::fs::read_to_string(release.provenance()).unwrap();
    assert!(record.contains("archives.example/x.zip") && !record.contains("hunter"), "{record}");
    assert!(matches!(
        case.place.cache().import(&zip, Some(&pin)).unwrap().outcome,
        release_assets::Outcome::Reused
    ));
    pin.url = Some("https://user:hunter2@archives.example/".to_owned());
    let error = case.place.cache().import(&zip, Some(&pin)).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
}

/// A pin with many members, and addresses with signs of their own, make a record that is read again.
#[test]
fn large_and_odd_pins_are_recorded_and_read() {
    let case = Case::new();
    let zip = case.place.write("x.zip", &release_zip());
    let mut pin = case.hub.pin();
    pin.url = Some("https://archives.example/it's/\u{e4}.zip".to_owned());
    pin.members = vec![PinnedMember::new(hub::digest(&release_members()[3].1)); 1500];
    for expected in [release_assets::Outcome::Extracted, release_assets::Outcome::Reused] {
        assert_eq!(case.place.cache().import(&zip, Some(&pin)).unwrap().outcome, expected);
    }
    let found = case.place.cache().verify().unwrap();
    assert!(found.iter().all(|checked| checked.damage.is_empty()), "{found:?}");
}

/// Without a revision, the pinned commit is what is asked for: a branch that moves on does not matter.
#[test]
fn a_pinned_commit_is_the_default_revision() {
    let case = Case::new();
    let pin = case.hub.pin();
    case.hub.misbehave(|request, reply| match request.path.as_str() {
        "/api/models/owner/Model-1" => {
            loopback::server::Reply::ok(format!(r#"{{"sha": "{}"}}"#, "f".repeat(40)))
        }
        _ => reply,
    });
    let release = case.acquire(&wanted().pin(pin.clone())).unwrap();
    assert_eq!(release.commit, pin.commit);
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(release.provenance()).unwrap()).unwrap();
    assert_eq!(record["requested_revision"], serde_json::Value::Null, "what was asked for");
    // Settled, as a commit that is asked for by name.
    let before = case.hub.server.requests().len();
    case.acquire(&wanted().pin(pin.clone())).unwrap();
    assert_eq!(case.hub.server.requests().len(), before);
    let mut no_commit = pin;
    for form in ["main", "", "0123456789ABCDEF0123456789ABCDEF01234567"] {
        no_commit.commit = Some(form.to_owned());
        let error = case.acquire(&wanted().pin(no_commit.clone())).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "pin", .. }), "{error:?}");
    }
}

/// A page of an error, sent with a good status, is no archive that could be accepted in the place of the first.
#[test]
fn what_is_no_archive_is_not_offered_for_acceptance() {
    let case = Case::new();
    let first = case.acquire(&wanted()).unwrap();
    std::fs::remove_dir_all(first.root.parent().unwrap()).unwrap();
    case.hub.world.lock().unwrap().archive = br#"{"error": "try later"}"#.to_vec();
    for wanted in [wanted(), wanted().accept_changed_archive()] {
        let error = case.acquire(&wanted).unwrap_err();
        assert!(matches!(error, Error::Archive { rule: ArchiveRule::NotZip, .. }), "{error:?}");
        assert!(error.to_string().contains(ARCHIVE), "{error}");
    }
}

/// What stands behind a `#` is never sent: it makes no other address.
#[test]
fn a_fragment_is_no_part_of_an_address() {
    let case = Case::new();
    let client = case.hub.server.client().build().unwrap();
    let acquire = |fragment: &str| {
        let url = case.hub.server.url(ARCHIVE) + fragment;
        case.place.cache().acquire_url(&UrlRelease::new(url), &client)
    };
    let first = acquire("#a").unwrap();
    assert_eq!(first.trust, Trust::FirstUse);
    case.hub.world.lock().unwrap().archive = other_zip();
    std::fs::remove_dir_all(first.root.parent().unwrap()).unwrap();
    for fragment in ["#b", "", "#"] {
        assert!(matches!(acquire(fragment), Err(Error::ArchiveReplaced { .. })), "{fragment}");
    }
    let mut pin = Pin::new(hub::digest(&other_zip()), "MIT", "the tests", "2026-11-30");
    pin.url = Some(case.hub.server.url(ARCHIVE) + "#c");
    case.url(Some(&pin)).unwrap();
}

/// A first use that cannot be understood is none of a first time: who damages it does not decide what comes next.
#[test]
fn a_damaged_first_use_is_not_forgotten() {
    let case = Case::new();
    let first = case.acquire(&wanted()).unwrap();
    let facts = case.place.cache_root().join("facts-v1");
    let name = support::tree(&facts).into_iter().find(|name| name.starts_with("archive-")).unwrap();
    let fact = facts.join(name);
    let good = std::fs::read(&fact).unwrap();
    case.hub.world.lock().unwrap().archive = other_zip();
    let field = |name: &str, value: &str| {
        let mut fact: serde_json::Value = serde_json::from_slice(&good).unwrap();
        fact[name] = value.into();
        fact.to_string().into_bytes()
    };
    for bad in [
        good[..good.len() - 3].to_vec(),
        Vec::new(),
        vec![b' '; 100_000],
        field("sha256", ""),
        field("sha256", "ABCDEF"),
        field("url", "https://other.example/x.zip"),
    ] {
        std::fs::write(&fact, &bad).unwrap();
        for error in [case.acquire(&wanted()).unwrap_err(), case.url(None).unwrap_err()] {
            assert!(matches!(&error, Error::DamagedFact { path, .. } if *path == fact), "{error:?}");
            assert!(error.to_string().contains("accept"), "{error}");
        }
        assert_eq!(std::fs::read(&fact).unwrap(), bad, "nothing is decided");
    }
    assert_eq!(case.hub.downloads(), 1);
    // A pin decides without it; a file that somebody brings with a pin does, too, and replaces nothing.
    let mut pin = Pin::new(&first.archive_sha256, "MIT", "the tests", "2026-11-30");
    pin.url = Some(case.hub.server.url(ARCHIVE));
    case.url(Some(&pin)).unwrap();
    case.place.cache().import(case.place.write("x.zip", &release_zip()), Some(&pin)).unwrap();
    assert!(matches!(case.url(None), Err(Error::DamagedFact { .. })));
    // Nor does what somebody downloads with a pin.
    let mut other = Pin::new(hub::digest(&other_zip()), "MIT", "the tests", "2026-11-30");
    other.url.clone_from(&pin.url);
    assert_eq!(case.url(Some(&other)).unwrap().archive_sha256, other.sha256);
    assert!(matches!(case.url(None), Err(Error::DamagedFact { .. })));
    let accepted = case.acquire(&wanted().accept_changed_archive()).unwrap();
    assert_eq!((accepted.archive_sha256, accepted.trust), (hub::digest(&other_zip()), Trust::FirstUse));
    assert!(matches!(case.acquire(&wanted()).unwrap().trust, Trust::SinceFirstUse { .. }));
}

/// The same for the manifest that a commit was found to have.
#[test]
fn a_damaged_commit_is_not_forgotten() {
    let case = Case::new();
    case.acquire(&wanted()).unwrap();
    let facts = case.place.cache_root().join("facts-v1");
    for name in support::tree(&facts).iter().filter(|name| name.starts_with("revision-")) {
        std::fs::write(facts.join(name), "{").unwrap();
    }
    case.hub.world.lock().unwrap().manifest = hub::manifest(&case.hub.server.other_host(ARCHIVE));
    for wanted in [wanted(), wanted().revision(hub::COMMIT)] {
        let error = case.acquire(&wanted).unwrap_err();
        assert!(matches!(&error, Error::DamagedFact { of, .. } if of.contains(hub::COMMIT)), "{error:?}");
    }
    case.acquire(&wanted().accept_changed_archive()).unwrap();
    case.acquire(&wanted()).unwrap();
}

/// Who accepts a change wants what the address gives now, though the first archive is still here.
#[test]
fn accepting_asks_the_address() {
    let case = Case::new();
    let first = case.acquire(&wanted()).unwrap();
    case.hub.world.lock().unwrap().archive = other_zip();
    let offline = case.hub.server.client().offline(true).build().unwrap();
    let kept = case.place.cache().acquire(&wanted().accept_changed_archive(), &offline).unwrap();
    assert_eq!(kept.archive_sha256, first.archive_sha256, "there is nobody to ask");
    let accepted = case.acquire(&wanted().accept_changed_archive()).unwrap();
    assert_eq!((&accepted.archive_sha256, accepted.trust), (&hub::digest(&other_zip()), Trust::FirstUse));
    assert_eq!(case.acquire(&wanted()).unwrap().archive_sha256, accepted.archive_sha256);
    // The same again: accepted as well, and asked for as well.
    let again = case.acquire(&wanted().accept_changed_archive()).unwrap();
    assert!(matches!(again.trust, Trust::SinceFirstUse { .. }) && again.fetched_bytes > 0, "{again:?}");
}

/// An archive without what is pinned of it is not kept, nor what was unpacked of it.
#[test]
fn an_archive_without_a_pinned_file_leaves_nothing() {
    let case = Case::new();
    let mut pin = case.hub.pin();
    pin.members.push(PinnedMember::new("0".repeat(64)));
    let zip = case.place.write("x.zip", &release_zip());
    broken(case.place.cache().import(&zip, Some(&pin)), "a file known by its content alone");
    broken(case.acquire(&wanted().pin(pin)), "a file known by its content alone");
    let left = case.place.files();
    assert!(left.iter().all(|path| path == "x.zip" || path.starts_with("cache/facts-v1/")), "{left:?}");
}
