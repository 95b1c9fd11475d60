//! Listening addresses in the command-line syntax of TAO and omniORB.

use crate::orb::builder::OrbBuilder;

/// Adds endpoints in TAO's forms, separated by semicolons: `iiop://[VERSION@]HOST[:PORT],…/OPTION=VALUE&…`,
/// the same with `ssliop://` in place of `iiop://`, and `uiop://PATH`. The error describes the fault.
pub(crate) fn listen_tao(mut builder: OrbBuilder, value: &str) -> Result<OrbBuilder, String> {
    for endpoint in value.split(';').map(str::trim).filter(|endpoint| !endpoint.is_empty()) {
        let Some((protocol, rest)) = endpoint.split_once("://").filter(|(name, _)| *name != "uiop") else {
            // The builder parses all other forms, and reports errors in them.
            builder = builder.listen(endpoint);
            continue;
        };
        let (addresses, options) = rest.split_once('/').unwrap_or((rest, ""));
        let mut span = 1;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            builder = match option.split_once('=') {
                Some(("hostname_in_ior", host)) => builder.publish(host),
                Some(("portspan", ports)) => {
                    span = ports.parse::<u16>().ok().filter(|ports| *ports > 0).ok_or_else(|| {
                        format!("portspan={ports}: expected a number of ports from 1 to 65535")
                    })?;
                    builder
                }
                // The option has no effect: an address can always be bound again after its server has ended.
                Some(("reuse_addr", "0" | "1")) => builder,
                _ => {
                    return Err(format!(
                        "unknown option `{option}`; the options are hostname_in_ior=HOST, portspan=PORTS and reuse_addr=1"
                    ));
                }
            };
        }
        for address in addresses.split(',') {
            builder = builder.listen(format!("{protocol}://{}", with_port(without_version(address)?, span)?));
        }
    }
    Ok(builder)
}

/// Adds an endpoint in omniORB's forms: `giop:tcp:HOST:PORT`, `giop:ssl:HOST:PORT` and `giop:unix:PATH`. A
/// port may be omitted or be a range. The error describes the fault.
pub(crate) fn listen_omniorb(builder: OrbBuilder, value: &str) -> Result<OrbBuilder, String> {
    let (protocol, address) = match value.strip_prefix("giop:").and_then(|rest| rest.split_once(':')) {
        Some(("unix", path)) if !path.is_empty() => return Ok(builder.listen(format!("uiop://{path}"))),
        Some(("tcp", address)) if !address.is_empty() => ("iiop", address),
        Some(("ssl", address)) if !address.is_empty() => ("ssliop", address),
        _ => return Err("expected giop:tcp:HOST:PORT, giop:ssl:HOST:PORT or giop:unix:PATH".to_owned()),
    };
    Ok(builder.listen(format!("{protocol}://{}", with_port(address, 1)?)))
}

fn without_version(address: &str) -> Result<&str, String> {
    match address.split_once('@') {
        None | Some(("1.2", _)) => Ok(address.rsplit_once('@').map_or(address, |(_, address)| address)),
        Some((version, _)) => Err(format!(
            "`{version}@`: references always have IIOP 1.2, which clients with earlier versions also accept; omit the version"
        )),
    }
}

/// Returns the address with port 0 if it has no port. If `span` is greater than 1, returns the address with a
/// range of `span` ports that starts at its port.
fn with_port(address: &str, span: u16) -> Result<String, String> {
    // A colon inside of brackets is part of an IPv6 address.
    let after_bracket = address.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match address.get(after_bracket..).and_then(|rest| rest.rfind(':')) {
        Some(at) => address.split_at(after_bracket + at),
        None => (address, ""),
    };
    let port = match port.trim_start_matches(':') {
        "" => "0",
        port => port,
    };
    let last = match port.parse::<u16>() {
        Ok(first) if span > 1 && first > 0 => Some(first.saturating_add(span - 1)),
        _ if span > 1 => {
            return Err(format!(
                "`{address}` needs a port, which is the first of the range of portspan={span}"
            ));
        }
        _ => None,
    };
    Ok(match last {
        Some(last) => format!("{host}:{port}-{last}"),
        None => format!("{host}:{port}"),
    })
}
