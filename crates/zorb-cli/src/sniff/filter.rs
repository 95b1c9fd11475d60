//! The filter of messages.

use std::net::SocketAddr;

use super::calls::Told;

/// A condition: `operation=NAME`, `type=INTERFACE`, `peer=HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    what: What,
    pattern: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Operation,
    Type,
    Peer,
}

/// The conditions on messages. Conditions on the same property are alternatives. A message must meet one for
/// each property.
pub(super) struct Filter(Vec<Condition>);

/// Parses a condition.
pub(super) fn condition(text: &str) -> Result<Condition, String> {
    let (what, pattern) = text.split_once('=').unwrap_or((text, ""));
    let what = match what {
        "operation" => What::Operation,
        "type" => What::Type,
        "peer" => What::Peer,
        _ => return Err("operation=NAME, type=INTERFACE or peer=HOST[:PORT] is expected".to_owned()),
    };
    match pattern {
        "" => Err("which? A pattern is expected behind =".to_owned()),
        // Both the form of IDL and that of repository ids are accepted.
        _ => Ok(Condition {
            what,
            pattern: if what == What::Type { pattern.replace('/', "::") } else { pattern.to_owned() },
        }),
    }
}

impl Filter {
    pub(super) fn new(conditions: &[Condition]) -> Self {
        Self(conditions.to_vec())
    }

    /// Returns whether a message passes the filter.
    pub(super) fn wants(&self, told: &Told) -> bool {
        [What::Operation, What::Type, What::Peer].into_iter().all(|what| {
            let mut conditions = self.0.iter().filter(|condition| condition.what == what).peekable();
            conditions.peek().is_none() || conditions.any(|condition| condition.holds(told))
        })
    }
}

impl Condition {
    fn holds(&self, told: &Told) -> bool {
        let matches = |text: &str| matches(&self.pattern, text);
        match self.what {
            What::Operation => told.operation.as_deref().is_some_and(matches),
            What::Type => told.interface.as_deref().is_some_and(matches),
            What::Peer => [told.from, told.to]
                .iter()
                .any(|peer: &SocketAddr| matches(&peer.ip().to_string()) || matches(&peer.to_string())),
        }
    }
}

/// Returns whether a text matches a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else { return false };
            rest = rest.get(at + before.len()..).unwrap_or_default();
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars() {
        for (pattern, text, fits) in [
            ("deposit", "deposit", true),
            ("deposit", "deposits", false),
            ("dep*", "deposit", true),
            ("*it", "deposit", true),
            ("d*o*t", "deposit", true),
            ("d*x*t", "deposit", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("*posit*", "deposit", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn conditions_name_what_they_are_on() {
        assert!(condition("type=Bank/Account").is_ok_and(|one| one.pattern == "Bank::Account"));
        assert!(condition("operation=").is_err() && condition("size=3").is_err());
    }
}
