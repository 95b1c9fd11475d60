//! `zorb ior make`: creates a reference to an object at an address.

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use giop_codec::Version;
use giop_codec::code_set::CodeSetComponentInfo;
use giop_codec::giop::ObjectKey;
use giop_codec::ior::{IiopProfile, Ior, SslSecTrans, TaggedComponent};
use giop_codec::url::ObjectUrl;

use super::dump::Dump;
use crate::failure::Verdict;
use crate::output::{Node, Output};

const EXAMPLES: &str = "\
Examples:
  zorb ior make --type IDL:Bank/Account:1.0 --at example.org:4711 --key Account
  zorb ior make --at '[::1]:4711' --at example.org:4711 --key-hex 00ff01
  zorb ior make corbaloc::1.2@example.org:2809/NameService --type IDL:omg.org/CosNaming/NamingContext:1.0";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MakeArgs {
    /// A corbaloc: URL or IOR: with address and key, instead of --at and --key
    #[arg(value_name = "URL", conflicts_with_all = ["at", "key", "key_hex"], required_unless_present = "at")]
    url: Option<String>,
    /// The repository id, such as IDL:Module/Interface:1.0; if it is missing, clients query the object
    #[arg(long = "type", value_name = "ID", default_value = "")]
    type_id: String,
    /// The address of the server; may be repeated for alternate addresses
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_host_and_port)]
    at: Vec<(String, u16)>,
    /// The object key, as text
    #[arg(long, value_name = "TEXT", conflicts_with = "key_hex", required_unless_present_any = ["key_hex", "url"])]
    key: Option<String>,
    /// The object key, in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse_hex)]
    key_hex: Option<KeyBytes>,
    /// The version of IIOP for --at; URL contains its own version
    #[arg(
        long = "iiop", value_name = "VERSION", default_value = "1.2",
        value_parser = PossibleValuesParser::new(["1.0", "1.1", "1.2"]).map(|text| iiop_version(&text))
    )]
    version: Version,
    /// Declare that the server supports UTF-8 and UTF-16, as zorb does (default: ISO 8859-1)
    #[arg(long)]
    code_sets: bool,
    /// An additional port for TLS; TLS is required if --at has port 0
    #[arg(long, value_name = "PORT")]
    ssl_port: Option<u16>,
}

fn iiop_version(text: &str) -> Version {
    match text {
        "1.0" => Version::V1_0,
        "1.1" => Version::V1_1,
        _ => Version::V1_2,
    }
}

#[derive(Debug, Clone)]
struct KeyBytes(Vec<u8>);

/// Parses `HOST:PORT`. An IPv6 address is enclosed in brackets.
pub(crate) fn parse_host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || "expected HOST:PORT, such as example.org:4711 or [::1]:4711".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| format!("{port:?} is not a port number from 0 to 65535"))?;
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match ipv6 {
        None if host.contains([':', '[', ']']) => {
            Err("an IPv6 address must be enclosed in brackets: [::1]:4711".to_owned())
        }
        _ if ipv6.unwrap_or(host).is_empty() || host.contains('\0') => Err(wrong()),
        _ => Ok((ipv6.unwrap_or(host).to_owned(), port)),
    }
}

fn parse_hex(text: &str) -> Result<KeyBytes, String> {
    let digits: Vec<u32> = text
        .chars()
        .map(|c| c.to_digit(16).ok_or_else(|| format!("{c:?} is not a hexadecimal digit")))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err("the last byte has only one digit".to_owned());
    }
    Ok(KeyBytes(
        digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
            .collect(),
    ))
}

pub(super) fn run(args: &MakeArgs, output: &Output) -> anyhow::Result<Verdict> {
    let ior = create(args)?;
    let dump = Dump::new(&ObjectUrl::Ior(ior.clone()))?;
    output.show(&dump, |_| vec![Node::new(ior.to_string(), "")])?;
    Ok(Verdict::Good)
}

fn create(args: &MakeArgs) -> anyhow::Result<Ior> {
    let version = args.version;
    let mut profiles: Vec<IiopProfile> = match &args.url {
        Some(url) => {
            let ior = match url.parse()? {
                ObjectUrl::Corbaloc(url) => url.to_ior()?,
                ObjectUrl::Ior(ior) => ior,
                _ => bail!("{url}: only corbaloc: and IOR: contain the address of an object"),
            };
            ior.iiop_profiles().collect()
        }
        None => {
            let key = match (&args.key, &args.key_hex) {
                (Some(text), _) => text.clone().into_bytes(),
                (None, Some(KeyBytes(bytes))) => bytes.clone(),
                (None, None) => Vec::new(),
            };
            let ((host, port), alternates) =
                args.at.split_first().context("the address is missing; use --at HOST:PORT")?;
            let mut profile = IiopProfile::new(host, *port, ObjectKey::from(key)).with_version(version);
            if !alternates.is_empty() && version != Version::V1_2 {
                bail!(
                    "IIOP 1.{} does not support alternate addresses; use --at only once, or --iiop 1.2",
                    version.minor()
                );
            }
            for (host, port) in alternates {
                profile = profile.with_component(TaggedComponent::alternate_address(host, *port)?);
            }
            vec![profile]
        }
    };
    if profiles.iter().any(|profile| profile.version == Version::V1_0)
        && (args.code_sets || args.ssl_port.is_some())
    {
        bail!(
            "IIOP 1.0 does not support --code-sets and --ssl-port; use IIOP 1.1 or 1.2 (in a URL: corbaloc::1.2@HOST)"
        );
    }
    for profile in &mut profiles {
        if args.code_sets {
            profile.components.push(TaggedComponent::code_sets(&CodeSetComponentInfo::zorb_default())?);
        }
        if let Some(port) = args.ssl_port {
            let requires =
                if profile.port == 0 { SslSecTrans::PROTECTED } else { SslSecTrans::NO_PROTECTION };
            let supports = SslSecTrans::PROTECTED
                | SslSecTrans::DETECT_REPLAY_AND_MISORDERING
                | SslSecTrans::TRUST_IN_TARGET
                | SslSecTrans::TRUST_IN_CLIENT
                | requires;
            profile.components.push(TaggedComponent::ssl_sec_trans(SslSecTrans {
                target_supports: supports,
                target_requires: requires,
                port,
            }));
        }
    }
    Ok(Ior::from_profiles(&args.type_id, &profiles)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        assert_eq!(parse_host_and_port("h:1"), Ok(("h".into(), 1)));
        assert_eq!(parse_host_and_port("[::1]:2809"), Ok(("::1".into(), 2809)));
        for wrong in ["", "h", ":1", "h:", "h:65536", "::1:1", "[::1:1", "[]:1"] {
            assert!(parse_host_and_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hexadecimal_keys_are_parsed() {
        assert_eq!(parse_hex("00fF").unwrap().0, [0, 255]);
        assert!(parse_hex("0").unwrap_err().contains("one digit"));
        assert!(parse_hex("0g").unwrap_err().contains("'g'"));
    }
}
