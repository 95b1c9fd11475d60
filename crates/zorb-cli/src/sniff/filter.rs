//! The filter that selects the messages to print (`--filter`).

use std::net::SocketAddr;

use super::record::MessageRecord;

/// A condition: `operation=NAME`, `type=INTERFACE` or `peer=HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    property: Property,
    pattern: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Operation,
    Type,
    Peer,
}

/// The conditions on messages. For each property with conditions, a message must meet at least one of them.
pub(super) struct Filter(Vec<Condition>);

pub(super) fn parse_condition(text: &str) -> Result<Condition, String> {
    let (property, pattern) = text.split_once('=').unwrap_or((text, ""));
    let property = match property {
        "operation" => Property::Operation,
        "type" => Property::Type,
        "peer" => Property::Peer,
        _ => return Err("expected operation=NAME, type=INTERFACE or peer=HOST[:PORT]".to_owned()),
    };
    match pattern {
        "" => Err("expected a pattern after =".to_owned()),
        // An interface may be written as in IDL (`Bank::Account`) or as in a repository id (`Bank/Account`).
        _ => Ok(Condition {
            property,
            pattern: if property == Property::Type { pattern.replace('/', "::") } else { pattern.to_owned() },
        }),
    }
}

impl Filter {
    pub(super) fn new(conditions: &[Condition]) -> Self {
        Self(conditions.to_vec())
    }

    pub(super) fn accepts(&self, record: &MessageRecord) -> bool {
        [Property::Operation, Property::Type, Property::Peer].into_iter().all(|property| {
            let mut conditions = self.0.iter().filter(|condition| condition.property == property).peekable();
            conditions.peek().is_none() || conditions.any(|condition| condition.is_met_by(record))
        })
    }
}

impl Condition {
    fn is_met_by(&self, record: &MessageRecord) -> bool {
        let matches = |text: &str| matches(&self.pattern, text);
        match self.property {
            Property::Operation => record.operation.as_deref().is_some_and(matches),
            Property::Type => record.interface.as_deref().is_some_and(matches),
            Property::Peer => [record.from, record.to]
                .iter()
                .any(|peer: &SocketAddr| matches(&peer.ip().to_string()) || matches(&peer.to_string())),
        }
    }
}

/// Returns whether a text matches a pattern, in which `*` stands for any number of characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(start) = rest.find(before) else { return false };
            rest = rest.get(start + before.len()..).unwrap_or_default();
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
    fn a_star_matches_any_characters() {
        for (pattern, text, is_match) in [
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
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn conditions_are_parsed() {
        assert!(parse_condition("type=Bank/Account").is_ok_and(|one| one.pattern == "Bank::Account"));
        assert!(parse_condition("operation=").is_err() && parse_condition("size=3").is_err());
    }
}
