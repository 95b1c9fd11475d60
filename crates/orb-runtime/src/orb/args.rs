//! The conventional command line: `-ORBInitRef`, `-ORBListenEndpoints` and similar options.

use std::time::Duration;

use giop_codec::code_set::CodeSetId;

use crate::orb::builder::OrbBuilder;
use crate::orb::{Orb, args_endpoints};

/// An error in an `-ORB` argument or a `ZORB_` variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The last argument needs a value.
    #[error("{0} needs a value")]
    NoValue(String),
    /// The value has the wrong form.
    #[error("{name} {value}: {reason}")]
    Value {
        /// The argument.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong.
        reason: String,
    },
    /// The argument is not known.
    #[error(
        "{0} is no argument of zorb's; it knows -ORBInitRef, -ORBDefaultInitRef, -ORBListenEndpoints, -ORBendPoint, \
         -ORBendPointPublish, -ORBclientCallTimeOutPeriod, -ORBclientConnectTimeOutPeriod, -ORBMaxMessageSize, -ORBdefaultWCharCodeSet, -ORBConfigFile, -ORBtraceLevel, -ORBid, \
         -ORBServerId and, for TLS, -ORBsslCAFile, -ORBsslKeyFile, -ORBsslCertificateFile, -ORBsslKeyPassword, -ORBsslVerifyMode, -ORBsslCRLFile, \
         -ORBsslRevocationCheck, -ORBsslServerNames and -ORBsslOutgoing"
    )]
    Unknown(String),
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    File {
        /// Its path.
        path: String,
        /// The error of the system, or what is wrong with a line.
        reason: String,
    },
    /// The TLS configuration from the `-ORBssl` arguments failed: the file, and what is wrong with it.
    #[error("TLS: {0}")]
    Tls(String),
}

impl ArgsError {
    pub(crate) fn value(name: &str, value: &str, reason: impl Into<String>) -> Self {
        Self::Value { name: format!("-ORB{name}"), value: value.to_owned(), reason: reason.into() }
    }
}

impl Orb {
    /// Removes the conventional options from the arguments. Returns a builder and the remaining arguments.
    ///
    /// Arguments override the variables `ZORB_INIT_REF`, `ZORB_DEFAULT_INIT_REF`, `ZORB_LISTEN`,
    /// `ZORB_PUBLISH`, `ZORB_TIMEOUT_MS`, `ZORB_CONNECT_TIMEOUT_MS` and `ZORB_CONFIG`. Variables override the
    /// file that `-ORBConfigFile` (also `-ORBconfigFile`, as omniORB spells it) or `ZORB_CONFIG` names. Its
    /// lines are `NAME = VALUE`, with names without `-ORB`. All of them override the defaults. Lists are
    /// separated by `;` in variables and by further arguments on the command line.
    ///
    /// Addresses are accepted in the forms of [`OrbBuilder::listen`] and [`OrbBuilder::publish`], and in
    /// those of other ORBs:
    ///
    /// * `-ORBendPoint` with `giop:tcp:HOST:PORT`, `giop:ssl:HOST:PORT` or `giop:unix:PATH`
    /// * `-ORBListenEndpoints` (also `-ORBEndpoint`) with
    ///   `iiop://HOST:PORT/hostname_in_ior=NAME&portspan=PORTS`, several separated by semicolons, hosts by
    ///   commas, and `1.2@` before a host
    /// * `-ORBendPointPublish` with `giop:tcp:HOST:PORT`, `giop:ssl:HOST:PORT`, `hostname`, `name`, `addr`,
    ///   `ipv4` and `ipv6`, several separated by commas
    ///
    /// `-ORBdefaultWCharCodeSet` is [`OrbBuilder::assume_wchar_set`]: `UTF-16`, `UCS-2`, `UCS-4`, or a number
    /// such as `0x00010109`.
    ///
    /// With the feature `tls` there are arguments for [`OrbBuilder::tls`], the first of which have omniORB's
    /// names. `Orb::tls` returns the resulting configuration, for example to reload the files:
    /// | argument | value | variable |
    /// |---|---|---|
    /// | `-ORBsslCAFile` | the certificates of trusted CAs | `ZORB_SSL_CA_FILE` |
    /// | `-ORBsslKeyFile` | the private key, and the certificate unless that is in a file of its own | `ZORB_SSL_KEY_FILE` |
    /// | `-ORBsslKeyPassword` | nothing: keys are not encrypted | |
    /// | `-ORBsslVerifyMode` | what clients are asked for: `none` (default), `peer` (a certificate, which they may leave out), or `peer,fail` | |
    /// | `-ORBsslCertificateFile` | the certificate | `ZORB_SSL_CERTIFICATE_FILE` |
    /// | `-ORBsslCRLFile` | a revocation list; may be given again | `ZORB_SSL_CRL_FILE` |
    /// | `-ORBsslRevocationCheck` | `strict` (default) or `listed` | |
    /// | `-ORBsslServerNames` | `checked` (default) or `unchecked` | |
    /// | `-ORBsslOutgoing` | `preferred` (default), `required` or `where-required` | |
    ///
    /// Servers listen with TLS by `-ORBListenEndpoints ssliop://HOST:PORT` or
    /// `-ORBendPoint giop:ssl:HOST:PORT`.
    ///
    /// # Errors
    /// [`ArgsError`] for an unknown `-ORB` argument or a malformed value, and for TLS files that are missing
    /// or wrong.
    pub fn from_args<I, S>(args: I) -> Result<(OrbBuilder, Vec<String>), ArgsError>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        from_args(args.into_iter().map(Into::into), |name| std::env::var(name).ok())
    }
}

fn from_args(
    args: impl Iterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(OrbBuilder, Vec<String>), ArgsError> {
    let mut options = Vec::new();
    let mut rest = Vec::new();
    let mut args = args;
    while let Some(arg) = args.next() {
        if let Some(name) = arg.strip_prefix("-ORB") {
            let value = args.next().ok_or_else(|| ArgsError::NoValue(arg.clone()))?;
            options.push((name.to_owned(), value));
        } else {
            rest.push(arg);
        }
    }
    let mut settings = Vec::new();
    let file = options.iter().rev().find(|(name, _)| is_file(name)).map(|(_, path)| path.clone());
    if let Some(path) = file.or_else(|| variable("ZORB_CONFIG")) {
        read_file(&path, &mut settings)?;
    }
    for (name, option) in [
        ("ZORB_INIT_REF", "InitRef"),
        ("ZORB_DEFAULT_INIT_REF", "DefaultInitRef"),
        ("ZORB_LISTEN", "ListenEndpoints"),
        ("ZORB_PUBLISH", "endPointPublish"),
        ("ZORB_TIMEOUT_MS", "clientCallTimeOutPeriod"),
        ("ZORB_CONNECT_TIMEOUT_MS", "clientConnectTimeOutPeriod"),
        ("ZORB_SSL_CA_FILE", "sslCAFile"),
        ("ZORB_SSL_KEY_FILE", "sslKeyFile"),
        ("ZORB_SSL_CERTIFICATE_FILE", "sslCertificateFile"),
        ("ZORB_SSL_CRL_FILE", "sslCRLFile"),
    ] {
        let values = variable(name).unwrap_or_default();
        let values: Vec<&str> = values.split(';').map(str::trim).filter(|value| !value.is_empty()).collect();
        if !values.is_empty() {
            settings.retain(|(other, _): &(String, String)| !replaces(option, other));
        }
        settings.extend(values.into_iter().map(|value| (option.to_owned(), value.to_owned())));
    }
    settings.retain(|(other, _)| !options.iter().any(|(name, _)| replaces(name, other)));
    settings.extend(options);
    let (of_tls, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|(name, _)| name.starts_with("ssl"));
    let mut builder = Orb::builder();
    for (name, value) in settings {
        builder = apply(builder, &name, &value)?;
    }
    #[cfg(feature = "tls")]
    let builder = super::args_tls::apply(builder, &of_tls)?;
    #[cfg(not(feature = "tls"))]
    if let Some((name, value)) = of_tls.first() {
        let value = if name == "sslKeyPassword" { "***" } else { value };
        return Err(ArgsError::value(name, value, "TLS is not compiled in (feature `tls`)"));
    }
    Ok((builder, rest))
}

/// Returns whether the option names a configuration file. omniORB uses the second spelling.
fn is_file(name: &str) -> bool {
    matches!(name, "ConfigFile" | "configFile")
}

/// Returns whether one option replaces the other, instead of adding to it.
fn replaces(name: &str, other: &str) -> bool {
    let listen = |name| matches!(name, "ListenEndpoints" | "Endpoint" | "endPoint");
    listen(name) && listen(other) || matches!(name, "endPointPublish" | "sslCRLFile") && other == name
}

fn apply(builder: OrbBuilder, name: &str, value: &str) -> Result<OrbBuilder, ArgsError> {
    let wrong = |reason: &str| ArgsError::value(name, value, reason);
    let milliseconds = || {
        value.parse().map(Duration::from_millis).map_err(|_| wrong("a number of milliseconds is expected"))
    };
    Ok(match name {
        "InitRef" => {
            let (name, url) = value.split_once('=').ok_or_else(|| wrong("NAME=URL is expected"))?;
            builder.init_ref(name.trim(), url.trim())
        }
        "DefaultInitRef" => builder.default_init_ref(value),
        "ListenEndpoints" | "Endpoint" => {
            args_endpoints::tao(builder, value).map_err(|reason| wrong(&reason))?
        }
        "endPoint" => args_endpoints::omni(builder, value).map_err(|reason| wrong(&reason))?,
        "endPointPublish" => {
            value.split(',').fold(builder, |builder, rule| builder.publish(publish_rule(rule)))
        }
        "clientCallTimeOutPeriod" => match milliseconds()? {
            Duration::ZERO => builder.no_timeout(),
            timeout => builder.timeout(timeout),
        },
        "clientConnectTimeOutPeriod" => builder.connect_timeout(milliseconds()?),
        // TAO's name of the option.
        "MaxMessageSize" => {
            builder.fragment_size(value.parse().map_err(|_| wrong("a number of octets is expected"))?)
        }
        // omniORB's name of the option.
        "defaultWCharCodeSet" => {
            let known =
                wide_set(value).ok_or_else(|| wrong("UTF-16, UCS-2, UCS-4 or its number is expected"))?;
            builder.assume_wchar_set(known)
        }
        "traceLevel" => {
            let level: u32 = value.parse().map_err(|_| wrong("a level from 0 to 40 is expected"))?;
            #[cfg(feature = "trace-stderr")]
            crate::trace::to_stderr(level);
            #[cfg(not(feature = "trace-stderr"))]
            if level > 0 {
                return Err(wrong(
                    "it needs the feature `trace-stderr`, or set a subscriber of the `tracing` crate",
                ));
            }
            builder
        }
        // Names of the ORB and the server are accepted without effect. The configuration file was read
        // earlier.
        "id" | "ServerId" => builder,
        name if is_file(name) => builder,
        _ => return Err(ArgsError::Unknown(format!("-ORB{name}"))),
    })
}

/// Returns a code set of wide text by its name or its number, such as 0x00010109.
fn wide_set(value: &str) -> Option<CodeSetId> {
    Some(match value.to_ascii_uppercase().as_str() {
        "UTF-16" => CodeSetId::UTF_16,
        "UCS-2" => CodeSetId::UCS_2,
        "UCS-4" => CodeSetId::UCS_4_LEVEL_3,
        number => CodeSetId(u32::from_str_radix(number.strip_prefix("0X")?, 16).ok()?),
    })
}

/// Converts a rule of omniORB into a template: `hostname`, `addr`, `ipv4`, `ipv6`, `giop:tcp:HOST:PORT` and
/// `giop:ssl:HOST:PORT`. Other rules are returned unchanged.
fn publish_rule(rule: &str) -> String {
    match rule.trim() {
        "hostname" | "name" => "{hostname}".to_owned(),
        "addr" => "{ip}".to_owned(),
        "ipv4" => "{ipv4}".to_owned(),
        "ipv6" => "{ipv6}".to_owned(),
        rule => match rule.strip_prefix("giop:ssl:") {
            Some(address) => format!("ssliop://{address}"),
            None => rule.strip_prefix("giop:tcp:").unwrap_or(rule).to_owned(),
        },
    }
}

fn read_file(path: &str, settings: &mut Vec<(String, String)>) -> Result<(), ArgsError> {
    let wrong = |reason: String| ArgsError::File { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| wrong(format!("line {}: NAME = VALUE is expected", number + 1)))?;
        settings.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str], env: &[(&str, &str)]) -> Result<(OrbBuilder, Vec<String>), ArgsError> {
        from_args(args.iter().map(ToString::to_string), |name| {
            env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    // clause: poa.orb.init, ior.args.orb_init_ref, ior.args.orb_id, ior.args.removed
    #[test]
    fn orb_arguments_are_taken_out_and_the_rest_is_left() {
        let (builder, rest) =
            parse(&["a", "-ORBInitRef", "NameService=corbaloc::h/N", "-v", "-ORBid", "x"], &[]).unwrap();
        assert_eq!(rest, ["a", "-v"]);
        assert_eq!(builder.parts.config.client.initial["NameService"], "corbaloc::h/N");
    }

    #[test]
    fn arguments_win_over_the_environment() {
        let env = [("ZORB_INIT_REF", "A=1; B=2"), ("ZORB_TIMEOUT_MS", "5")];
        let (builder, _) = parse(&["-ORBInitRef", "A=3"], &env).unwrap();
        assert_eq!(
            (&*builder.parts.config.client.initial["A"], &*builder.parts.config.client.initial["B"]),
            ("3", "2")
        );
        assert_eq!(builder.parts.config.client.timeout, Some(Duration::from_millis(5)));
    }

    #[tokio::test]
    async fn the_wide_set_to_assume_is_named_as_omniorb_does() {
        for (value, id) in [
            ("UTF-16", CodeSetId::UTF_16),
            ("utf-16", CodeSetId::UTF_16),
            ("UCS-2", CodeSetId::UCS_2),
            ("UCS-4", CodeSetId::UCS_4_LEVEL_3),
            ("0x00010109", CodeSetId::UTF_16),
        ] {
            let (builder, _) = parse(&["-ORBdefaultWCharCodeSet", value], &[]).unwrap();
            assert_eq!(builder.parts.config.connection.assumed_wide, id, "{value}");
        }
        for value in ["", "UTF-8", "66057", "0x", "0x1000000000"] {
            assert!(parse(&["-ORBdefaultWCharCodeSet", value], &[]).is_err(), "{value}");
        }
        let (builder, _) = parse(&["-ORBdefaultWCharCodeSet", "0x05010001"], &[]).unwrap();
        let error = builder.build().await.unwrap_err();
        assert!(error.to_string().contains("UTF-8 (0x05010001)"), "{error}");
    }

    #[test]
    fn a_file_of_options_is_named_as_zorb_and_as_omniorb_spell_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("options");
        std::fs::write(&path, "# what is fixed here\nclientCallTimeOutPeriod = 7 # ms\n").unwrap();
        let path = path.to_str().unwrap();
        for name in ["-ORBConfigFile", "-ORBconfigFile"] {
            let (builder, rest) = parse(&[name, path, "a"], &[]).unwrap();
            assert_eq!(builder.parts.config.client.timeout, Some(Duration::from_millis(7)));
            assert_eq!(rest, ["a"]);
            let error = parse(&[name, "/nowhere/options"], &[]).unwrap_err();
            assert!(matches!(error, ArgsError::File { path, .. } if path == "/nowhere/options"));
        }
        std::fs::write(path, "no value").unwrap();
        assert!(parse(&[], &[("ZORB_CONFIG", path)]).unwrap_err().to_string().contains("line 1"));
    }

    // clause: ior.args.unknown
    #[tokio::test]
    async fn published_addresses_come_in_the_forms_of_other_orbs() {
        let rules = "giop:tcp:public.example:8080,hostname,h:{port}";
        let (builder, _) =
            parse(&["-ORBendPoint", "giop:tcp:127.0.0.1:", "-ORBendPointPublish", rules], &[]).unwrap();
        let endpoints = builder.build().await.unwrap().endpoints();
        assert_eq!(endpoints[0], "public.example:8080");
        assert!(endpoints[1].starts_with(crate::endpoint::this_machine()));
        assert!(endpoints[2].starts_with("h:") && endpoints.len() == 3);
        let (builder, _) =
            parse(&["-ORBListenEndpoints", "iiop://127.0.0.1:0/hostname_in_ior=nat"], &[]).unwrap();
        assert!(builder.build().await.unwrap().endpoints()[0].starts_with("nat:"));
        let (builder, _) =
            parse(&[], &[("ZORB_LISTEN", "iiop://127.0.0.1:0"), ("ZORB_PUBLISH", "a:1; b:2")]).unwrap();
        assert_eq!(builder.build().await.unwrap().endpoints(), ["a:1", "b:2"]);
        // Arguments replace variables, like those of listening addresses.
        let env = [("ZORB_LISTEN", "iiop://127.0.0.1:0"), ("ZORB_PUBLISH", "a:1")];
        let (builder, _) =
            parse(&["-ORBendPointPublish", "c:3", "-ORBendPointPublish", "d:4"], &env).unwrap();
        assert_eq!(builder.build().await.unwrap().endpoints(), ["c:3", "d:4"]);
        for rule in ["addr", "ipv4", "ipv6"] {
            assert!(publish_rule(rule).starts_with("{ip"), "{rule}");
        }
    }

    #[test]
    fn addresses_are_taken_as_users_of_tao_and_omniorb_write_them() {
        for (args, listens, publishes) in [
            (["-ORBListenEndpoints", "iiop://a:1;iiop://b:2"], vec!["iiop://a:1", "iiop://b:2"], vec![]),
            (["-ORBListenEndpoints", "iiop://1.2@a:1"], vec!["iiop://a:1"], vec![]),
            (
                ["-ORBListenEndpoints", "iiop://1.2@a:1,1.2@[::1]:2"],
                vec!["iiop://a:1", "iiop://[::1]:2"],
                vec![],
            ),
            (["-ORBListenEndpoints", "iiop://a"], vec!["iiop://a:0"], vec![]),
            (["-ORBListenEndpoints", "iiop://[fe80::1%eth0]"], vec!["iiop://[fe80::1%eth0]:0"], vec![]),
            (["-ORBListenEndpoints", "iiop://"], vec!["iiop://:0"], vec![]),
            (["-ORBListenEndpoints", "iiop://:9/portspan=3"], vec!["iiop://:9-11"], vec![]),
            (
                ["-ORBListenEndpoints", "iiop://h:9/hostname_in_ior=x&portspan=1&reuse_addr=1"],
                vec!["iiop://h:9"],
                vec!["x"],
            ),
            (
                ["-ORBListenEndpoints", "uiop:///tmp/a;ssliop://h:3"],
                vec!["uiop:///tmp/a", "ssliop://h:3"],
                vec![],
            ),
            (["-ORBEndpoint", "iiop://a:1"], vec!["iiop://a:1"], vec![]),
            (["-ORBendPoint", "giop:tcp::"], vec!["iiop://:0"], vec![]),
            (["-ORBendPoint", "giop:tcp:h"], vec!["iiop://h:0"], vec![]),
            (["-ORBendPoint", "giop:tcp:[::1]:7"], vec!["iiop://[::1]:7"], vec![]),
            (["-ORBendPoint", "giop:tcp::7000-7009"], vec!["iiop://:7000-7009"], vec![]),
            (["-ORBendPoint", "giop:ssl:h:3"], vec!["ssliop://h:3"], vec![]),
            (["-ORBendPoint", "giop:unix:/tmp/a"], vec!["uiop:///tmp/a"], vec![]),
        ] {
            let (builder, _) = parse(&args, &[]).unwrap();
            assert_eq!(
                (builder.listen.endpoints, builder.listen.publish),
                (listens.into_iter().map(String::from).collect(), {
                    let publishes: Vec<&str> = publishes;
                    publishes.into_iter().map(String::from).collect()
                }),
                "{args:?}"
            );
        }
        for (args, says) in [
            (["-ORBListenEndpoints", "iiop://1.0@a:1"], "leave the version out"),
            (["-ORBListenEndpoints", "iiop://a:1/portspan=0"], "from 1 to 65535"),
            (["-ORBListenEndpoints", "iiop://a/portspan=3"], "needs a port"),
            (["-ORBListenEndpoints", "iiop://a:1/priority=3"], "`priority=3` is not known"),
            (["-ORBendPoint", "giop:dtls:h:1"], "giop:tcp:HOST:PORT"),
            (["-ORBendPoint", "giop:unix:"], "giop:unix:PATH"),
            (["-ORBendPoint", "giop:tcp:"], "giop:tcp:HOST:PORT"),
        ] {
            let error = parse(&args, &[]).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(args[0]), "{error}");
        }
    }

    #[tokio::test]
    async fn the_first_free_port_of_a_range_is_taken() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let first = taken.local_addr().unwrap().port();
        let last = first.saturating_add(20);
        let orb = Orb::builder().listen(format!("iiop://127.0.0.1:{first}-{last}")).build().await.unwrap();
        let address: std::net::SocketAddr = orb.endpoints()[0].parse().unwrap();
        assert!((first + 1..=last).contains(&address.port()), "{address}");
        let full = Orb::builder().listen(format!("iiop://127.0.0.1:{first}-{first}")).build().await;
        assert!(full.unwrap_err().to_string().contains("in use"));
        for wrong in ["9-8", "0-3", "1-", "-1", "1-70000"] {
            let error = Orb::builder().listen(format!("iiop://127.0.0.1:{wrong}")).build().await.unwrap_err();
            assert!(error.to_string().contains("port"), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse(&["-ORBInitRef"], &[]).unwrap_err(), ArgsError::NoValue("-ORBInitRef".into()));
        assert!(parse(&["-ORBnope", "1"], &[]).unwrap_err().to_string().contains("-ORBnope"));
        assert!(parse(&["-ORBInitRef", "x"], &[]).unwrap_err().to_string().contains("NAME=URL"));
        assert!(parse(&["-ORBendPoint", "x"], &[]).is_err());
        assert!(parse(&["-ORBMaxMessageSize", "many"], &[]).unwrap_err().to_string().contains("octets"));
        let (builder, _) = parse(&["-ORBMaxMessageSize", "65536"], &[]).unwrap();
        assert_eq!(builder.parts.config.connection.fragment_size, Some(65536));
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn options_of_tls_need_the_feature() {
        let error = parse(&["-ORBsslCAFile", "ca.pem"], &[]).unwrap_err().to_string();
        assert!(error.contains("-ORBsslCAFile ca.pem") && error.contains("feature `tls`"), "{error}");
    }

    #[cfg(feature = "tls")]
    fn said(args: &[&str], env: &[(&str, &str)]) -> String {
        parse(args, env).unwrap_err().to_string()
    }

    #[cfg(feature = "tls")]
    #[test]
    fn files_of_tls_come_from_the_environment_too() {
        let env = [("ZORB_SSL_CA_FILE", "/nowhere/a"), ("ZORB_SSL_CRL_FILE", "/nowhere/b; /nowhere/c")];
        assert!(said(&[], &env).contains("/nowhere/a"));
        assert!(said(&["-ORBsslCAFile", "/nowhere/d"], &env).contains("/nowhere/d"));
        assert!(said(&[], &env[1..]).contains("/nowhere/b"));
        // The argument replaces both lists.
        assert!(said(&["-ORBsslCRLFile", "/nowhere/e"], &env[1..]).contains("/nowhere/e"));
        let (key, certificate) =
            (("ZORB_SSL_KEY_FILE", "/nowhere/k"), ("ZORB_SSL_CERTIFICATE_FILE", "/nowhere/c"));
        assert!(said(&[], &[key]).contains("/nowhere/k"));
        assert!(said(&[], &[key, certificate]).contains("/nowhere/c"));
    }
}
