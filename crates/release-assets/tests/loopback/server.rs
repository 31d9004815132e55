//! An HTTPS server on loopback that plays the hub and the archive's host, well or badly. It ends with its value, and
//! every wait in it is bounded.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use release_assets::{Client, ClientBuilder};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer},
};

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) host: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The first byte of a `bytes=N-` range.
    pub(crate) fn range_start(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What happens after the body's first bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Then {
    /// All of it is sent.
    Complete,
    /// After so many bytes nothing more comes, for as long as the client waits.
    Stall(usize),
    /// After so many bytes the connection is cut.
    Cut(usize),
    /// A byte comes each time, so that there is never silence.
    Drip(Duration),
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The announced length; none for the truth.
    length: Option<u64>,
    /// In pieces of unannounced total, rather than with a length.
    chunked: bool,
    then: Then,
    /// Time before the first byte.
    delay: Duration,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.as_ref().to_vec(),
            length: None,
            chunked: false,
            then: Then::Complete,
            delay: Duration::ZERO,
        }
    }

    pub(crate) fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, body)
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, "").header("location", location)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    pub(crate) fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    pub(crate) fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The file as an honest host gives it: whole, or the rest from where a range starts if the tag still fits.
    pub(crate) fn file(request: &Request, bytes: &[u8], tag: &str) -> Self {
        let quoted = format!("\"{tag}\"");
        let same = request.header("if-range").is_none_or(|wanted| wanted == quoted);
        match request.range_start().filter(|start| same && *start < bytes.len()) {
            Some(start) => Self::new(206, &bytes[start..])
                .header("content-range", &format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len())),
            None => Self::ok(bytes),
        }
        .header("etag", &quoted)
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

pub(crate) struct Server {
    port: u16,
    pem: String,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server; the handler is made with its address, `https://localhost:PORT`.
    pub(crate) fn start<H>(make: impl FnOnce(&str) -> H) -> Self
    where
        H: Fn(&Request) -> Reply + Send + Sync + 'static,
    {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let chain = vec![CertificateDer::from(certified.cert.der().to_vec())];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let handler: Arc<Handler> = Arc::new(make(&format!("https://localhost:{port}")));
        let (requests, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let listener = {
            let (requests, stop, config) = (requests.clone(), stop.clone(), Arc::new(config));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    match socket.accept() {
                        Ok((stream, _)) => {
                            let (config, handler) = (config.clone(), handler.clone());
                            let (requests, stop) = (requests.clone(), stop.clone());
                            thread::spawn(move || serve(stream, config, &*handler, &requests, &stop));
                        }
                        Err(_) => thread::sleep(Duration::from_millis(2)),
                    }
                }
            })
        };
        Self { port, pem: certified.cert.pem(), requests, stop, listener: Some(listener) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// The same server under another name: another host for the client.
    pub(crate) fn other_host(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A client of this server that waits and retries for a short time only, and reads nothing of the environment.
    pub(crate) fn client(&self) -> ClientBuilder {
        Client::builder()
            .endpoint(self.url(""))
            .token(None)
            .offline(false)
            .proxy(None)
            .root_certificates(self.pem.as_bytes())
            .connect_timeout(Duration::from_secs(5))
            .stall_timeout(Duration::from_secs(5))
            .deadline(Duration::from_mins(1))
            .retries(3, Duration::from_millis(5))
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How often something below this path was asked for.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path.starts_with(path)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    handler: &Handler,
    requests: &Mutex<Vec<Request>>,
    stop: &AtomicBool,
) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let Some(request) = read_request(&mut stream) else { return };
    requests.lock().unwrap().push(request.clone());
    let reply = handler(&request);
    thread::sleep(reply.delay);
    // Whatever the client does with it, it is none of the server's business: errors end the exchange.
    let _ = answer(&mut stream, &reply, stop);
}

fn read_request(stream: &mut impl Read) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
        if head.len() > 1 << 14 {
            return None;
        }
    }
    let text = String::from_utf8(head).ok()?;
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let host = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case("host"))?.1.clone();
    Some(Request { path, host, headers })
}

fn answer<S: Read + Write>(stream: &mut S, reply: &Reply, stop: &AtomicBool) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Reply\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&[name, ": ", value, "\r\n"].concat());
    }
    if reply.chunked {
        head += "transfer-encoding: chunked\r\n\r\n";
    } else {
        let length = reply.length.unwrap_or(reply.body.len() as u64).to_string();
        head.push_str(&["content-length: ", &length, "\r\n\r\n"].concat());
    }
    stream.write_all(head.as_bytes())?;
    let sent = match reply.then {
        Then::Complete => reply.body.len(),
        Then::Stall(bytes) | Then::Cut(bytes) => bytes.min(reply.body.len()),
        Then::Drip(_) => 0,
    };
    for piece in reply.body[..sent].chunks(1 << 14) {
        if reply.chunked {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        } else {
            stream.write_all(piece)?;
        }
    }
    if reply.chunked && reply.then == Then::Complete {
        stream.write_all(b"0\r\n\r\n")?;
    }
    stream.flush()?;
    if let Then::Drip(pause) = reply.then {
        for byte in &reply.body {
            stream.write_all(&[*byte])?;
            stream.flush()?;
            thread::sleep(pause);
        }
    }
    if matches!(reply.then, Then::Stall(_)) {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}
