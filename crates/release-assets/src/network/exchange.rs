//! One request and its answer, carried by a thread of its own, so that waiting can be ended at any time.

use std::{
    io::Read,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use ureq::{
    Agent, Timeout,
    http::{HeaderMap, Response},
};

use super::{Address, client::Settings};
use crate::{Error, NetworkFault, hashing::BLOCK};

/// How often a waiting call looks whether it was cancelled.
const TICK: Duration = Duration::from_millis(100);
/// Blocks that may wait to be written.
const AHEAD: usize = 4;

enum Event {
    Head(u16, HeaderMap),
    Block(Vec<u8>),
    End,
    Failed(ureq::Error),
}

/// An answer whose head has come; the body is taken block by block.
pub(super) struct Exchange {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    line: Line,
}

/// Ends an exchange: the caller cancelled, or the network failed.
pub(super) enum Ended {
    Caller(Error),
    Network(NetworkFault),
}

impl From<NetworkFault> for Ended {
    fn from(fault: NetworkFault) -> Self {
        Self::Network(fault)
    }
}

/// Called while waiting; an error ends the exchange.
pub(super) type Tick<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

struct Line {
    events: Receiver<Event>,
    agent: Agent,
    stall: Duration,
    until: Until,
    quiet: Duration,
}

/// When a request ends, with all its retries.
#[derive(Clone, Copy)]
pub(super) struct Until {
    pub(super) at: Instant,
    /// How long that was from its start.
    after: Duration,
}

impl Until {
    /// What it means to reach it.
    pub(super) fn fault(self) -> NetworkFault {
        NetworkFault::Deadline(self.after)
    }

    pub(super) fn after(time: Duration) -> Self {
        Self { at: Instant::now() + time, after: time }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Wakes the thread where it waits for the server; it holds nothing but its connection.
        self.agent.clone().shutdown();
    }
}

impl Exchange {
    /// Sends a GET and waits for the head of the answer. `until` ends the whole exchange.
    pub(super) fn start(
        settings: &Settings,
        address: &Address,
        headers: Vec<(&'static str, String)>,
        until: Until,
        tick: Tick<'_>,
    ) -> Result<Self, Ended> {
        let agent = Agent::new_with_config(settings.config.clone());
        let (sender, events) = sync_channel(AHEAD);
        let (carrier, url) = (agent.clone(), address.secret_text().to_owned());
        thread::Builder::new()
            .name("release-assets".to_owned())
            .spawn(move || carry(&carrier, &url, headers, &sender))
            .map_err(NetworkFault::Broken)?;
        let line = Line {
            events,
            agent,
            stall: settings.stall_timeout,
            until,
            quiet: settings.connect_timeout.max(settings.stall_timeout) * 2 + TICK,
        };
        match line.next(tick)? {
            Event::Head(status, headers) => Ok(Self { status, headers, line }),
            // The thread sends the head first or fails.
            _ => Err(NetworkFault::Protocol("no head".to_owned()).into()),
        }
    }

    /// The next bytes of the body; none at its end.
    pub(super) fn block(&mut self, tick: Tick<'_>) -> Result<Option<Vec<u8>>, Ended> {
        match self.line.next(tick)? {
            Event::Block(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The announced length of the body.
    pub(super) fn length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }
}

impl Line {
    fn next(&self, tick: Tick<'_>) -> Result<Event, Ended> {
        // The thread has timeouts of its own; this one holds where they cannot, in a name's resolution say.
        let quiet = self.quiet;
        let since = Instant::now();
        loop {
            tick().map_err(Ended::Caller)?;
            let now = Instant::now();
            if now >= self.until.at {
                return Err(self.until.fault().into());
            }
            if now.duration_since(since) > quiet {
                return Err(NetworkFault::Stalled(self.stall).into());
            }
            match self.events.recv_timeout(TICK.min(self.until.at - now)) {
                Ok(Event::Failed(error)) => return Err(self.fault(error).into()),
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(NetworkFault::Protocol("the transfer ended without a word".to_owned()).into());
                }
            }
        }
    }

    fn fault(&self, error: ureq::Error) -> NetworkFault {
        use ureq::Error as U;
        let error = match error {
            // ureq hands its own errors through `Read` in this wrapping.
            U::Io(io)
                if io.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<ureq::Error>) =>
            {
                match io.into_inner().map(<dyn std::error::Error + Send + Sync>::downcast::<ureq::Error>) {
                    Some(Ok(inner)) => *inner,
                    _ => return NetworkFault::Protocol("an unknown fault".to_owned()),
                }
            }
            other => other,
        };
        match error {
            U::HostNotFound => NetworkFault::HostNotFound,
            U::Timeout(Timeout::Resolve | Timeout::Connect) => NetworkFault::Connect("timed out".to_owned()),
            U::Timeout(Timeout::Global | Timeout::PerCall) => self.until.fault(),
            U::Timeout(_) => NetworkFault::Stalled(self.stall),
            U::ConnectionFailed | U::ConnectProxyFailed(_) | U::InvalidProxyUrl => {
                NetworkFault::Connect(error.to_string())
            }
            U::Tls(_) | U::TlsRequired | U::Pem(_) | U::Rustls(_) => NetworkFault::Tls(error.to_string()),
            U::Io(io) => from_io(io),
            other => NetworkFault::Protocol(other.to_string()),
        }
    }
}

/// An i/o error of the connection: refused, broken, or one of the secure layer inside of it.
fn from_io(error: std::io::Error) -> NetworkFault {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused
        | K::HostUnreachable
        | K::NetworkUnreachable
        | K::NetworkDown
        | K::AddrNotAvailable => NetworkFault::Connect(error.to_string()),
        // rustls reports refused certificates and broken records this way.
        K::InvalidData => NetworkFault::Tls(error.to_string()),
        // The standard library has no kind for it; these are its words for the resolver's failure.
        _ if error.to_string().starts_with("failed to lookup address") => NetworkFault::HostNotFound,
        _ => NetworkFault::Broken(error),
    }
}

/// The thread's work. Ends as soon as nobody listens.
fn carry(agent: &Agent, url: &str, headers: Vec<(&'static str, String)>, events: &SyncSender<Event>) {
    let mut request = agent.get(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = match request.call() {
        Ok(answer) => answer,
        Err(error) => return drop(events.send(Event::Failed(error))),
    };
    let (parts, body) = Response::into_parts(answer);
    if events.send(Event::Head(parts.status.as_u16(), parts.headers)).is_err() {
        return;
    }
    let mut body = body.into_reader();
    loop {
        let mut block = vec![0; BLOCK];
        let event = match body.read(&mut block) {
            Ok(0) => Event::End,
            Ok(count) => {
                block.truncate(count);
                Event::Block(block)
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Event::Failed(ureq::Error::Io(error)),
        };
        let last = !matches!(event, Event::Block(_));
        if events.send(event).is_err() || last {
            return;
        }
    }
}
