use std::{io, time::Duration};

use crate::shown::shown;

/// What went wrong between here and a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkFault {
    /// The host's name has no address.
    #[error("the host was not found")]
    HostNotFound,
    /// No connection could be made, or a proxy refused to make it.
    #[error("no connection: {}", shown(_0))]
    Connect(String),
    /// The secure connection failed; a company's proxy that signs with its own root is a usual cause, and the
    /// client's builder takes that root.
    #[error("the secure connection failed: {}", shown(_0))]
    Tls(String),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// No byte came for this long.
    #[error("nothing came for {0:?}")]
    Stalled(Duration),
    /// The time for the whole transfer is over.
    #[error("not complete after {0:?}")]
    Deadline(Duration),
    /// The server answered with an error.
    #[error("the server answered {status}{}", reason(*status))]
    Status {
        /// The HTTP status.
        status: u16,
    },
    /// The transfer ended before all bytes had come, or went on after them.
    #[error("{received} bytes came, {expected} were announced")]
    Length {
        /// Bytes received.
        received: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// More bytes than allowed, announced or sent.
    #[error("it has more than the {limit} bytes that are allowed")]
    TooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// The server sent something else than what is asked for.
    #[error("the server sent {0}")]
    NotTheFile(&'static str),
    /// The answer is no valid HTTP.
    #[error("the answer cannot be understood: {}", shown(_0))]
    Protocol(String),
}

fn reason(status: u16) -> &'static str {
    match status {
        401 => " (not authorised)",
        403 => " (forbidden)",
        404 => " (not found)",
        408 => " (request timed out)",
        410 => " (gone)",
        429 => " (too many requests)",
        500..=599 => " (the server's own fault)",
        _ => "",
    }
}

#[cfg(feature = "network")]
impl NetworkFault {
    /// Whether asking again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::HostNotFound
            | Self::Connect(_)
            | Self::Broken(_)
            | Self::Stalled(_)
            | Self::Length { .. } => true,
            Self::Status { status } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504),
            Self::Tls(_)
            | Self::Deadline(_)
            | Self::TooLarge { .. }
            | Self::NotTheFile(_)
            | Self::Protocol(_) => false,
        }
    }

    /// Whether this means that the server could not be reached at all.
    pub(crate) fn is_unreachable(&self) -> bool {
        !matches!(
            self,
            Self::Status { .. } | Self::TooLarge { .. } | Self::NotTheFile(_) | Self::Length { .. }
        )
    }
}
