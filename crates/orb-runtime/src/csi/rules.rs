//! [`Rules`], which are read from a file and determine which calls are allowed.

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

/// A list of rules that determine which calls are allowed. The first rule that matches a call applies. Clones
/// share the rules, so a reload applies to all clones.
///
/// The file is in TOML. It contains the decision for calls that match no rule, followed by the rules:
///
/// ```toml
/// default = "deny"
///
/// [[rule]] # applies to all callers
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
/// A rule matches a call if all keys of the rule match. A key matches if at least one pattern of its list
/// matches. A missing key matches every call.
///
/// | key | compared with |
/// |---|---|
/// | `users` | the user name of the caller, from a login or asserted by a trusted caller |
/// | `subjects` | the subject of the caller, from a certificate or asserted by a trusted caller |
/// | `certificates` | the subject of the connection's certificate, even if the caller is authenticated by a login |
/// | `addresses` | the address of the peer: an IP address, a network such as `10.0.0.0/8`, or `unix` for all Unix sockets |
/// | `poas` | the names of the POA's ancestors and of the POA, separated by `/`. `""` is the RootPOA, and objects with plain keys. In names, `%` is written `%25`, and `/` is written `%2F` |
/// | `objects` | the id of the object, or its plain key |
/// | `interfaces` | the repository id of the object's interface |
/// | `operations` | the operation's name in the request, such as `deposit`, `_get_balance` or `_is_a` |
///
/// In a pattern, `*` matches any number of bytes and `?` matches one, except in `addresses`. Patterns are
/// case-sensitive. `users = "*"` matches all users, but not callers without a user name.
#[derive(Clone)]
pub struct Rules {
    shared: Arc<Shared>,
}

struct Shared {
    file: Option<PathBuf>,
    current: ArcSwap<RuleTable>,
}

/// The reason why [`Rules`] could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{origin}:{line}: {reason}")]
    Content {
        /// The file, or `rules`.
        origin: String,
        /// The number of the line. The first line has number 1.
        line: usize,
        /// The fault in the content.
        reason: String,
    },
}

impl Rules {
    /// Reads the rules of a file.
    ///
    /// # Errors
    /// [`RulesError`] if the file cannot be read or is invalid.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, RulesError> {
        let path = path.into();
        let table = read(&path)?;
        Ok(Self::new(Some(path), table))
    }

    /// Reads rules from a text.
    ///
    /// # Errors
    /// [`RulesError`] if the text is invalid.
    pub fn text(toml: &str) -> Result<Self, RulesError> {
        Ok(Self::new(None, parse(toml, "rules")?))
    }

    fn new(file: Option<PathBuf>, table: RuleTable) -> Self {
        Self { shared: Arc::new(Shared { file, current: ArcSwap::from_pointee(table) }) }
    }

    /// Reads the file again. The new rules apply to all following requests. Rules from a text stay unchanged.
    ///
    /// # Errors
    /// [`RulesError`] if the file cannot be read or is invalid. The rules are then unchanged.
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
        let found = table.rules.iter().find(|rule| rule.patterns.matches(access));
        found.map_or(table.default, |rule| rule.decision)
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

struct RuleTable {
    default: Decision,
    rules: Vec<Rule>,
}

struct Rule {
    decision: Decision,
    patterns: Patterns,
}

/// The patterns of a rule. Each list is the value of a key, or empty if the key is missing.
#[derive(Default)]
struct Patterns {
    users: Vec<String>,
    subjects: Vec<String>,
    certificates: Vec<String>,
    addresses: Vec<AddressPattern>,
    poas: Vec<String>,
    objects: Vec<String>,
    interfaces: Vec<String>,
    operations: Vec<String>,
}

enum AddressPattern {
    /// An address, and the number of first bits that must match.
    Network(IpAddr, u32),
    Unix,
}

impl Patterns {
    fn matches(&self, access: &Access<'_>) -> bool {
        let has_subject = |principal: &&Principal| {
            use PrincipalKind::{AssertedSubject, Certificate};
            matches!(principal.kind(), Certificate | AssertedSubject)
        };
        let principal = access.principal();
        let user = principal.and_then(Principal::user);
        let subject = principal.filter(has_subject).map(Principal::name);
        let peer = access.peer();
        matches_one(&self.operations, Some(access.operation().as_bytes()))
            && matches_one(&self.users, user.map(str::as_bytes))
            && matches_one(&self.subjects, subject.map(str::as_bytes))
            && (self.certificates.is_empty()
                || matches_one(&self.certificates, access.subject().map(str::as_bytes)))
            && (self.addresses.is_empty() || self.addresses.iter().any(|address| address.matches(peer)))
            && matches_one(&self.interfaces, access.interface().map(str::as_bytes))
            && matches_one(&self.objects, Some(access.object_id()))
            && (self.poas.is_empty() || matches_one(&self.poas, Some(poa_path(access).as_bytes())))
    }
}

impl AddressPattern {
    fn parse(text: &str) -> Option<Self> {
        if text == "unix" {
            return Some(Self::Unix);
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(width), |length| length.parse().ok())?;
        (length <= width).then_some(Self::Network(address, length))
    }

    fn matches(&self, peer: &Peer) -> bool {
        fn same_prefix(one: u128, other: u128, length: u32, width: u32) -> bool {
            length == 0 || (one ^ other) >> (width - length) == 0
        }
        match (self, peer) {
            (Self::Unix, Peer::Unix(_)) => true,
            (Self::Network(network, length), Peer::Tcp(peer)) => match (network, peer.ip().to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(peer)) => {
                    same_prefix(network.to_bits().into(), peer.to_bits().into(), *length, 32)
                }
                (IpAddr::V6(network), IpAddr::V6(peer)) => {
                    same_prefix(network.to_bits(), peer.to_bits(), *length, 128)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

fn poa_path(access: &Access<'_>) -> String {
    let escaped = |name: &str| name.replace('%', "%25").replace('/', "%2F");
    access.poa().map(escaped).collect::<Vec<_>>().join("/")
}

/// Returns whether one of the patterns matches the text, or there are no patterns.
fn matches_one(patterns: &[String], text: Option<&[u8]>) -> bool {
    patterns.is_empty()
        || text.is_some_and(|text| patterns.iter().any(|pattern| matches_pattern(pattern.as_bytes(), text)))
}

fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut text_at, mut pattern_at) = (0, 0);
    // The position in the pattern after the last `*`, and the end of the text that this `*` matches.
    let mut star = None;
    while let Some(byte) = text.get(text_at) {
        match pattern.get(pattern_at) {
            Some(b'*') => {
                pattern_at += 1;
                star = Some((pattern_at, text_at));
            }
            Some(expected) if expected == byte || *expected == b'?' => {
                (text_at, pattern_at) = (text_at + 1, pattern_at + 1);
            }
            _ => {
                let Some((after_star, star_end)) = star else { return false };
                star = Some((after_star, star_end + 1));
                (text_at, pattern_at) = (star_end + 1, after_star);
            }
        }
    }
    pattern.get(pattern_at..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

fn read(path: &Path) -> Result<RuleTable, RulesError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| RulesError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string())
}

/// An error with its position in the text.
struct ContentError(usize, String);

fn parse(text: &str, origin: &str) -> Result<RuleTable, RulesError> {
    parse_table(text).map_err(|ContentError(at, reason)| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        RulesError::Content { origin: origin.to_owned(), line, reason }
    })
}

fn parse_table(text: &str) -> Result<RuleTable, ContentError> {
    let whole = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        ContentError(at, error.message().to_owned())
    })?;
    let (mut default, mut rules) = (None, Vec::new());
    for (key, value) in whole.get_ref() {
        match &**key.get_ref() {
            "default" => default = Some(parse_decision(value)?),
            "rule" => {
                let found = value.get_ref().as_array().ok_or_else(|| not_a_rule(value.span().start))?;
                for value in found.iter() {
                    rules.push(parse_rule(value)?);
                }
            }
            other => return Err(ContentError(key.span().start, unknown_key(other, "default, rule"))),
        }
    }
    let reason = "the decision for calls that match no rule is missing: default = \"deny\" or \"allow\"";
    Ok(RuleTable { default: default.ok_or_else(|| ContentError(0, reason.to_owned()))?, rules })
}

fn not_a_rule(at: usize) -> ContentError {
    ContentError(at, "each rule must be written as [[rule]]".to_owned())
}

fn parse_rule(value: &Spanned<DeValue<'_>>) -> Result<Rule, ContentError> {
    let at = value.span().start;
    let table = value.get_ref().as_table().ok_or_else(|| not_a_rule(at))?;
    let (mut rule_decision, mut patterns) = (None, Patterns::default());
    for (key, value) in table {
        match &**key.get_ref() {
            "decision" => rule_decision = Some(parse_decision(value)?),
            "addresses" => {
                for (at, text) in parse_texts(value)? {
                    let address = AddressPattern::parse(text).ok_or_else(|| {
                        let expected = "an IP address, a network such as 10.0.0.0/8, or `unix`";
                        ContentError(at, format!("expected {expected}, found `{text}`"))
                    })?;
                    patterns.addresses.push(address);
                }
            }
            name => {
                let list = match name {
                    "users" => &mut patterns.users,
                    "subjects" => &mut patterns.subjects,
                    "certificates" => &mut patterns.certificates,
                    "poas" => &mut patterns.poas,
                    "objects" => &mut patterns.objects,
                    "interfaces" => &mut patterns.interfaces,
                    "operations" => &mut patterns.operations,
                    other => {
                        let known = "decision, users, subjects, certificates, addresses, poas, objects, interfaces, operations";
                        return Err(ContentError(key.span().start, unknown_key(other, known)));
                    }
                };
                list.extend(parse_texts(value)?.into_iter().map(|(_, text)| text.to_owned()));
            }
        }
    }
    let missing = || ContentError(at, "the rule has no decision = \"allow\" or \"deny\"".to_owned());
    Ok(Rule { decision: rule_decision.ok_or_else(missing)?, patterns })
}

fn unknown_key(key: &str, known: &str) -> String {
    format!("unknown key `{}`; the keys are: {known}", key.escape_debug())
}

fn parse_decision(value: &Spanned<DeValue<'_>>) -> Result<Decision, ContentError> {
    match value.get_ref().as_str() {
        Some("allow") => Ok(Decision::Allow),
        Some("deny") => Ok(Decision::Deny),
        _ => Err(ContentError(value.span().start, "a decision must be \"allow\" or \"deny\"".to_owned())),
    }
}

/// Returns the positions and contents of one or more texts. Fails for an empty list, because it would match
/// all.
fn parse_texts<'v>(value: &'v Spanned<DeValue<'_>>) -> Result<Vec<(usize, &'v str)>, ContentError> {
    let error = |at, reason: &str| ContentError(at, reason.to_owned());
    let text = |value: &'v Spanned<DeValue<'_>>| {
        let (at, text) = (value.span().start, value.get_ref().as_str());
        Ok((at, text.ok_or_else(|| error(at, "expected a text or a list of texts"))?))
    };
    match value.get_ref().as_array() {
        Some(list) if list.is_empty() => {
            let reason = "the list is empty; omit the key if the rule applies to all values";
            Err(error(value.span().start, reason))
        }
        Some(list) => list.iter().map(text).collect(),
        None => Ok(vec![text(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
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
            assert_eq!(matches_pattern(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn networks_match_the_addresses_with_their_prefix() {
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
            let pattern = AddressPattern::parse(network).unwrap();
            assert_eq!(pattern.matches(&tcp(peer)), expected, "{network} {peer}");
        }
        assert!(AddressPattern::parse("unix").unwrap().matches(&Peer::Unix("/x".into())));
        for wrong in ["10.0.0.0/33", "10.0.0", "host", "::/129", "10.0.0.0/", "*"] {
            assert!(AddressPattern::parse(wrong).is_none(), "{wrong}");
        }
    }
}
