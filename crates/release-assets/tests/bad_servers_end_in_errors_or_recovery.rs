//! D2 to D4, D10, D12, W12: what servers do wrong, each with the error it must end in, or the recovery from it.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::time::{Duration, Instant};

use loopback::{
    hub::{ARCHIVE, Hub, wanted},
    server::{Reply, Then},
};
use release_assets::{Client, Error, NetworkFault, Release, UrlRule};
use support::{Place, release_members, zip_of};

/// Long enough that a transfer can break in the middle of it.
fn large_zip() -> Vec<u8> {
    let noise = support::noise(400_000);
    let mut members = release_members();
    members.push(("bundle/noise.bin", noise));
    zip_of(&members)
}

struct Case {
    place: Place,
    hub: Hub,
    client: Client,
}

impl Case {
    fn new() -> Self {
        let hub = Hub::new(large_zip());
        let client = hub.server.client().build().unwrap();
        Self { place: Place::new(), hub, client }
    }

    fn acquire(&self) -> Result<Release, Error> {
        self.place.cache().acquire(&wanted(), &self.client)
    }

    /// The fault of a download that must fail and leave no archive.
    fn fault(&self) -> NetworkFault {
        let error = self.acquire().unwrap_err();
        let left = self.place.files();
        assert!(left.iter().all(|path| path.starts_with("cache/facts-v1/")), "{left:?}");
        assert!(error.to_string().contains(ARCHIVE), "{error}");
        let Error::Download { fault, .. } = error else { panic!("{error:?}") };
        fault
    }

    fn recovers(&self, downloads: usize) -> Release {
        let release = self.acquire().unwrap();
        assert_eq!(self.hub.downloads(), downloads);
        assert_eq!(release.archive_sha256, self.hub.archive_sha256());
        release
    }
}

/// D4: 4xx are final, and told apart.
#[test]
fn refusals_are_final() {
    for status in [400, 401, 403, 404, 410, 418] {
        let case = Case::new();
        case.hub.misbehave_at_archive(move |_, _, _| Reply::new(status, "no"));
        let fault = case.fault();
        assert!(matches!(fault, NetworkFault::Status { status: found } if found == status), "{fault}");
        assert_eq!(case.hub.downloads(), 1, "{status}");
    }
}

/// D12: what may pass is asked again, a bounded number of times.
#[test]
fn overload_is_waited_for() {
    for status in [408, 429, 500, 502, 503, 504] {
        let case = Case::new();
        case.hub.misbehave_at_archive(move |number, _, reply| match number {
            0 | 1 => Reply::new(status, "later").header("retry-after", "0"),
            _ => reply,
        });
        case.recovers(3);
        let case = Case::new();
        case.hub.misbehave_at_archive(move |_, _, _| Reply::new(status, "never"));
        let fault = case.fault();
        assert!(matches!(fault, NetworkFault::Status { status: found } if found == status), "{fault}");
        assert_eq!(case.hub.downloads(), 4, "one request and three more");
    }
}

/// A transfer that breaks is continued where the server proves that it still has the same file.
#[test]
fn a_broken_transfer_is_continued() {
    let case = Case::new();
    case.hub.misbehave_at_archive(|number, _, reply| match number {
        0 => reply.then(Then::Cut(100_000)),
        1 => reply.then(Then::Cut(150_000)),
        _ => reply,
    });
    let release = case.recovers(3);
    let size = case.hub.world.lock().unwrap().archive.len() as u64;
    assert_eq!(release.fetched_bytes, size, "nothing is fetched twice");
    let requests = case.hub.server.requests();
    let ranges: Vec<_> = requests.iter().filter(|r| r.path == ARCHIVE).map(|r| r.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=100000-"), Some("bytes=250000-")]);
}

/// Without a strong tag, with ranges ignored, or with another file by now: from the start, never a mixture.
#[test]
fn a_transfer_that_cannot_be_continued_starts_again() {
    let without_tag = Case::new();
    without_tag.hub.misbehave_at_archive(|number, request, _| {
        assert_eq!(request.header("range"), None);
        let reply = Reply::ok(large_zip()).header("last-modified", "Mon, 30 Nov 2026 10:00:00 GMT");
        if number == 0 { reply.then(Then::Cut(100_000)) } else { reply }
    });
    assert!(without_tag.recovers(2).fetched_bytes > large_zip().len() as u64);

    let weak_tag = Case::new();
    weak_tag.hub.misbehave_at_archive(|number, request, _| {
        assert_eq!(request.header("range"), None);
        let reply = Reply::ok(large_zip()).header("etag", "W/\"same\"");
        if number == 0 { reply.then(Then::Cut(100_000)) } else { reply }
    });
    weak_tag.recovers(2);

    let ranges_ignored = Case::new();
    ranges_ignored.hub.misbehave_at_archive(|number, _, reply| match number {
        0 => reply.then(Then::Cut(100_000)),
        _ => Reply::ok(large_zip()),
    });
    ranges_ignored.recovers(2);

    // The file is another one by the second request, and a server that does not look at `If-Range` says so.
    let other = zip_of(&release_members());
    for honours_if_range in [true, false] {
        let changed = Case::new();
        let (bytes, world) = (other.clone(), changed.hub.world.clone());
        changed.hub.misbehave_at_archive(move |number, request, reply| {
            match (number, request.range_start()) {
                (0, _) => {
                    let reply = reply.then(Then::Cut(300));
                    world.lock().unwrap().archive.clone_from(&bytes);
                    reply
                }
                (_, Some(start)) if !honours_if_range => {
                    let end = bytes.len();
                    Reply::new(206, &bytes[start..])
                        .header("content-range", &format!("bytes {start}-{}/{end}", end - 1))
                        .header("etag", "\"tag-2\"")
                }
                _ => Reply::file(request, &bytes, "tag-2"),
            }
        });
        changed.acquire().unwrap();
        assert_eq!(changed.hub.archive_sha256(), changed.acquire().unwrap().archive_sha256);
    }
}

/// A 206 that is not what was asked for.
#[test]
fn a_wrong_range_is_not_taken() {
    for range in ["bytes 0-9/10", "bytes 99999-400/401", "bytes 100000-100001/*", "nonsense", ""] {
        let case = Case::new();
        case.hub.misbehave_at_archive(move |number, request, reply| match (number, request.range_start()) {
            (0, _) => reply.then(Then::Cut(100_000)),
            (_, Some(_)) => {
                Reply::new(206, "0123456789").header("content-range", range).header("etag", "\"tag-1\"")
            }
            _ => reply,
        });
        case.recovers(3);
    }
}

#[test]
fn silence_ends_in_an_error() {
    let case = Case::new();
    let client =
        case.hub.server.client().stall_timeout(Duration::from_millis(200)).retries(1, Duration::ZERO);
    let case = Case { client: client.build().unwrap(), ..case };
    case.hub.misbehave_at_archive(|_, _, reply| reply.then(Then::Stall(1000)));
    let fault = case.fault();
    assert!(matches!(fault, NetworkFault::Stalled(_)), "{fault:?}");
    // Before the head too.
    case.hub.misbehave_at_archive(|_, _, reply| reply.delay(Duration::from_secs(3)));
    let fault = case.fault();
    assert!(matches!(fault, NetworkFault::Stalled(_)), "{fault:?}");
    // And silence that passes is survived.
    case.hub.misbehave_at_archive(|number, _, reply| match number {
        0 => reply.then(Then::Stall(1000)),
        _ => reply,
    });
    case.acquire().unwrap();
}

/// A server that keeps sending just enough is ended by the deadline. Of one that fails again and again the last failure
/// is told, once the deadline leaves no time for another attempt.
#[test]
fn the_deadline_holds_over_all_attempts() {
    for pause in [Duration::ZERO, Duration::from_millis(300)] {
        let case = Case::new();
        let client = case.hub.server.client().deadline(Duration::from_millis(700)).retries(1000, pause);
        let case = Case { client: client.build().unwrap(), ..case };
        case.hub.misbehave_at_archive(move |_, _, reply| {
            if pause.is_zero() {
                reply.then(Then::Drip(Duration::from_millis(20)))
            } else {
                Reply::new(503, "later")
            }
        });
        let start = Instant::now();
        let fault = case.fault();
        if pause.is_zero() {
            assert!(matches!(fault, NetworkFault::Deadline(_)), "{fault:?}");
        } else {
            assert!(matches!(fault, NetworkFault::Status { status: 503 }), "{fault:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
}

/// Too few bytes, too many, and lies about their number.
#[test]
fn the_length_must_be_true() {
    let size = large_zip().len() as u64;
    let few = Case::new();
    few.hub.misbehave_at_archive(move |_, _, _| Reply::ok(large_zip()).length(size + 10));
    let fault = few.fault();
    assert!(
        matches!(fault, NetworkFault::Broken(_) | NetworkFault::Length { .. } | NetworkFault::Protocol(_)),
        "{fault:?}"
    );
    assert_eq!(few.hub.downloads(), 4);
    // More than announced: HTTP ends the file at the announced length, so what is left is a torn archive.
    let many = Case::new();
    many.hub.misbehave_at_archive(move |_, _, _| Reply::ok(large_zip()).length(size - 10));
    let error = many.acquire().unwrap_err();
    assert!(matches!(error, Error::Archive { .. }), "{error:?}");
    assert!(error.to_string().contains(ARCHIVE), "{error}");
    // Without an announced length the archive's own end decides.
    let chunked = Case::new();
    chunked.hub.misbehave_at_archive(|_, _, _| Reply::ok(large_zip()).chunked());
    chunked.recovers(1);
    let torn = Case::new();
    torn.hub.misbehave_at_archive(|_, _, _| Reply::ok(large_zip()).chunked().then(Then::Cut(100_000)));
    let fault = torn.fault();
    assert!(matches!(fault, NetworkFault::Broken(_) | NetworkFault::Protocol(_)), "{fault:?}");
}

#[test]
fn the_size_is_capped_before_and_while_it_comes() {
    for chunked in [false, true] {
        let case = Case::new();
        let client = case.hub.server.client().download_bytes(100_000).build().unwrap();
        let case = Case { client, ..case };
        case.hub.misbehave_at_archive(move |_, _, reply| if chunked { reply.chunked() } else { reply });
        let fault = case.fault();
        assert!(matches!(fault, NetworkFault::TooLarge { limit: 100_000 }), "{fault}");
        assert_eq!(case.hub.downloads(), 1);
    }
}

/// X6, D3: what is sent in place of a file is named.
#[test]
fn what_is_no_archive_is_named() {
    for (body, said) in [
        ("<!DOCTYPE html><title>Log in</title>", "a web page"),
        ("\u{feff}  <html><body>proxy</body></html>", "a web page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a Git LFS pointer"),
        ("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "an XML document"),
    ] {
        let case = Case::new();
        case.hub
            .misbehave_at_archive(move |_, _, _| Reply::ok(body).header("content-type", "application/zip"));
        let fault = case.fault();
        assert!(matches!(fault, NetworkFault::NotTheFile(what) if what.starts_with(said)), "{fault}");
        assert_eq!(case.hub.downloads(), 1);
    }
    let case = Case::new();
    case.hub.misbehave_at_archive(|_, _, reply| reply.header("content-encoding", "gzip"));
    assert!(matches!(case.fault(), NetworkFault::NotTheFile(_)));
    let case = Case::new();
    case.hub.misbehave_at_archive(|_, _, _| Reply::ok("just text"));
    let error = case.acquire().unwrap_err();
    assert!(matches!(error, Error::Archive { .. }), "{error:?}");
}

/// Redirects are followed over HTTPS alone, a bounded number of times.
#[test]
fn redirects_keep_to_https() {
    for status in [301, 302, 303, 307, 308] {
        let case = Case::new();
        case.hub.misbehave(move |request, reply| match request.path.as_str() {
            ARCHIVE => Reply::redirect(status, "../elsewhere/file.zip?signature=secret"),
            path if path.starts_with("/elsewhere/file.zip") => Reply::ok(large_zip()),
            _ => reply,
        });
        assert_eq!(case.acquire().unwrap().archive_sha256, case.hub.archive_sha256());
    }
    for (location, expected) in [
        ("http://localhost:1/file.zip", UrlRule::NotHttps),
        ("ftp://localhost/file.zip", UrlRule::NotHttps),
        ("file:///etc/hostname", UrlRule::NotHttps),
        ("https://user:secret@localhost/file.zip", UrlRule::Credentials),
        (ARCHIVE, UrlRule::TooManyRedirects),
    ] {
        let case = Case::new();
        case.hub.misbehave_at_archive(move |_, _, _| Reply::redirect(302, location));
        let error = case.acquire().unwrap_err();
        assert!(matches!(error, Error::Url { rule, .. } if rule == expected), "{location}: {error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let case = Case::new();
    case.hub.misbehave_at_archive(|_, _, _| Reply::new(302, ""));
    assert!(matches!(case.acquire().unwrap_err(), Error::Url { rule: UrlRule::NoDestination, .. }));
}

/// D5: a server whose certificate is not trusted, and one that is not there.
#[test]
fn no_trust_and_no_server_are_told_apart() {
    let (case, other) = (Case::new(), Hub::new(large_zip()));
    let stranger = case.hub.server.client().endpoint(other.server.url("")).retries(0, Duration::ZERO);
    let error = case.place.cache().acquire(&wanted(), &stranger.build().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { fault: NetworkFault::Tls(_), .. }), "{error:?}");
    assert_eq!(other.server.requests().len(), 0);
    let nobody = case.hub.server.client().endpoint("https://localhost:1").retries(0, Duration::ZERO);
    let error = case.place.cache().acquire(&wanted(), &nobody.build().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { fault: NetworkFault::Connect(_), .. }), "{error:?}");
}

/// A continued transfer has its length from the first answer, whether or not the second one announces it.
#[test]
fn a_short_rest_without_a_length_is_noticed() {
    let case = Case::new();
    case.hub.misbehave_at_archive(|number, request, reply| match (number, request.range_start()) {
        (0, _) => reply.then(Then::Cut(100_000)),
        (1, Some(start)) => {
            let bytes = large_zip();
            let end = bytes.len();
            Reply::new(206, &bytes[start..end - 10])
                .header("content-range", &format!("bytes {start}-{}/{end}", end - 1))
                .header("etag", "\"tag-1\"")
                .chunked()
        }
        _ => reply,
    });
    case.recovers(3);
}
