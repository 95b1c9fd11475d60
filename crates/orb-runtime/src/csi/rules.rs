//! Rules for calls, from a file.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::csi::authorizer::{Access, Authorizer, Decision};
use crate::csi::principal::{Principal, PrincipalKind};
use crate::transport::Peer;

/// Rules for calls, of which the first that matches decides. Clones share them, so a reload through one of
/// them applies to all.
///
/// A file is TOML. It contains the decision for calls that no rule matches, and then the rules:
///
/// ```toml
/// default = "deny"
///
/// [[rule]] # all callers may ask what an object is
/// decision = "allow"
/// operations = ["_is_a", "_non_existent"]
///
/// [[rule]]
/// decision = "allow"
/// users = ["ann", "teller-*"]
/// poas = "bank/accounts"
/// operations = ["deposit", "_get_*"]
///
/// [[rule]]
/// decision = "allow"
/// subjects = "CN=audit,O=Example"
/// addresses = ["10.0.0.0/8", "unix"]
/// interfaces = "IDL:Bank/*"
/// ```
///
/// A rule matches if each key that it has matches, by one pattern of its list. A missing key matches
/// everything.
///
/// | key | compares |
/// |---|---|
/// | `users` | the name of the caller: of a login, or as asserted by a trusted caller |
/// | `subjects` | the subject of the caller: of its certificate, or as asserted by a trusted caller |
/// | `certificates` | the subject of the connection's certificate, whatever the caller |
/// | `addresses` | the address of the peer: an IP address, a network such as `10.0.0.0/8`, or `unix` |
/// | `poas` | the POA's name, preceded by those of its ancestors and a `/` each; `""` is the RootPOA, and plain keys. In names, `%` is written `%25`, `/` is `%2F` |
/// | `objects` | the id of the object, or its plain key |
/// | `interfaces` | the repository id of the object's interface |
/// | `operations` | the operation: `_get_balance` of an attribute, `_is_a` of every object |
///
/// In a pattern `*` matches any characters and `?` one character, except in `addresses`. Patterns are
/// case-sensitive. `users = "*"` matches all users, but neither certificates nor unknown callers.
#[derive(Clone)]
pub struct Rules {
    shared: Arc<Shared>,
}

struct Shared {
    file: Option<PathBuf>,
    current: ArcSwap<Table>,
}

/// The reason for which [`Rules`] could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{origin}:{line}: {reason}")]
    Content {
        /// The file, or `rules`.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl Rules {
    /// Reads the rules of a file.
    ///
    /// # Errors
    /// [`RulesError`] with file and line.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, RulesError> {
        let path = path.into();
        let table = read(&path)?;
        Ok(Self::of(Some(path), table))
    }

    /// Reads rules from a text.
    ///
    /// # Errors
    /// The same as those of [`file`](Self::file).
    pub fn text(toml: &str) -> Result<Self, RulesError> {
        Ok(Self::of(None, parse(toml, "rules")?))
    }

    fn of(file: Option<PathBuf>, table: Table) -> Self {
        Self { shared: Arc::new(Shared { file, current: ArcSwap::from_pointee(table) }) }
    }

    /// Reads the file again. Following requests are decided by the new rules.
    ///
    /// # Errors
    /// The same as those of [`file`](Self::file). The rules are then unchanged.
    pub fn reload(&self) -> Result<(), RulesError> {
        if let Some(path) = &self.shared.file {
            self.shared.current.store(Arc::new(read(path)?));
        }
        Ok(())
    }
}

impl Authorizer for Rules {
    fn decide(&self, access: &Access<'_>) -> Decision {
        let table = self.shared.current.load();
        let fits = table.rules.iter().find(|rule| rule.fits(access));
        fits.map_or(table.default, |rule| rule.decision)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("file", &self.shared.file)
            .field("rules", &self.shared.current.load().rules.len())
            .finish()
    }
}

struct Table {
    default: Decision,
    rules: Vec<Rule>,
}

/// An empty list matches everything.
struct Rule {
    decision: Decision,
    users: Vec<String>,
    subjects: Vec<String>,
    certificates: Vec<String>,
    addresses: Vec<Address>,
    poas: Vec<String>,
    objects: Vec<String>,
    interfaces: Vec<String>,
    operations: Vec<String>,
}

enum Address {
    Network(IpAddr, u32),
    Unix,
}

impl Rule {
    fn fits(&self, access: &Access<'_>) -> bool {
        let subject = |principal: &Principal| {
            use PrincipalKind::{AssertedSubject, Certificate};
            matches!(principal.kind(), Certificate | AssertedSubject)
        };
        let principal = access.principal();
        let user = principal.and_then(Principal::user);
        let subject = principal.filter(|principal| subject(principal)).map(Principal::name);
        one_of(&self.operations, Some(access.operation().as_bytes()))
            && one_of(&self.users, user.map(str::as_bytes))
            && one_of(&self.subjects, subject.map(str::as_bytes))
            && (self.certificates.is_empty()
                || one_of(&self.certificates, access.subject().map(str::as_bytes)))
            && (self.addresses.is_empty() || self.addresses.iter().any(|address| address.has(access.peer())))
            && one_of(&self.interfaces, access.interface().map(str::as_bytes))
            && one_of(&self.objects, Some(access.object_id()))
            && (self.poas.is_empty() || one_of(&self.poas, Some(path(access).as_bytes())))
    }
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        if text == "unix" {
            return Some(Self::Unix);
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(most), |length| length.parse().ok())?;
        (length <= most).then_some(Self::Network(address, length))
    }

    fn has(&self, peer: &Peer) -> bool {
        /// Returns whether the first `length` bits of both are equal.
        fn same(one: u128, other: u128, length: u32, width: u32) -> bool {
            length == 0 || (one ^ other) >> (width - length) == 0
        }
        match (self, peer) {
            (Self::Unix, Peer::Unix(_)) => true,
            (Self::Network(network, length), Peer::Tcp(peer)) => match (network, peer.ip().to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(peer)) => {
                    same(network.to_bits().into(), peer.to_bits().into(), *length, 32)
                }
                (IpAddr::V6(network), IpAddr::V6(peer)) => {
                    same(network.to_bits(), peer.to_bits(), *length, 128)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

fn path(access: &Access<'_>) -> String {
    let escaped = |name: &str| name.replace('%', "%25").replace('/', "%2F");
    access.poa().map(escaped).collect::<Vec<_>>().join("/")
}

fn one_of(patterns: &[String], what: Option<&[u8]>) -> bool {
    patterns.is_empty()
        || what.is_some_and(|what| patterns.iter().any(|pattern| matches(pattern.as_bytes(), what)))
}

/// Returns whether the pattern matches the whole text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The position after the last `*`, and the end of the text that it matches so far.
    let mut star = None;
    while let Some(octet) = text.get(at) {
        match pattern.get(from) {
            Some(b'*') => {
                from += 1;
                star = Some((from, at));
            }
            Some(wanted) if wanted == octet || *wanted == b'?' => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((behind, taken)) = star else { return false };
                star = Some((behind, taken + 1));
                (at, from) = (taken + 1, behind);
            }
        }
    }
    pattern.get(from..).is_none_or(|rest| rest.iter().all(|octet| *octet == b'*'))
}

fn read(path: &Path) -> Result<Table, RulesError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| RulesError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string())
}

/// The position in the text, and what is wrong there.
struct Wrong(usize, String);

fn parse(text: &str, origin: &str) -> Result<Table, RulesError> {
    table(text).map_err(|Wrong(at, reason)| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        RulesError::Content { origin: origin.to_owned(), line, reason }
    })
}

fn table(text: &str) -> Result<Table, Wrong> {
    let whole = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Wrong(at, error.message().to_owned())
    })?;
    let (mut default, mut rules) = (None, Vec::new());
    for (key, value) in whole.get_ref() {
        match &**key.get_ref() {
            "default" => default = Some(decision(value)?),
            "rule" => {
                let found = value
                    .get_ref()
                    .as_array()
                    .ok_or_else(|| Wrong(value.span().start, "rules are written as [[rule]]".to_owned()))?;
                for value in found.iter() {
                    rules.push(rule(value)?);
                }
            }
            other => return Err(Wrong(key.span().start, unknown(other, "default, rule"))),
        }
    }
    let missing =
        || Wrong(0, "it must say what holds where no rule fits: default = \"deny\", or \"allow\"".to_owned());
    Ok(Table { default: default.ok_or_else(missing)?, rules })
}

fn rule(value: &Spanned<DeValue<'_>>) -> Result<Rule, Wrong> {
    let at = value.span().start;
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| Wrong(at, "rules are written as [[rule]]".to_owned()))?;
    let mut rule = Rule {
        decision: Decision::Deny,
        users: Vec::new(),
        subjects: Vec::new(),
        certificates: Vec::new(),
        addresses: Vec::new(),
        poas: Vec::new(),
        objects: Vec::new(),
        interfaces: Vec::new(),
        operations: Vec::new(),
    };
    let mut decided = false;
    for (key, value) in table {
        match &**key.get_ref() {
            "decision" => (rule.decision, decided) = (decision(value)?, true),
            "addresses" => {
                for (at, text) in texts(value)? {
                    let address = Address::parse(text).ok_or_else(|| {
                        Wrong(
                            at,
                            format!(
                                "`{text}` is no IP address, no network such as 10.0.0.0/8, and not `unix`"
                            ),
                        )
                    })?;
                    rule.addresses.push(address);
                }
            }
            name => {
                let patterns = match name {
                    "users" => &mut rule.users,
                    "subjects" => &mut rule.subjects,
                    "certificates" => &mut rule.certificates,
                    "poas" => &mut rule.poas,
                    "objects" => &mut rule.objects,
                    "interfaces" => &mut rule.interfaces,
                    "operations" => &mut rule.operations,
                    other => {
                        let known = "decision, users, subjects, certificates, addresses, poas, objects, interfaces, operations";
                        return Err(Wrong(key.span().start, unknown(other, known)));
                    }
                };
                patterns.extend(texts(value)?.into_iter().map(|(_, text)| text.to_owned()));
            }
        }
    }
    if !decided {
        return Err(Wrong(at, "the rule does not say decision = \"allow\", or \"deny\"".to_owned()));
    }
    Ok(rule)
}

fn unknown(key: &str, known: &str) -> String {
    format!("there is no key `{}`; known are: {known}", key.escape_debug())
}

fn decision(value: &Spanned<DeValue<'_>>) -> Result<Decision, Wrong> {
    match value.get_ref().as_str() {
        Some("allow") => Ok(Decision::Allow),
        Some("deny") => Ok(Decision::Deny),
        _ => Err(Wrong(value.span().start, "a decision is \"allow\" or \"deny\"".to_owned())),
    }
}

/// Returns a text, or a list with at least one. An empty list is an error because it would match everything.
fn texts<'v>(value: &'v Spanned<DeValue<'_>>) -> Result<Vec<(usize, &'v str)>, Wrong> {
    let text = |value: &'v Spanned<DeValue<'_>>| {
        let at = value.span().start;
        let text = value.get_ref().as_str();
        text.map(|text| (at, text))
            .ok_or_else(|| Wrong(at, "here stands a text, or a list of texts".to_owned()))
    };
    match value.get_ref().as_array() {
        Some(list) if list.is_empty() => Err(Wrong(
            value.span().start,
            "the list is empty: leave the key out where anything will do".to_owned(),
        )),
        Some(list) => list.iter().map(text).collect(),
        None => Ok(vec![text(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*a*b*", "xaxbx", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("abc", "ABC", false),
            ("*ab", "aab", true),
            ("a**", "a", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn networks_have_the_addresses_that_begin_as_they_do() {
        let tcp = |text: &str| Peer::Tcp(text.parse().unwrap());
        for (network, peer, expected) in [
            ("10.0.0.0/8", "10.255.1.2:3", true),
            ("10.0.0.0/8", "11.0.0.1:3", false),
            ("127.0.0.1", "127.0.0.1:3", true),
            ("127.0.0.1", "127.0.0.2:3", false),
            ("127.0.0.1", "[::ffff:127.0.0.1]:3", true),
            ("0.0.0.0/0", "1.2.3.4:5", true),
            ("::/0", "[::1]:5", true),
            ("::1", "[::1]:5", true),
            ("fe80::/10", "[fe80::1]:5", true),
            ("::/0", "1.2.3.4:5", false),
        ] {
            assert_eq!(Address::parse(network).unwrap().has(&tcp(peer)), expected, "{network} {peer}");
        }
        assert!(Address::parse("unix").unwrap().has(&Peer::Unix("/x".into())));
        for wrong in ["10.0.0.0/33", "10.0.0", "host", "::/129", "10.0.0.0/", "*"] {
            assert!(Address::parse(wrong).is_none(), "{wrong}");
        }
    }
}
