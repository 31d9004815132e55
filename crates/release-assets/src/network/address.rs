use std::fmt;

use url::Url;

use crate::{
    Error, Result, UrlRule,
    url_rule::{redact, redact_unread},
};

/// Servers refuse longer ones, and what is remembered of an address has to stay small.
const MAX_BYTES: usize = 8 << 10;

/// An absolute HTTPS address without credentials and fragment. Its `Display` leaves the query out: signed addresses carry
/// their secret there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(Url);

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let url = Url::parse(text)
            .map_err(|_| Error::Url { url: redact_unread(text), rule: UrlRule::NotAbsolute })?;
        Self::check(url)
    }

    fn check(mut url: Url) -> Result<Self> {
        // No part of what is asked for: two addresses that differ in it alone are one.
        url.set_fragment(None);
        let rule = if url.scheme() != "https" {
            UrlRule::NotHttps
        } else if url.as_str().len() > MAX_BYTES {
            UrlRule::TooLong
        } else if url.host_str().is_none_or(str::is_empty) {
            UrlRule::NoHost
        } else if !url.username().is_empty() || url.password().is_some() {
            UrlRule::Credentials
        } else {
            return Ok(Self(url));
        };
        Err(Error::Url { url: redact(url.as_str()), rule })
    }

    /// The address below this one with these path segments, each percent-encoded whole.
    pub(crate) fn below<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut url = self.0.clone();
        url.set_query(None);
        // An https address always has a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            path.extend(segments);
        }
        Self(url)
    }

    /// Where a redirect leads.
    pub(crate) fn follow(&self, location: Option<&str>) -> Result<Self> {
        let nowhere = || Error::Url { url: self.to_string(), rule: UrlRule::NoDestination };
        let url = self.0.join(location.ok_or_else(nowhere)?).map_err(|_| nowhere())?;
        Self::check(url)
    }

    /// Same scheme, host and port: the reach of a token.
    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }

    /// The address in full, for the request itself.
    pub(crate) fn secret_text(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(self.0.as_str()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<UrlRule> {
        match Address::parse(text) {
            Ok(_) => None,
            Err(Error::Url { rule, .. }) => Some(rule),
            Err(other) => unreachable!("{other}"),
        }
    }

    /// Reference 1.3: exactly `https`, with a host; ours: no credentials.
    #[test]
    fn only_plain_https_addresses_are_taken() {
        assert_eq!(rule("https://example.org/a.zip"), None);
        assert_eq!(rule("HTTPS://example.org:8443/a.zip?x=y"), None);
        for text in ["http://example.org/a", "file:///etc/passwd", "ftp://example.org/a", "data:,x"] {
            assert_eq!(rule(text), Some(UrlRule::NotHttps), "{text}");
        }
        for text in ["", "a.zip", "/a.zip", "//example.org/a", "https://", "https:///"] {
            assert_eq!(rule(text), Some(UrlRule::NotAbsolute), "{text}");
        }
        for text in ["https://user@example.org/", "https://:secret@example.org/", "https://u:p@example.org/"]
        {
            assert_eq!(rule(text), Some(UrlRule::Credentials), "{text}");
        }
    }

    /// Errors and logs never show a password or a signed query.
    #[test]
    fn secrets_are_not_displayed() {
        for text in [
            "https://user:hunter2@example.org/a.zip?X-Amz-Signature=hunter2#hunter2",
            "http://hunter2@example.org/",
            "https://a@hunter2@example.org/x?hunter2",
            "https://user:hunter2/x@example.org/",
            "https://user:hunter2?x@example.org/",
            "//user:hunter2#@example.org/",
            "hub.example/x?user=a@b.c&token=hunter2",
        ] {
            let error = Address::parse(text).map_or_else(|e| format!("{e} {e:?}"), |a| format!("{a} {a:?}"));
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn segments_are_encoded_whole() {
        let base = Address::parse("https://hub.example/mirror/").unwrap();
        let address = base.below(["api", "a b", "refs/pr/1", "..", "?x"]);
        assert_eq!(address.secret_text(), "https://hub.example/mirror/api/a%20b/refs%2Fpr%2F1/%3Fx");
    }

    #[test]
    fn redirects_are_held_to_the_same_rules() {
        let base = Address::parse("https://a.example/x/y?q").unwrap();
        let follow = |location| base.follow(location).map(|a| a.secret_text().to_owned());
        assert_eq!(follow(Some("/z")).unwrap(), "https://a.example/z");
        assert_eq!(follow(Some("z")).unwrap(), "https://a.example/x/z");
        assert_eq!(follow(Some("//b.example/z")).unwrap(), "https://b.example/z");
        assert!(matches!(follow(Some("http://a.example/")), Err(Error::Url { rule: UrlRule::NotHttps, .. })));
        assert!(matches!(follow(None), Err(Error::Url { rule: UrlRule::NoDestination, .. })));
        let c = base.follow(Some("https://a.example:8443/")).unwrap();
        assert!(!c.same_origin(&base));
        assert!(base.follow(Some("https://a.example:443/q")).unwrap().same_origin(&base));
    }
}
