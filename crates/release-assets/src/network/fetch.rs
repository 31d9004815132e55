//! Requests with redirects, retries and resumption.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};

use super::{
    Address, Client,
    exchange::{Ended, Exchange, Until},
};
use crate::{Error, NetworkFault, Phase, Result, UrlRule, hashing, progress::Progress};

const MAX_REDIRECTS: usize = 10;
/// For a document of some kilobytes, retries included.
const SMALL_DEADLINE: Duration = Duration::from_mins(2);
const MAX_BACK_OFF: Duration = Duration::from_secs(8);
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// A small answer, in memory.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) error_code: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) body: Vec<u8>,
}

/// A file that came over the network.
#[derive(Debug)]
pub(crate) struct Downloaded {
    pub(crate) size: u64,
    pub(crate) sha256: String,
    /// Bytes that came in all, attempts that failed included.
    pub(crate) fetched: u64,
}

/// One attempt's failure, and how long the server asks to wait.
struct Failed {
    ended: Ended,
    retry_after: Option<Duration>,
}

impl<E: Into<Ended>> From<E> for Failed {
    fn from(ended: E) -> Self {
        Self { ended: ended.into(), retry_after: None }
    }
}

impl Failed {
    fn own(error: Error) -> Self {
        Self { ended: Ended::Caller(error), retry_after: None }
    }
}

/// What is on disk of a download, and what proves that the server still has the same file.
struct Partial<'a> {
    file: &'a mut File,
    path: &'a Path,
    sha256: Sha256,
    received: u64,
    fetched: u64,
    total: Option<u64>,
    /// A strong entity tag. Dates and weak tags prove nothing about bytes.
    validator: Option<String>,
    first: Vec<u8>,
}

impl Client {
    /// A small document of at most `cap` bytes, whatever the status; only transient faults are asked again.
    pub(super) fn small(&self, address: &Address, cap: u64, progress: &Progress) -> Result<Answer, Ended> {
        let until = Until::after(self.settings().deadline.min(SMALL_DEADLINE));
        self.retrying(until, progress, |client| {
            let mut tick = || progress.report(Phase::Resolve, 0, 0);
            let mut exchange = client.open(address, &[], until, &mut tick)?;
            let mut body = Vec::new();
            while let Some(block) = exchange.block(&mut tick)? {
                body.extend(block);
                if body.len() as u64 > cap {
                    return Err(NetworkFault::TooLarge { limit: cap }.into());
                }
            }
            let expected = exchange.length().unwrap_or(body.len() as u64);
            if expected != body.len() as u64 {
                return Err(NetworkFault::Length { received: body.len() as u64, expected }.into());
            }
            transient_status(&exchange)?;
            let text = |name| exchange.header(name).map(str::to_owned);
            let (error_code, commit) = (text("x-error-code"), text("x-repo-commit"));
            Ok(Answer { status: exchange.status, error_code, commit, body })
        })
    }

    /// Downloads into a new, empty file. `expected` is the size where it is known beforehand.
    pub(crate) fn download(
        &self,
        address: &Address,
        expected: Option<u64>,
        file: &mut File,
        path: &Path,
        progress: &Progress,
    ) -> Result<Downloaded> {
        let until = Until::after(self.settings().deadline);
        let mut partial = Partial {
            file,
            path,
            sha256: Sha256::new(),
            received: 0,
            fetched: 0,
            total: expected,
            validator: None,
            first: Vec::new(),
        };
        let done = self.retrying(until, progress, |client| {
            client.attempt(address, expected, &mut partial, until, progress)
        });
        let Partial { received, fetched, total, .. } = partial;
        match done {
            Ok(()) => {
                partial.file.sync_all().map_err(|e| Error::writing(path, e, received))?;
                let sha256 = hashing::hex(&partial.sha256.finalize());
                Ok(Downloaded { size: received, sha256, fetched })
            }
            Err(Ended::Caller(error)) => Err(error),
            Err(Ended::Network(fault)) => {
                Err(Error::Download { url: address.to_string(), received, total, fault })
            }
        }
    }

    fn attempt(
        &self,
        address: &Address,
        expected: Option<u64>,
        partial: &mut Partial<'_>,
        until: Until,
        progress: &Progress,
    ) -> Result<(), Failed> {
        let mut headers = Vec::new();
        if let Some(validator) = partial.validator.clone().filter(|_| partial.received > 0) {
            headers.push(("range", format!("bytes={}-", partial.received)));
            // A server that has another file by now answers with the whole of it.
            headers.push(("if-range", validator));
        }
        let (done, total) = (partial.received, partial.total.unwrap_or(0));
        let mut tick = || progress.report(Phase::Download, done, total);
        let mut exchange = self.open(address, &headers, until, &mut tick)?;
        transient_status(&exchange)?;
        let asked = exchange.status == 206 && !headers.is_empty();
        let continued = asked.then(|| partial.continued(&exchange)).flatten();
        match exchange.status {
            200 => partial.restart().map_err(Failed::own)?,
            206 if continued.is_some() => {}
            206 | 416 => {
                // Not what was asked for: begin again, with nothing left to continue from.
                partial.restart().map_err(Failed::own)?;
                let fault = NetworkFault::Protocol("the server gave another range".to_owned());
                return Err(Failed { ended: fault.into(), retry_after: Some(Duration::ZERO) });
            }
            status => return Err(NetworkFault::Status { status }.into()),
        }
        if exchange.header("content-encoding").is_some_and(|e| !e.eq_ignore_ascii_case("identity")) {
            return Err(NetworkFault::NotTheFile("a compressed form that was not asked for").into());
        }
        let announced = continued.or_else(|| exchange.length().or(expected));
        partial.total = announced;
        if continued.is_none() {
            let tag = exchange.header("etag").filter(|tag| tag.starts_with('"'));
            partial.validator = tag.map(str::to_owned);
        }
        if let (Some(expected), Some(announced)) = (expected, announced)
            && expected != announced
        {
            return Err(NetworkFault::NotTheFile("a file of another size than the pinned one").into());
        }
        let limit = self.settings().download_bytes;
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(NetworkFault::TooLarge { limit }.into());
        }
        loop {
            let (done, total) = (partial.received, partial.total.unwrap_or(0));
            let mut tick = || progress.report(Phase::Download, done, total);
            let Some(block) = exchange.block(&mut tick)? else { break };
            let received = partial.received + block.len() as u64;
            if let Some(expected) = announced.filter(|bytes| received > *bytes) {
                return Err(NetworkFault::Length { received, expected }.into());
            }
            if received > limit {
                return Err(NetworkFault::TooLarge { limit }.into());
            }
            partial.append(&block).map_err(Failed::own)?;
        }
        let wanted = announced.or(expected).unwrap_or(partial.received);
        if partial.received != wanted {
            return Err(NetworkFault::Length { received: partial.received, expected: wanted }.into());
        }
        partial.sniff().map_or(Ok(()), |what| Err(NetworkFault::NotTheFile(what).into()))
    }

    /// Follows redirects by hand: every step is HTTPS, and the token goes to the endpoint's origin alone.
    fn open(
        &self,
        address: &Address,
        headers: &[(&'static str, String)],
        until: Until,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Exchange, Failed> {
        let settings = self.settings();
        let mut address = address.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = headers.to_vec();
            if let Some(token) = settings.token.as_ref().filter(|_| address.same_origin(&settings.endpoint)) {
                headers.push(("authorization", format!("Bearer {token}")));
            }
            let exchange = Exchange::start(settings, &address, headers, until, tick)?;
            if !matches!(exchange.status, 301 | 302 | 303 | 307 | 308) {
                return Ok(exchange);
            }
            address = address.follow(exchange.header("location")).map_err(Failed::own)?;
        }
        Err(Failed::own(Error::Url { url: address.to_string(), rule: UrlRule::TooManyRedirects }))
    }

    /// Runs attempts until one succeeds, fails for good, or enough were made.
    fn retrying<T>(
        &self,
        until: Until,
        progress: &Progress,
        mut attempt: impl FnMut(&Self) -> Result<T, Failed>,
    ) -> Result<T, Ended> {
        let settings = self.settings();
        let mut back_off = settings.back_off;
        let mut left = settings.retries;
        loop {
            let Failed { ended, retry_after } = match attempt(self) {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            let again = match &ended {
                Ended::Caller(_) => false,
                Ended::Network(fault) => fault.is_transient() || retry_after.is_some(),
            };
            let pause = retry_after.unwrap_or(back_off);
            if !again || left == 0 {
                return Err(ended);
            }
            let now = Instant::now();
            if now + pause >= until.at {
                // As long as there is time left, what failed last is the reason, and not the deadline.
                return Err(if now >= until.at { until.fault().into() } else { ended });
            }
            left -= 1;
            back_off = (back_off * 2).min(MAX_BACK_OFF);
            let wake = Instant::now() + pause;
            while Instant::now() < wake {
                progress.report(Phase::Wait, 0, 0).map_err(Ended::Caller)?;
                thread::sleep(Duration::from_millis(50).min(wake.saturating_duration_since(Instant::now())));
            }
        }
    }
}

/// An error status that may pass, with the time the server asks to wait (in seconds; its other form, a date,
/// is not used by the hosts this is for).
fn transient_status(exchange: &Exchange) -> Result<(), Failed> {
    let fault = NetworkFault::Status { status: exchange.status };
    if !fault.is_transient() {
        return Ok(());
    }
    let asked = exchange.header("retry-after").and_then(|text| text.trim().parse().ok());
    let retry_after = asked.map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    Err(Failed { ended: fault.into(), retry_after })
}

impl Partial<'_> {
    /// The whole file's length, if a 206 continues exactly what is here: same tag, from the next byte, same total.
    fn continued(&self, exchange: &Exchange) -> Option<u64> {
        let same = exchange.header("etag").is_some_and(|tag| Some(tag) == self.validator.as_deref());
        let (from, to, total) = exchange.header("content-range").and_then(parse_content_range)?;
        let fits = from == self.received
            && self.total.is_none_or(|known| known == total)
            && to.checked_add(1) == Some(total)
            && exchange.length().is_none_or(|length| from.checked_add(length) == Some(total));
        (same && fits).then_some(total)
    }

    fn restart(&mut self) -> Result<()> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|e| Error::writing(self.path, e, 0))?;
        self.sha256 = Sha256::new();
        self.received = 0;
        self.validator = None;
        self.first.clear();
        Ok(())
    }

    fn append(&mut self, block: &[u8]) -> Result<()> {
        let needed = self.total.unwrap_or(self.received + block.len() as u64);
        self.file.write_all(block).map_err(|e| Error::writing(self.path, e, needed))?;
        self.sha256.update(block);
        self.received += block.len() as u64;
        self.fetched += block.len() as u64;
        let room = FIRST_BYTES.saturating_sub(self.first.len()).min(block.len());
        self.first.extend(&block[..room]);
        Ok(())
    }

    /// What is often sent, with a good status, in place of a file.
    fn sniff(&self) -> Option<&'static str> {
        let start =
            String::from_utf8_lossy(&self.first).trim_start_matches('\u{feff}').trim_start().to_lowercase();
        if start.starts_with("<!doctype html") || start.starts_with("<html") {
            Some("a web page, perhaps a login or a proxy's notice")
        } else if start.starts_with("version https://git-lfs") {
            Some("a Git LFS pointer in place of the file")
        } else if start.starts_with("<?xml") {
            Some("an XML document, perhaps an error of the storage host")
        } else {
            None
        }
    }
}

const FIRST_BYTES: usize = 64;

/// `bytes FROM-TO/TOTAL`
fn parse_content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, to) = range.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?, total.parse().ok()?))
}
