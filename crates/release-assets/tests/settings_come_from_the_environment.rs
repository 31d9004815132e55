//! What the builder does not say comes from the hub's own environment variables and from the proxies' (D5), and what the
//! builder says wins. Each case is a process of its own, with an environment of its own.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod loopback;
mod support;

use std::{
    env,
    ffi::OsStr,
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use loopback::hub::{Hub, wanted};
use release_assets::{Cache, Client};
use support::{Place, release_zip};

const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";
const PEM: &str = "RELEASE_ASSETS_TEST_PEM";

/// Not a test of its own: the body of the child processes, which say what they found.
#[test]
fn child() {
    let Some(what) = env::var_os(CHILD) else { return };
    let root = Cache::default_root().map(|root| root.display().to_string());
    println!("root={}", root.unwrap_or_default());
    let mut builder = Client::builder();
    if let Ok(pem) = env::var(PEM) {
        builder = builder.root_certificates(pem);
    }
    if what == "builder" {
        builder = builder.endpoint("https://own.example").offline(false).token(None).proxy(None);
    }
    let client = match builder.build() {
        Ok(client) => client,
        Err(error) => return println!("error={error}"),
    };
    println!("endpoint={} offline={}", client.endpoint(), client.is_offline());
    if what == "acquire" {
        match Cache::new(Cache::default_root().unwrap()).acquire(&wanted(), &client) {
            Ok(release) => println!("acquired={}", release.root.display()),
            Err(error) => println!("error={error:?}"),
        }
    }
}

/// What a child says, with nothing in its environment but this.
fn say(what: &str, variables: &[(&str, impl AsRef<OsStr>)]) -> String {
    let mut command = support::child();
    command.env_clear().env(CHILD, what);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    String::from_utf8(command.stdout(Stdio::piped()).output().unwrap().stdout).unwrap()
}

#[test]
fn endpoint_offline_and_cache() {
    let said = say("plain", &[("HOME", "/home/someone")]);
    assert!(said.contains("root=/home/someone/.cache/sam-kit\n") || cfg!(not(target_os = "linux")), "{said}");
    assert!(said.contains("endpoint=https://huggingface.co/ offline=false"), "{said}");
    let mirror = ("HF_ENDPOINT", "https://mirror.example/hub");
    assert!(say("plain", &[mirror]).contains("endpoint=https://mirror.example/hub offline=false"));
    assert!(
        say("plain", &[("HF_ENDPOINT", "http://mirror.example")])
            .contains("error=HF_ENDPOINT: http://mirror.example/: only https")
    );
    let said = say("plain", &[("HF_ENDPOINT", "mirror.example")]);
    assert!(said.contains("error=HF_ENDPOINT: mirror.example: it is no absolute URL"), "{said}");
    for (value, expected) in
        [("1", true), ("ON", true), ("yes", true), ("True", true), ("0", false), ("", false)]
    {
        let said = say("plain", &[("HF_HUB_OFFLINE", value)]);
        assert!(said.contains(&format!("offline={expected}")), "{value}: {said}");
    }
    assert!(say("plain", &[("TRANSFORMERS_OFFLINE", "1")]).contains("offline=true"));
    for (variables, root) in [
        (vec![("HF_HOME", "/hf")], "/hf/hub/sam-kit"),
        (vec![("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/cache")], "/cache/sam-kit"),
        (vec![("HF_HUB_CACHE", "/cache"), ("SAM_KIT_CACHE_DIR", "own")], "own"),
        (vec![("HF_HOME", "relative"), ("XDG_CACHE_HOME", "/xdg")], "/xdg/sam-kit"),
    ] {
        let said = say("plain", &variables);
        assert!(
            said.contains(&format!("root={root}\n")) || cfg!(not(target_os = "linux")),
            "{variables:?}: {said}"
        );
    }
    let all = [
        mirror,
        ("HF_HUB_OFFLINE", "1"),
        ("HF_TOKEN", "bad token"),
        ("HTTPS_PROXY", "https://proxy.example"),
    ];
    assert!(say("builder", &all).contains("endpoint=https://own.example/ offline=false"), "the builder wins");
    let token = ("HF_TOKEN", "bad token");
    assert!(say("plain", &[token]).contains("error=token:"), "one that is none is not left out");
    assert!(say("plain", &[token, ("HF_HUB_OFFLINE", "1")]).contains("offline=true"), "nobody needs it");
    for proxy in ["http://[bad", "foo://proxy.example"] {
        let said = say("plain", &[("HTTPS_PROXY", proxy)]);
        assert!(said.contains("error=HTTPS_PROXY: its address"), "{proxy}: {said}");
    }
}

/// The token of the environment, and the one that a login wrote.
#[test]
fn tokens() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let home = place.dir.path().join("hf");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("token"), "hf_login\n").unwrap();
    let (url, cache) = (hub.server.url(""), place.cache_root());
    let common = [
        ("HF_ENDPOINT", url.as_str()),
        (PEM, hub.server.pem()),
        ("SAM_KIT_CACHE_DIR", cache.to_str().unwrap()),
    ];
    let seen = |more: &[(&str, &str)]| {
        let before = hub.server.requests().len();
        let said = say("acquire", &[&common, more].concat());
        assert!(said.contains("acquired="), "{said}");
        hub.server.requests()[before].header("authorization").map(str::to_owned)
    };
    let home = home.to_str().unwrap();
    assert_eq!(seen(&[]), None);
    assert_eq!(seen(&[("HF_TOKEN", "hf_env"), ("HF_HOME", home)]).as_deref(), Some("Bearer hf_env"));
    assert_eq!(seen(&[("HF_HOME", home)]).as_deref(), Some("Bearer hf_login"));
    let elsewhere = place.write("elsewhere", b"hf_path");
    let elsewhere = ("HF_TOKEN_PATH", elsewhere.to_str().unwrap());
    assert_eq!(seen(&[("HF_HOME", home), elsewhere]).as_deref(), Some("Bearer hf_path"));
    assert_eq!(seen(&[("HF_HOME", home), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
}

/// A proxy that only tunnels, and counts. It ends with the test's process.
fn proxy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let counter = counter.clone();
            thread::spawn(move || tunnel(client, &counter));
        }
    });
    (port, count)
}

fn tunnel(mut client: TcpStream, count: &AtomicUsize) {
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).unwrap();
    let Some(target) = text.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()) else { return };
    let Ok(mut server) = TcpStream::connect(target) else { return };
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    count.fetch_add(1, Ordering::Relaxed);
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut up_from, mut up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut up_from, &mut up_to);
        let _ = up_to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

#[test]
fn proxies() {
    let hub = Hub::new(release_zip());
    let (port, tunnels) = proxy();
    let (url, address) = (hub.server.url(""), format!("http://127.0.0.1:{port}"));
    let used = |more: &[(&str, &str)]| {
        let place = Place::new();
        let cache = place.cache_root();
        let common = [
            ("HF_ENDPOINT", url.as_str()),
            (PEM, hub.server.pem()),
            ("SAM_KIT_CACHE_DIR", cache.to_str().unwrap()),
        ];
        let before = tunnels.load(Ordering::Relaxed);
        let said = say("acquire", &[&common, more].concat());
        assert!(said.contains("acquired="), "{said}");
        tunnels.load(Ordering::Relaxed) - before
    };
    assert_eq!(used(&[]), 0);
    assert_eq!(used(&[("HTTPS_PROXY", &address)]), 3, "info, manifest and archive");
    assert_eq!(used(&[("ALL_PROXY", &address)]), 3);
    assert_eq!(used(&[("HTTPS_PROXY", &address), ("NO_PROXY", "localhost")]), 0);
}

/// What is no text is not left out: another hub, a way around the proxy or the network itself would be used in silence.
#[cfg(unix)]
#[test]
fn values_that_are_no_text_are_errors() {
    use std::os::unix::ffi::OsStrExt;

    let odd = OsStr::from_bytes(b"https://hub.example/hunter2\xff");
    let names = ["HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"];
    for name in [&names[..], &["HTTPS_PROXY", "all_proxy", "NO_PROXY"]].concat() {
        let said = say("plain", &[(name, odd)]);
        assert!(said.contains(&format!("error={name}: its value is not UTF-8")), "{name}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
        assert!(say("builder", &[(name, odd)]).contains("endpoint=https://own.example/"), "{name}");
    }
    let place = Place::new();
    let token = place.write("token", b"hunter2\xff");
    let said = say("plain", &[("HF_TOKEN_PATH", token.as_os_str())]);
    assert!(said.contains("error=token:") && !said.contains("hunter2"), "{said}");
}
