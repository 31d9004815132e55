use std::{fmt, sync::Arc, time::Duration};

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::{Address, environment};
use crate::{Error, Result};

/// How to reach a hub and the hosts that archives lie on. Cheap to clone.
///
/// What the builder does not set comes from the environment, under the names of the hub's Python client:
/// `HF_ENDPOINT`; `HF_TOKEN`, else the file of a login (`HF_TOKEN_PATH`, or `token` in `HF_HOME`), neither of which is used
/// with `HF_HUB_DISABLE_IMPLICIT_TOKEN`; `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`; and `ALL_PROXY`, `HTTPS_PROXY`,
/// `HTTP_PROXY`, `NO_PROXY` for proxies.
///
/// Only HTTPS is spoken, after redirects too. The token goes to the endpoint's scheme, host and port and
/// nowhere else.
#[derive(Clone)]
pub struct Client(Arc<Settings>);

pub(super) struct Settings {
    pub(super) endpoint: Address,
    pub(super) token: Option<String>,
    pub(super) offline: bool,
    pub(super) download_bytes: u64,
    pub(super) connect_timeout: Duration,
    pub(super) stall_timeout: Duration,
    pub(super) deadline: Duration,
    pub(super) retries: u32,
    pub(super) back_off: Duration,
    pub(super) config: ureq::config::Config,
}

/// Settings for a [`Client`].
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    endpoint: Option<String>,
    token: Setting,
    offline: Option<bool>,
    roots: Option<Vec<u8>>,
    proxy: Setting,
    download_bytes: u64,
    connect_timeout: Duration,
    stall_timeout: Duration,
    deadline: Duration,
    retries: u32,
    back_off: Duration,
}

/// A text that the caller gives or leaves out, or else the environment's.
#[derive(Clone)]
enum Setting {
    Environment,
    Given(Option<String>),
}

/// Longer times mean no limit; clocks end before the type does.
const MAX_TIME: Duration = Duration::from_hours(24 * 365);

impl Client {
    /// Starts a client whose unset parts come from the environment.
    pub fn builder() -> ClientBuilder {
        const GIB: u64 = 1 << 30;
        ClientBuilder {
            endpoint: None,
            token: Setting::Environment,
            offline: None,
            roots: None,
            proxy: Setting::Environment,
            download_bytes: 8 * GIB,
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            deadline: Duration::from_hours(1),
            retries: 4,
            back_off: Duration::from_millis(500),
        }
    }

    /// A client of the environment's settings alone.
    ///
    /// Errors: those of [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self> {
        Self::builder().build()
    }

    /// Whether this client never uses the network.
    pub fn is_offline(&self) -> bool {
        self.0.offline
    }

    /// The hub's address, without anything secret.
    pub fn endpoint(&self) -> String {
        self.0.endpoint.to_string()
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0
    }
}

impl ClientBuilder {
    /// The hub or a mirror of it, such as `https://hub.example` (default `HF_ENDPOINT`, else the public hub).
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// The token for the endpoint; none means to send none, whatever the environment holds (default
    /// `HF_TOKEN`, else the file of a login; see [`Client`]).
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = Setting::Given(token);
        self
    }

    /// Never to use the network (default `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`).
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = Some(offline);
        self
    }

    /// The only root certificates to trust, as PEM text of one or more (default: Mozilla's, or with the feature
    /// `native-roots` the operating system's).
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// The proxy for everything, such as `http://proxy.example:3128`, or none whatever the environment holds
    /// (default: `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` but for the hosts of `NO_PROXY`).
    pub fn proxy(mut self, proxy: Option<String>) -> Self {
        self.proxy = Setting::Given(proxy);
        self
    }

    /// The largest archive that is downloaded (default 8 GiB).
    pub fn download_bytes(mut self, bytes: u64) -> Self {
        self.download_bytes = bytes;
        self
    }

    /// How long a connection may take to come about, name and handshake included (default 15 s).
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time.min(MAX_TIME);
        self
    }

    /// How long a server may send nothing (default 30 s).
    pub fn stall_timeout(mut self, time: Duration) -> Self {
        self.stall_timeout = time.min(MAX_TIME);
        self
    }

    /// How long one download may take in all, with its retries (default one hour).
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = time.min(MAX_TIME);
        self
    }

    /// How often a request is made again after a fault that may pass (default 4), and the time before the
    /// first of these (default 0.5 s), which doubles each time up to 8 s. A server's `Retry-After` of up to a
    /// minute is kept.
    pub fn retries(mut self, times: u32, back_off: Duration) -> Self {
        (self.retries, self.back_off) = (times, back_off.min(MAX_TIME));
        self
    }

    /// Makes the client; nothing is sent yet.
    ///
    /// Errors: [`Error::Url`] (an endpoint that is not plain HTTPS), [`Error::Setting`] (token, certificates,
    /// proxy, or a variable of the environment, of no valid form).
    pub fn build(self) -> Result<Client> {
        let endpoint = self.endpoint.map_or_else(environment::endpoint, |url| Address::parse(&url))?;
        let offline = self.offline.map_or_else(environment::offline, Ok)?;
        let token = match self.token {
            // Without a network nothing is sent, so a bad token of the environment is nobody's concern.
            _ if offline => None,
            Setting::Environment => environment::token()?,
            Setting::Given(token) => token,
        };
        // What is sent as a header must be one visible line; and what it is must not be shown.
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(setting("token", "it holds other characters than visible ASCII"));
        }
        let roots = match &self.roots {
            None if cfg!(feature = "native-roots") => RootCerts::PlatformVerifier,
            None => RootCerts::WebPki,
            Some(pem) => RootCerts::from(certificates(pem)?),
        };
        let proxy = match self.proxy {
            Setting::Environment if offline => None,
            Setting::Environment => environment::proxy()?,
            Setting::Given(None) => None,
            Setting::Given(Some(text)) => Some(
                ureq::Proxy::new(&text).map_err(|_| setting("proxy", "its address cannot be understood"))?,
            ),
        };
        let config = ureq::Agent::config_builder()
            .https_only(true)
            .http_status_as_error(false)
            // Followed by hand, so that each step is checked and the token stays with its host.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("release-assets/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(self.connect_timeout))
            .timeout_connect(Some(self.connect_timeout))
            .timeout_per_read(Some(self.stall_timeout))
            .timeout_per_write(Some(self.stall_timeout))
            .timeout_global(Some(self.deadline))
            .build();
        Ok(Client(Arc::new(Settings {
            endpoint,
            token,
            offline,
            download_bytes: self.download_bytes,
            connect_timeout: self.connect_timeout,
            stall_timeout: self.stall_timeout,
            deadline: self.deadline,
            retries: self.retries,
            back_off: self.back_off,
            config,
        })))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(setting("root certificates", "they are not valid PEM")),
        }
    }
    if found.is_empty() {
        return Err(setting("root certificates", "the PEM text holds no certificate"));
    }
    Ok(found)
}

fn setting(name: &'static str, detail: &str) -> Error {
    Error::Setting { name, detail: detail.to_owned() }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.0.endpoint)
            .field("token", &self.0.token.as_ref().map(|_| "(hidden)"))
            .field("offline", &self.0.offline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.endpoint.as_deref().map(crate::url_rule::redact_unread);
        f.debug_struct("ClientBuilder")
            .field("endpoint", &endpoint)
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}
