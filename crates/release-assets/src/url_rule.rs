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
