//! An advisory lock that saves work and decides nothing.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{Result, progress::Progress};

/// Held while a cache entry is prepared, so that others wait for it instead of preparing their own. The
/// operating system releases it with the process; where locks are not supported there simply is none.
#[derive(Debug)]
pub(crate) struct Lock {
    held: Option<(Arc<File>, PathBuf)>,
}

impl Lock {
    /// Takes the lock, or goes on without it once its holder has shown no sign of life for `patience`. `tick`
    /// is called while waiting.
    pub(crate) fn acquire(
        path: &Path,
        patience: Duration,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let none = Self { held: None };
        // Opening a pipe would wait for its other end.
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(none);
        }
        let Ok(file) = OpenOptions::new().write(true).create(true).truncate(false).open(path) else {
            return Ok(none);
        };
        let touched = || file.metadata().and_then(|metadata| metadata.modified()).ok();
        let (mut since, mut last) = (Instant::now(), touched());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { held: Some((Arc::new(file), path.to_owned())) }),
                Err(TryLockError::WouldBlock) if since.elapsed() < patience => {
                    tick()?;
                    std::thread::sleep(Duration::from_millis(10));
                    let now = touched();
                    if now != last {
                        (since, last) = (Instant::now(), now);
                    }
                }
                Err(_) => return Ok(none),
            }
        }
    }

    /// A progress whose reports show waiting processes that this one is alive.
    pub(crate) fn watched(&self, progress: &Progress) -> Progress {
        let Some((file, _)) = &self.held else { return progress.clone() };
        let file = file.clone();
        // Best effort: without it others merely do the same work.
        progress.showing_life(move || drop(file.set_modified(SystemTime::now())))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((file, path)) = self.held.take() {
            // Removing first leaves no litter. Who waits on the old file and who makes a new one may then run
            // at once, which costs work and nothing else.
            let _ = std::fs::remove_file(path);
            let _ = file.unlock();
        }
    }
}
