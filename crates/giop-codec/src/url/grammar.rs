//! The grammar of `corbaloc:`, `corbaname:` and `file:`.
//!
//! Source clause: "Object URLs / corbaloc Syntax".

use std::net::Ipv6Addr;
use std::path::PathBuf;

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, tag_no_case, take_till, take_until, take_while, take_while1};
use nom::character::complete::{char, digit1, u16};
use nom::combinator::{all_consuming, eof, not, opt, peek, rest, value, verify};
use nom::sequence::{delimited, preceded, terminated};

use super::corbaloc::{Corbaloc, Corbaname, IiopAddress};
use super::error::UrlErrorKind;
use super::escape::{needs_no_escape, unescape, unescape_text};
use super::syntax::{ParseResult, SyntaxError, expect, syntax_error};
use crate::Version;
use crate::giop::ObjectKey;
use crate::ior::MAX_PROFILES;

/// The default initial reference and object key of `corbaname:` and `rir:`.
const NAME_SERVICE: &str = "NameService";

type Rule<'a, T> = ParseResult<'a, T, UrlErrorKind>;

/// Matches an ASCII word in upper or lower case. Comparing bytes is faster than comparing characters.
fn keyword<'a>(word: &str) -> impl Parser<&'a str, Output = &'a str, Error = SyntaxError<'a, UrlErrorKind>> {
    tag_no_case(word.as_bytes())
}

/// `"corbaloc:" location`, in which the key must not be missing.
pub(super) fn corbaloc(input: &str) -> Rule<'_, Corbaloc> {
    preceded(keyword("corbaloc:"), |input| location(input, None)).parse(input)
}

/// `"corbaname:" location ["#" name]`
pub(super) fn corbaname(input: &str) -> Rule<'_, Corbaname> {
    let context = take_till(|c| c == '#').and_then(|input| location(input, Some(NAME_SERVICE)));
    let (name, context) = preceded(keyword("corbaname:"), context).parse(input)?;
    let name = unescape_text(name.strip_prefix('#').unwrap_or(name), needs_no_escape)?;
    Ok(("", Corbaname { context, name }))
}

/// `"file:" ["//localhost" | "//"] path`: `file:///abs`, `file:/abs`, `file://localhost/abs`, and
/// `file://relative`, which TAO and JacORB accept.
///
/// Decodes escapes. Accepts characters that should be escaped, because users write plain paths here.
pub(super) fn file(input: &str) -> Rule<'_, PathBuf> {
    let local_host = terminated(tag("//localhost"), peek(char('/')));
    let (path, _) = (keyword("file:"), opt(alt((local_host, tag("//"))))).parse(input)?;
    if path.is_empty() {
        return Err(syntax_error(path, UrlErrorKind::EmptyPath));
    }
    Ok(("", unescape_text(path, |_| true)?.into()))
}

/// `unix_socket | initial_reference | addresses`, up to the end of the input.
fn location<'a>(input: &'a str, default_key: Option<&str>) -> Rule<'a, Corbaloc> {
    let unix_socket = |input| unix_socket(input, default_key);
    alt((unix_socket, initial_reference, |input| addresses(input, default_key))).parse(input)
}

/// `"uiop:" [version] path ["|" key]` or `"omniunix:" [version] path [":/" key]`. Without a key, the path may
/// be followed by a colon.
///
/// A socket cannot be an element of an address list, because its path contains slashes.
fn unix_socket<'a>(input: &'a str, default_key: Option<&str>) -> Rule<'a, Corbaloc> {
    let uiop = value("|", keyword("uiop:"));
    let (input, delimiter) = alt((uiop, value(":/", keyword("omniunix:")))).parse(input)?;
    let (end, socket) = rest(input)?;
    let without_key = (socket.strip_suffix(':').unwrap_or(socket), end);
    let (socket, key) = socket.split_once(delimiter).unwrap_or(without_key);
    let (socket, version) = opt(version).parse(socket)?;
    let path = unescape_text(socket, needs_no_escape)?;
    if path.is_empty() {
        return Err(syntax_error(socket, UrlErrorKind::NoSocketPath));
    }
    let (end, key) = object_key(key, end, default_key)?;
    Ok((end, Corbaloc::Unix { version: version.unwrap_or(Version::V1_0), path, key }))
}

/// `"rir:" ["/" name]`
fn initial_reference(input: &str) -> Rule<'_, Corbaloc> {
    let name = expect(alt((eof, preceded(char('/'), rest))), |_| UrlErrorKind::RirNotAlone);
    let (end, name) = preceded(keyword("rir:"), name).parse(input)?;
    let name = if name.is_empty() { NAME_SERVICE.to_owned() } else { unescape_text(name, needs_no_escape)? };
    Ok((end, Corbaloc::Rir { name }))
}

/// `address {"," address} ["/" key]`
fn addresses<'a>(input: &'a str, default_key: Option<&str>) -> Rule<'a, Corbaloc> {
    let (key, list) = take_till(|c| c == '/').parse(input)?;
    if key.starts_with("//") && lacks_last_host(list) {
        return Err(syntax_error(key, UrlErrorKind::Slashes));
    }
    let mut addresses = Vec::new();
    for text in list.split(',') {
        if addresses.len() == MAX_PROFILES {
            return Err(syntax_error(text, UrlErrorKind::TooManyAddresses));
        }
        let (_, address) = address(text)?;
        addresses.push(address);
    }
    let (end, key) = object_key(key.strip_prefix('/').unwrap_or(key), key, default_key)?;
    Ok((end, Corbaloc::Iiop { addresses, key }))
}

/// Returns whether the last address of the list has neither host nor port.
fn lacks_last_host(list: &str) -> bool {
    let last = list.rsplit(',').next().unwrap_or(list);
    last.is_empty() || last.ends_with('@') || last.find(':') == Some(last.len() - 1)
}

/// Returns the key in the rest of the input, or the default. Without either, `delimiter` is at fault.
fn object_key<'a>(input: &'a str, delimiter: &'a str, default: Option<&str>) -> Rule<'a, ObjectKey> {
    let key = match default {
        _ if !input.is_empty() => unescape(input, needs_no_escape)?,
        Some(key) => key.as_bytes().to_vec(),
        None => return Err(syntax_error(delimiter, UrlErrorKind::MissingKey)),
    };
    Ok(("", ObjectKey::from(key)))
}

/// `["iiop" | "ssliop"] ":" [version] (ipv6_host | host) [":" port]`, up to the end of the input.
fn address(input: &str) -> Rule<'_, IiopAddress> {
    let iiop = alt((keyword("iiop:"), tag(":")));
    let protocol = alt((value(true, keyword("ssliop:")), value(false, iiop)));
    let (input, uses_tls) = expect(protocol, unsupported_protocol).parse(input)?;
    let (input, version) = opt(version).parse(input)?;
    let (input, host) = alt((ipv6_host, host)).parse(input)?;
    let port = expect(all_consuming(verify(u16, |port| *port != 0)), |_| UrlErrorKind::Port);
    let port = alt((value(None, eof), preceded(char(':'), port).map(Some)));
    let (end, port) = expect(port, |_| UrlErrorKind::Port).parse(input)?;
    let (lowest, default, default_port) = if uses_tls {
        (Version::V1_1, Version::V1_2, IiopAddress::DEFAULT_TLS_PORT)
    } else {
        (Version::V1_0, Version::V1_0, IiopAddress::DEFAULT_PORT)
    };
    let version = version.unwrap_or(default).max(lowest);
    Ok((end, IiopAddress { version, host, port: port.unwrap_or(default_port), uses_tls }))
}

/// Returns the error for an address whose protocol is not allowed in a list of addresses.
fn unsupported_protocol(address: &str) -> UrlErrorKind {
    match address.split_once(':') {
        None => UrlErrorKind::NoProtocol,
        Some((protocol, _)) if protocol.eq_ignore_ascii_case("rir") => UrlErrorKind::RirNotAlone,
        Some((protocol, _)) => UrlErrorKind::UnknownProtocol(protocol.to_owned()),
    }
}

/// `"1." digits "@"`; a minor number above 2 is read as 1.2, the highest supported version.
fn version(input: &str) -> Rule<'_, Version> {
    let minor = all_consuming(preceded((take_while(|c| c == '0'), tag("1.")), digit1));
    let number = terminated(take_until("@"), char('@')).and_then(expect(minor, |_| UrlErrorKind::Version));
    let supported = |minor: &str| minor.parse().ok().and_then(Version::from_minor);
    number.map(|minor| supported(minor).unwrap_or(Version::V1_2)).parse(input)
}

/// A DNS name or an IPv4 address, which may be empty.
fn host(input: &str) -> Rule<'_, String> {
    if input.parse::<Ipv6Addr>().is_ok() {
        return Err(syntax_error(input, UrlErrorKind::Ipv6Brackets));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let end = expect(peek(alt((eof, tag(":")))), |at: &str| {
        UrlErrorKind::HostCharacter(at.chars().next().unwrap_or_default())
    });
    terminated(take_while(allowed), end).map(str::to_owned).parse(input)
}

/// `"[" ipv6 "]"`
fn ipv6_host(input: &str) -> Rule<'_, String> {
    let address = delimited(char('['), take_until("]"), char(']')).and_then(ipv6);
    preceded(peek(char('[')), expect(address, |_| UrlErrorKind::Ipv6Address)).parse(input)
}

/// `address ["%" zone]`. `%25` is accepted before the zone of a link-local address, as in other URLs.
fn ipv6(input: &str) -> Rule<'_, String> {
    let address = verify(take_till(|c| c == '%'), |address: &str| address.parse::<Ipv6Addr>().is_ok());
    let percent = alt((terminated(tag("%25"), not(eof)), tag("%")));
    let zone = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~'));
    let text = |(address, zone): (&str, Option<&str>)| match zone {
        None => address.to_owned(),
        Some(zone) => format!("{address}%{zone}"),
    };
    all_consuming((address, opt(preceded(percent, zone)))).map(text).parse(input)
}
