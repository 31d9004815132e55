//! W10 to W12: absent, hidden, refused, broken and unreachable are five things; a token goes to its own host alone (D10,
//! D13); a mirror can be named (D4).
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::time::Duration;

use loopback::{
    hub::{ARCHIVE, COMMIT, Hub, wanted},
    server::{Reply, Request, Server, Then},
};
use release_assets::{Client, Error, HubRelease, NetworkFault, UrlRule};
use support::{Place, release_zip};

const MANIFEST: &str = "release_assets.json";

/// The error that `change` leads to.
fn error(change: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) -> Error {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    hub.misbehave(change);
    let error = place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap_err();
    assert_eq!(hub.downloads(), 0);
    assert_eq!(place.files(), [] as [&str; 0]);
    error
}

fn at(path: &'static str, reply: Reply) -> impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static {
    move |request, honest| if request.path.contains(path) { reply.clone() } else { honest }
}

/// The one soft outcome: a repository without a manifest at that very commit.
#[test]
fn a_repository_without_releases() {
    let error = error(at(MANIFEST, Reply::new(404, "").header("x-error-code", "EntryNotFound")));
    assert!(matches!(error, Error::NoReleases { ref commit, .. } if commit == COMMIT), "{error:?}");
}

/// A missing path without the hub's word for it proves nothing, nor does a break in the middle.
#[test]
fn nothing_else_reads_as_absent() {
    let plain = error(at(MANIFEST, Reply::new(404, "nothing here")));
    assert!(matches!(plain, Error::NotFound { .. }), "{plain:?}");
    let cut = error(at(MANIFEST, Reply::ok("{\"precisions\": {}}").then(Then::Cut(3))));
    assert!(matches!(cut, Error::Unreachable { .. }), "{cut:?}");
    let failing = error(at(MANIFEST, Reply::new(500, "")));
    assert!(
        matches!(failing, Error::HubFault { fault: NetworkFault::Status { status: 500 }, .. }),
        "{failing:?}"
    );
}

#[test]
fn a_missing_repository_and_a_missing_revision() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let ask = |wanted: &HubRelease| place.cache().acquire(wanted, &client).unwrap_err();
    let error = ask(&HubRelease::new("owner/other"));
    assert!(matches!(error, Error::NotFound { revision: None, token_sent: false, .. }), "{error:?}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    let error = ask(&wanted().revision("v9"));
    assert!(matches!(error, Error::NotFound { revision: Some(ref r), .. } if r == "v9"), "{error:?}");
}

#[test]
fn refusals_say_what_is_needed() {
    for (status, code, said) in [
        (401, "", "a token is needed"),
        (403, "", "a token is needed"),
        (403, "GatedRepo", "the repository is gated"),
    ] {
        let error = error(at("/api/models", Reply::new(status, "").header("x-error-code", code)));
        assert!(matches!(error, Error::Unauthorised { status: found, .. } if found == status), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
    // What the hub says to strangers of a repository that does not exist.
    let hidden = error(at("/api/models", Reply::new(401, "").header("x-error-code", "RepoNotFound")));
    assert!(matches!(hidden, Error::NotFound { .. }), "{hidden:?}");
}

#[test]
fn answers_that_make_no_sense() {
    for body in ["", "{}", "[]", "<html>", "{\"sha\": 7}", "{\"sha\": \"main\"}", "{\"sha\": \"../../etc\"}"]
    {
        let error = error(at("/api/models", Reply::ok(body)));
        assert!(matches!(error, Error::Hub { .. }), "{body}: {error:?}");
    }
    let other = "f".repeat(40);
    let mixed = error(at(MANIFEST, Reply::ok("{}").header("x-repo-commit", &other)));
    assert!(matches!(mixed, Error::Hub { .. }), "{mixed:?}");
    let huge = error(at(MANIFEST, Reply::ok(vec![b' '; (4 << 20) + 1])));
    assert!(matches!(huge, Error::HubFault { fault: NetworkFault::TooLarge { .. }, .. }), "{huge:?}");
}

/// The token is for the endpoint: not for the archive's host, not for where the endpoint redirects to.
#[test]
fn the_token_stays_with_its_host() {
    let elsewhere = Server::start(|_| |_: &Request| Reply::ok("{}"));
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    // The same server by another name is another host.
    let archive = hub.server.other_host(ARCHIVE);
    hub.world.lock().unwrap().manifest = loopback::hub::manifest(&archive);
    let port = |server: &Server| server.url("").rsplit_once(':').unwrap().1.to_owned();
    let client = hub.server.client().token(Some("hf_secret".to_owned()));
    place.cache().acquire(&wanted(), &client.clone().build().unwrap()).unwrap();
    let mut seen = 0;
    for request in hub.server.requests() {
        let expected = request.host.starts_with("localhost").then_some("Bearer hf_secret");
        assert_eq!(request.header("authorization"), expected, "{}", request.path);
        seen += usize::from(expected.is_some());
    }
    assert_eq!(seen, 2, "info and manifest");

    // Redirects: within the host it stays, to another port or name it does not.
    for (target, keeps) in [
        (hub.server.url("/moved"), true),
        (hub.server.other_host("/moved"), false),
        (elsewhere.url("/moved"), false),
    ] {
        let place = Place::new();
        let to = target.clone();
        hub.misbehave(move |request, reply| match request.path.as_str() {
            path if path.ends_with(MANIFEST) => Reply::redirect(307, &to),
            "/moved" => Reply::ok("{}"),
            _ => reply,
        });
        let roots = format!("{}{}", hub.server.pem(), elsewhere.pem());
        let client = client.clone().root_certificates(roots).build().unwrap();
        let error = place.cache().acquire(&wanted(), &client).unwrap_err();
        assert!(matches!(error, Error::NoAsset { .. }), "{target}: {error:?}");
        let requests =
            if keeps || target.contains("127.0.0.1") { hub.server.requests() } else { elsewhere.requests() };
        let moved = requests.iter().rfind(|request| request.path == "/moved").unwrap();
        assert_eq!(moved.header("authorization").is_some(), keeps, "{target}");
    }
    assert_ne!(port(&elsewhere), port(&hub.server));
}

#[test]
fn settings_of_no_valid_form_are_refused_and_never_shown() {
    let base = || Client::builder().endpoint("https://hub.example").token(None).proxy(None).offline(false);
    let named = |error: Error, expected: &str| {
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert!(matches!(error, Error::Setting { name, .. } if name == expected), "{error:?}");
    };
    for token in ["", "hunter2\r\nx: y", "hunter2 x", "hunter2\u{e9}"] {
        named(base().token(Some(token.to_owned())).build().unwrap_err(), "token");
    }
    named(base().root_certificates("hunter2").build().unwrap_err(), "root certificates");
    named(base().proxy(Some("gopher://user:hunter2@[".to_owned())).build().unwrap_err(), "proxy");
    for endpoint in ["http://hub.example", "hub.example", "https://u:hunter2@hub.example"] {
        let error = base().endpoint(endpoint).build().unwrap_err();
        assert!(matches!(error, Error::Url { .. }) && !format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    let builder = base().token(Some("hunter2".to_owned()));
    let shown = format!("{builder:?} {:?}", builder.clone().build().unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// The hub asks for patience as archives' hosts do.
#[test]
fn the_hub_may_be_busy() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let busy = std::sync::atomic::AtomicUsize::new(0);
    hub.misbehave(move |request, reply| {
        let first = busy.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2;
        if first && request.path.starts_with("/api") { Reply::new(503, "") } else { reply }
    });
    let client = hub.server.client().retries(3, Duration::from_millis(1)).build().unwrap();
    place.cache().acquire(&wanted(), &client).unwrap();
}

/// A commit is nothing but itself: a hub that answers with another one is not believed, now or later.
#[test]
fn another_commit_than_the_one_asked_for() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let other = "f".repeat(40);
    let lie = format!(r#"{{"sha": "{other}"}}"#);
    hub.misbehave(move |request, reply| if request.path.contains("/api/") { Reply::ok(&lie) } else { reply });
    let error = place.cache().acquire(&wanted().revision(COMMIT), &client).unwrap_err();
    assert!(matches!(error, Error::Hub { ref detail, .. } if detail.contains(&other)), "{error:?}");
    assert_eq!(place.files(), [] as [&str; 0]);
    hub.behave();
    let release = place.cache().acquire(&wanted().revision(COMMIT), &client).unwrap();
    assert_eq!(release.commit.as_deref(), Some(COMMIT));
}

/// What stands at a commit does not change; where it seems to, somebody lies.
#[test]
fn another_manifest_at_the_same_commit() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let before = place.cache().acquire(&wanted(), &client).unwrap();
    let elsewhere = hub.server.other_host(ARCHIVE);
    hub.world.lock().unwrap().manifest = loopback::hub::manifest(&elsewhere);
    let error = place.cache().acquire(&wanted(), &client).unwrap_err();
    assert!(
        matches!(error, Error::Hub { ref detail, .. } if detail.contains("which cannot be")),
        "{error:?}"
    );
    // What was remembered stays.
    let offline = hub.server.client().offline(true).build().unwrap();
    assert_eq!(place.cache().acquire(&wanted(), &offline).unwrap().root, before.root);
    place.cache().acquire(&wanted().accept_changed_archive(), &client).unwrap();
}

/// `EntryNotFound` is only believed of the manifest.
#[test]
fn an_entry_that_is_not_the_manifest() {
    let error = error(at("/api/models", Reply::new(404, "").header("x-error-code", "EntryNotFound")));
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

#[test]
fn absurd_times_are_no_times() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub
        .server
        .client()
        .deadline(Duration::MAX)
        .stall_timeout(Duration::MAX)
        .connect_timeout(Duration::MAX);
    let client = client.retries(2, Duration::MAX).build().unwrap();
    place.cache().acquire(&wanted(), &client).unwrap();
}

/// D4: where the hub has nothing any more, a mirror of it can be named; what it says is held to the same rules.
#[test]
fn a_mirror_is_asked_in_the_hubs_place() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let own = hub.server.url("").replace("https://", "");
    hub.misbehave(move |request, reply| match request.path.as_str() {
        ARCHIVE => reply,
        _ if request.host == own => Reply::new(410, "moved"),
        _ => reply,
    });
    let client = hub.server.client().build().unwrap();
    let error = place.cache().acquire(&wanted(), &client).unwrap_err();
    assert!(
        matches!(error, Error::HubFault { fault: NetworkFault::Status { status: 410 }, .. }),
        "{error:?}"
    );
    let mirror = hub.server.client().endpoint(hub.server.other_host("")).build().unwrap();
    let release = place.cache().acquire(&wanted(), &mirror).unwrap();
    assert_eq!(release.archive_sha256, hub.archive_sha256());
}

/// What is remembered has to stay small enough to be read again.
#[test]
fn absurdly_long_answers() {
    let tag = serde_json::json!({"sha": COMMIT, "pipeline_tag": "x".repeat(100_000)});
    let tag = error(at("/api/models", Reply::ok(tag.to_string())));
    assert!(matches!(tag, Error::Hub { ref detail, .. } if detail.contains("100000 bytes")), "{tag:?}");
    let url = loopback::hub::manifest(&format!("https://hub.example/{}.zip", "x".repeat(100_000)));
    let url = error(at(MANIFEST, Reply::ok(url)));
    assert!(matches!(url, Error::Url { rule: UrlRule::TooLong, .. }), "{}", url);
}
