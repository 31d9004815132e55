use std::{
    fmt,
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{Error, Result, hashing::locked};

/// How often a process at work shows that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// What the bytes of a progress report are being used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The hub is asked; no bytes are counted.
    Resolve,
    /// The archive comes over the network. Its size is 0 as long as it is unknown.
    Download,
    /// The archive is copied into the cache.
    Import,
    /// The archive is hashed, which tells which cache entry it is.
    HashArchive,
    /// Another thread or process prepares the same entry, or a server asked to wait; no bytes are counted.
    Wait,
    /// Members are written.
    Extract,
    /// The archive is hashed again, to know that it did not change meanwhile.
    RecheckArchive,
    /// An extraction that was there is hashed, or [`Cache::verify`](crate::Cache::verify) unpacks its archive to hold it
    /// against that; the bytes are the files'.
    Verify,
}

type Callback = dyn Fn(Phase, u64, u64) -> ControlFlow<()> + Send + Sync;

/// The caller's callback, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Progress(Option<Arc<Callback>>);

impl Progress {
    pub(crate) fn new(callback: impl Fn(Phase, u64, u64) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    pub(crate) fn report(&self, phase: Phase, done: u64, total: u64) -> Result<()> {
        match self.0.as_ref().map(|callback| callback(phase, done, total)) {
            Some(ControlFlow::Break(())) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// A progress whose reports also show others that this process is at work, once a second at most.
    pub(crate) fn showing_life(&self, show: impl Fn() + Send + Sync + 'static) -> Self {
        let inner = self.clone();
        let last = Mutex::new(Instant::now());
        Self::new(move |phase, done, total| {
            let mut last = locked(&last);
            if last.elapsed() >= SIGN_OF_LIFE {
                *last = Instant::now();
                show();
            }
            drop(last);
            inner.0.as_ref().map_or(ControlFlow::Continue(()), |callback| callback(phase, done, total))
        })
    }

    /// Starts counting one phase.
    pub(crate) fn phase(&self, phase: Phase, total: u64) -> Result<Counter<'_>> {
        self.report(phase, 0, total)?;
        Ok(Counter { progress: self, phase, done: 0, total })
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(..)" } else { "Progress(none)" })
    }
}

/// Bytes done in one phase.
#[derive(Debug)]
pub(crate) struct Counter<'a> {
    progress: &'a Progress,
    phase: Phase,
    done: u64,
    total: u64,
}

impl Counter<'_> {
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.done += bytes as u64;
        self.progress.report(self.phase, self.done, self.total)
    }
}
