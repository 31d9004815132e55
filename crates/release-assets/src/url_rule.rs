/// Why an address is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlRule {
    /// It is not an absolute address.
    #[error("it is no absolute URL")]
    NotAbsolute,
    /// Its scheme is another than `https`, at the start or after a redirect.
    #[error("only https is used")]
    NotHttps,
    /// It is longer than servers take.
    #[error("it is too long")]
    TooLong,
    /// It names no host.
    #[error("it names no host")]
    NoHost,
    /// It holds a user name or password. A token goes through the client's builder instead, which binds it to
    /// one host.
    #[error("it holds credentials")]
    Credentials,
    /// A redirect without, or with an unreadable, destination.
    #[error("it redirects to nowhere")]
    NoDestination,
    /// More redirects than a sane server gives, a loop for instance.
    #[error("it redirects too often")]
    TooManyRedirects,
}

/// Leaves out what may be secret: credentials before the host, and query and fragment.
pub(crate) fn redact(text: &str) -> String {
    let (body, cut) = match text.find(['?', '#']) {
        Some(at) => (&text[..at], &text[at..=at]),
        None => (text, ""),
    };
    let (scheme, rest) = body.split_once("://").map_or(("", body), |(scheme, rest)| (scheme, rest));
    let authority_end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    let hidden = if cut.is_empty() { "" } else { "…" };
    let shown = format!("{scheme}{separator}{host}{path}{cut}{hidden}");
    // What is recorded stays the address that it is; only what would command a terminal is not kept.
    shown.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// What of an address is asked for: its fragment is not.
#[cfg(feature = "network")]
pub(crate) fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

/// The same for a text that could not be read as an address: nothing before an `@` is shown, nor anything where a query may hold it.
#[cfg(feature = "network")]
pub(crate) fn redact_unread(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((before, _)) if before.contains(['?', '#']) => "…".to_owned(),
        Some((_, rest)) => format!("…@{}", redact(rest)),
        None => redact(text),
    }
}
