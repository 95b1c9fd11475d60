//! The conventional command-line options of ORBs: `-ORBInitRef`, `-ORBListenEndpoints` and similar ones.

use std::time::Duration;

use giop_codec::code_set::CodeSetId;

use crate::orb::builder::OrbBuilder;
use crate::orb::{Orb, args_endpoints};

/// An error in an `-ORB` argument, a `ZORB_` variable or the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The last argument is an option without its value.
    #[error("{0} needs a value")]
    NoValue(String),
    /// The value of an option is invalid.
    #[error("{name} {value}: {reason}")]
    Value {
        /// The option, with `-ORB`, even if a variable or the file has set it.
        name: String,
        /// The value.
        value: String,
        /// The fault in the value.
        reason: String,
    },
    /// The option is unknown.
    #[error(
        "{0} is not an option of zorb; the options are -ORBInitRef, -ORBDefaultInitRef, -ORBListenEndpoints, -ORBendPoint, \
         -ORBendPointPublish, -ORBclientCallTimeOutPeriod, -ORBclientConnectTimeOutPeriod, -ORBMaxMessageSize, -ORBdefaultWCharCodeSet, -ORBConfigFile, -ORBtraceLevel, -ORBid, \
         -ORBServerId and, for TLS, -ORBsslCAFile, -ORBsslKeyFile, -ORBsslCertificateFile, -ORBsslKeyPassword, -ORBsslVerifyMode, -ORBsslCRLFile, \
         -ORBsslRevocationCheck, -ORBsslServerNames and -ORBsslOutgoing"
    )]
    Unknown(String),
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    File {
        /// The path of the file.
        path: String,
        /// The error of the operating system, or the fault in a line.
        reason: String,
    },
    /// A file of the `-ORBssl` options is missing or invalid. The text names the file and the fault.
    #[error("TLS: {0}")]
    Tls(String),
}

impl ArgsError {
    pub(crate) fn value(name: &str, value: &str, reason: impl Into<String>) -> Self {
        Self::Value { name: format!("-ORB{name}"), value: value.to_owned(), reason: reason.into() }
    }
}

impl Orb {
    /// Returns a builder, configured by the conventional options among the arguments. Also returns the
    /// remaining arguments.
    ///
    /// Some options can also be set by environment variables (`ZORB_INIT_REF`, `ZORB_DEFAULT_INIT_REF`,
    /// `ZORB_LISTEN`, `ZORB_PUBLISH`, `ZORB_TIMEOUT_MS`, `ZORB_CONNECT_TIMEOUT_MS`), and all options by a
    /// configuration file. `-ORBConfigFile` (omniORB's spelling is `-ORBconfigFile`) or the variable
    /// `ZORB_CONFIG` is the path of the file. In the file, this option has no effect.
    ///
    /// The lines of the file are `NAME = VALUE`, with names without `-ORB`. The first `#` of a line begins a
    /// comment, even within a value. Arguments override variables, and variables override the file. An option
    /// with several values is repeated on the command line; in a variable, the values are separated by `;`.
    ///
    /// Addresses are accepted in the forms of [`OrbBuilder::listen`] and [`OrbBuilder::publish`], and in
    /// the forms of other ORBs:
    ///
    /// * `-ORBendPoint` with `giop:tcp:HOST:PORT`, `giop:ssl:HOST:PORT` or `giop:unix:PATH`
    /// * `-ORBListenEndpoints` (also `-ORBEndpoint`) with
    ///   `iiop://HOST:PORT/hostname_in_ior=NAME&portspan=PORTS`. Several endpoints are separated by
    ///   semicolons, and several hosts of an endpoint by commas. `1.2@` may precede a host.
    /// * `-ORBendPointPublish` with `giop:tcp:HOST:PORT`, `giop:ssl:HOST:PORT`, `hostname`, `name`, `addr`,
    ///   `ipv4` and `ipv6`. Several values are separated by commas.
    ///
    /// `-ORBdefaultWCharCodeSet` is [`OrbBuilder::assume_wchar_set`]: `UTF-16`, `UCS-2`, `UCS-4`, or a number
    /// such as `0x00010109`.
    ///
    /// With the feature `tls`, there are also options for [`OrbBuilder::tls`]. omniORB has the first four of
    /// them, too. `Orb::tls` returns the resulting configuration, for example to reload the files:
    /// | option | value | variable |
    /// |---|---|---|
    /// | `-ORBsslCAFile` | the file with the certificates of trusted CAs | `ZORB_SSL_CA_FILE` |
    /// | `-ORBsslKeyFile` | the file with the private key, and with the certificate unless that is in another file | `ZORB_SSL_KEY_FILE` |
    /// | `-ORBsslKeyPassword` | the empty text, because encrypted keys are not supported | |
    /// | `-ORBsslVerifyMode` | whether clients must present a certificate: `none` (not requested, the default), `peer` (optional), or `peer,fail` (required) | |
    /// | `-ORBsslCertificateFile` | the file with the certificate | `ZORB_SSL_CERTIFICATE_FILE` |
    /// | `-ORBsslCRLFile` | the file with a revocation list; the option can be repeated | `ZORB_SSL_CRL_FILE` |
    /// | `-ORBsslRevocationCheck` | `strict` (default) or `listed` | |
    /// | `-ORBsslServerNames` | `checked` (default) or `unchecked` | |
    /// | `-ORBsslOutgoing` | `preferred` (default), `required` or `where-required` | |
    ///
    /// A server listens with TLS if the address is `-ORBListenEndpoints ssliop://HOST:PORT` or
    /// `-ORBendPoint giop:ssl:HOST:PORT`.
    ///
    /// # Errors
    /// [`ArgsError`] for an unknown `-ORB` option, a missing or invalid value, and for a configuration file
    /// or TLS files that are missing or invalid.
    pub fn from_args<I, S>(args: I) -> Result<(OrbBuilder, Vec<String>), ArgsError>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        from_args(args.into_iter().map(Into::into), |name| std::env::var(name).ok())
    }
}

fn from_args(
    mut args: impl Iterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(OrbBuilder, Vec<String>), ArgsError> {
    let mut options = Vec::new();
    let mut rest = Vec::new();
    while let Some(arg) = args.next() {
        if let Some(name) = arg.strip_prefix("-ORB") {
            let value = args.next().ok_or_else(|| ArgsError::NoValue(arg.clone()))?;
            options.push((name.to_owned(), value));
        } else {
            rest.push(arg);
        }
    }
    let mut settings = Vec::new();
    let file = options.iter().rev().find(|(name, _)| is_config_file(name)).map(|(_, path)| path.clone());
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
    let (tls_settings, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|(name, _)| name.starts_with("ssl"));
    let mut builder = Orb::builder();
    for (name, value) in settings {
        builder = apply(builder, &name, &value)?;
    }
    #[cfg(feature = "tls")]
    let builder = super::args_tls::apply(builder, &tls_settings)?;
    #[cfg(not(feature = "tls"))]
    if let Some((name, value)) = tls_settings.first() {
        let value = if name == "sslKeyPassword" { "***" } else { value };
        return Err(ArgsError::value(name, value, "TLS is not compiled in (feature `tls`)"));
    }
    Ok((builder, rest))
}

/// Returns whether the option is the path of the configuration file. omniORB uses the second spelling.
fn is_config_file(name: &str) -> bool {
    matches!(name, "ConfigFile" | "configFile")
}

/// Returns whether values of the list option `name` replace earlier ones of `other`, instead of adding to
/// them. Returns `false` for options that have only one value.
fn replaces(name: &str, other: &str) -> bool {
    let listen = |name| matches!(name, "ListenEndpoints" | "Endpoint" | "endPoint");
    listen(name) && listen(other) || matches!(name, "endPointPublish" | "sslCRLFile") && other == name
}

fn apply(builder: OrbBuilder, name: &str, value: &str) -> Result<OrbBuilder, ArgsError> {
    let wrong = |reason: &str| ArgsError::value(name, value, reason);
    let milliseconds =
        || value.parse().map(Duration::from_millis).map_err(|_| wrong("expected a number of milliseconds"));
    Ok(match name {
        "InitRef" => {
            let (name, url) = value.split_once('=').ok_or_else(|| wrong("expected NAME=URL"))?;
            builder.init_ref(name.trim(), url.trim())
        }
        "DefaultInitRef" => builder.default_init_ref(value),
        "ListenEndpoints" | "Endpoint" => {
            args_endpoints::listen_tao(builder, value).map_err(|reason| wrong(&reason))?
        }
        "endPoint" => args_endpoints::listen_omniorb(builder, value).map_err(|reason| wrong(&reason))?,
        "endPointPublish" => {
            value.split(',').fold(builder, |builder, rule| builder.publish(publish_template(rule)))
        }
        "clientCallTimeOutPeriod" => match milliseconds()? {
            Duration::ZERO => builder.no_timeout(),
            timeout => builder.timeout(timeout),
        },
        "clientConnectTimeOutPeriod" => builder.connect_timeout(milliseconds()?),
        // TAO's name of the option.
        "MaxMessageSize" => {
            builder.fragment_size(value.parse().map_err(|_| wrong("expected a number of bytes"))?)
        }
        // omniORB's name of the option.
        "defaultWCharCodeSet" => {
            let expected = "expected UTF-16, UCS-2, UCS-4 or a hexadecimal number such as 0x00010109";
            builder.assume_wchar_set(parse_wchar_set(value).ok_or_else(|| wrong(expected))?)
        }
        "traceLevel" => {
            let level: u32 =
                value.parse().map_err(|_| wrong("expected a number such as 0, 1, 2, 10 or 25"))?;
            #[cfg(feature = "trace-stderr")]
            crate::trace::log_to_stderr(level);
            #[cfg(not(feature = "trace-stderr"))]
            if level > 0 {
                return Err(wrong(
                    "this needs the feature `trace-stderr`; alternatively, set a subscriber of the `tracing` crate",
                ));
            }
            builder
        }
        // Names of the ORB and the server are accepted without effect. The configuration file was read
        // earlier.
        "id" | "ServerId" => builder,
        name if is_config_file(name) => builder,
        _ => return Err(ArgsError::Unknown(format!("-ORB{name}"))),
    })
}

fn parse_wchar_set(value: &str) -> Option<CodeSetId> {
    Some(match value.to_ascii_uppercase().as_str() {
        "UTF-16" => CodeSetId::UTF_16,
        "UCS-2" => CodeSetId::UCS_2,
        "UCS-4" => CodeSetId::UCS_4_LEVEL_3,
        number => CodeSetId(u32::from_str_radix(number.strip_prefix("0X")?, 16).ok()?),
    })
}

/// Converts a value of omniORB's `-ORBendPointPublish` into an argument of [`OrbBuilder::publish`]:
/// `hostname`, `name`, `addr`, `ipv4`, `ipv6`, `giop:tcp:HOST:PORT` and `giop:ssl:HOST:PORT`. Other values
/// are returned unchanged.
fn publish_template(rule: &str) -> String {
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
            .ok_or_else(|| wrong(format!("line {}: expected NAME = VALUE", number + 1)))?;
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
    fn options_of_the_orb_are_removed_from_the_arguments() {
        let (builder, rest) =
            parse(&["a", "-ORBInitRef", "NameService=corbaloc::h/N", "-v", "-ORBid", "x"], &[]).unwrap();
        assert_eq!(rest, ["a", "-v"]);
        assert_eq!(builder.core.config.client.initial_references["NameService"], "corbaloc::h/N");
    }

    #[test]
    fn arguments_override_variables() {
        let env = [("ZORB_INIT_REF", "A=1; B=2"), ("ZORB_TIMEOUT_MS", "5")];
        let (builder, _) = parse(&["-ORBInitRef", "A=3"], &env).unwrap();
        assert_eq!(
            (
                &*builder.core.config.client.initial_references["A"],
                &*builder.core.config.client.initial_references["B"]
            ),
            ("3", "2")
        );
        assert_eq!(builder.core.config.client.timeout, Some(Duration::from_millis(5)));
    }

    #[tokio::test]
    async fn assumed_wchar_set_is_a_name_or_a_number() {
        for (value, id) in [
            ("UTF-16", CodeSetId::UTF_16),
            ("utf-16", CodeSetId::UTF_16),
            ("UCS-2", CodeSetId::UCS_2),
            ("UCS-4", CodeSetId::UCS_4_LEVEL_3),
            ("0x00010109", CodeSetId::UTF_16),
        ] {
            let (builder, _) = parse(&["-ORBdefaultWCharCodeSet", value], &[]).unwrap();
            assert_eq!(builder.core.config.connection.assumed_wchar_set, id, "{value}");
        }
        for value in ["", "UTF-8", "66057", "0x", "0x1000000000"] {
            assert!(parse(&["-ORBdefaultWCharCodeSet", value], &[]).is_err(), "{value}");
        }
        let (builder, _) = parse(&["-ORBdefaultWCharCodeSet", "0x05010001"], &[]).unwrap();
        let error = builder.build().await.unwrap_err();
        assert!(error.to_string().contains("UTF-8 (0x05010001)"), "{error}");
    }

    #[test]
    fn configuration_file_is_read_with_both_spellings_of_the_option() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("options");
        std::fs::write(&path, "# what is fixed here\nclientCallTimeOutPeriod = 7 # ms\n").unwrap();
        let path = path.to_str().unwrap();
        for name in ["-ORBConfigFile", "-ORBconfigFile"] {
            let (builder, rest) = parse(&[name, path, "a"], &[]).unwrap();
            assert_eq!(builder.core.config.client.timeout, Some(Duration::from_millis(7)));
            assert_eq!(rest, ["a"]);
            let error = parse(&[name, "/nowhere/options"], &[]).unwrap_err();
            assert!(matches!(error, ArgsError::File { path, .. } if path == "/nowhere/options"));
        }
        std::fs::write(path, "no value").unwrap();
        assert!(parse(&[], &[("ZORB_CONFIG", path)]).unwrap_err().to_string().contains("line 1"));
    }

    // clause: ior.args.unknown
    #[tokio::test]
    async fn addresses_to_publish_are_accepted_in_the_forms_of_other_orbs() {
        let rules = "giop:tcp:public.example:8080,hostname,h:{port}";
        let (builder, _) =
            parse(&["-ORBendPoint", "giop:tcp:127.0.0.1:", "-ORBendPointPublish", rules], &[]).unwrap();
        let endpoints = builder.build().await.unwrap().endpoints();
        assert_eq!(endpoints[0], "public.example:8080");
        assert!(endpoints[1].starts_with(crate::endpoint::this_host_name()));
        assert!(endpoints[2].starts_with("h:") && endpoints.len() == 3);
        let (builder, _) =
            parse(&["-ORBListenEndpoints", "iiop://127.0.0.1:0/hostname_in_ior=nat"], &[]).unwrap();
        assert!(builder.build().await.unwrap().endpoints()[0].starts_with("nat:"));
        let (builder, _) =
            parse(&[], &[("ZORB_LISTEN", "iiop://127.0.0.1:0"), ("ZORB_PUBLISH", "a:1; b:2")]).unwrap();
        assert_eq!(builder.build().await.unwrap().endpoints(), ["a:1", "b:2"]);
        // Arguments replace the addresses of the variable.
        let env = [("ZORB_LISTEN", "iiop://127.0.0.1:0"), ("ZORB_PUBLISH", "a:1")];
        let (builder, _) =
            parse(&["-ORBendPointPublish", "c:3", "-ORBendPointPublish", "d:4"], &env).unwrap();
        assert_eq!(builder.build().await.unwrap().endpoints(), ["c:3", "d:4"]);
        for rule in ["addr", "ipv4", "ipv6"] {
            assert!(publish_template(rule).starts_with("{ip"), "{rule}");
        }
    }

    #[test]
    fn listening_addresses_are_accepted_in_the_forms_of_tao_and_omniorb() {
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
                (builder.listen.endpoints, builder.listen.publish_templates),
                (listens.into_iter().map(String::from).collect(), {
                    let publishes: Vec<&str> = publishes;
                    publishes.into_iter().map(String::from).collect()
                }),
                "{args:?}"
            );
        }
        for (args, says) in [
            (["-ORBListenEndpoints", "iiop://1.0@a:1"], "omit the version"),
            (["-ORBListenEndpoints", "iiop://a:1/portspan=0"], "from 1 to 65535"),
            (["-ORBListenEndpoints", "iiop://a/portspan=3"], "needs a port"),
            (["-ORBListenEndpoints", "iiop://a:1/priority=3"], "unknown option `priority=3`"),
            (["-ORBendPoint", "giop:dtls:h:1"], "giop:tcp:HOST:PORT"),
            (["-ORBendPoint", "giop:unix:"], "giop:unix:PATH"),
            (["-ORBendPoint", "giop:tcp:"], "giop:tcp:HOST:PORT"),
        ] {
            let error = parse(&args, &[]).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(args[0]), "{error}");
        }
    }

    #[tokio::test]
    async fn first_free_port_of_a_range_is_used() {
        let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let first = occupied.local_addr().unwrap().port();
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
    fn errors_name_the_option_and_the_expected_value() {
        assert_eq!(parse(&["-ORBInitRef"], &[]).unwrap_err(), ArgsError::NoValue("-ORBInitRef".into()));
        assert!(parse(&["-ORBnope", "1"], &[]).unwrap_err().to_string().contains("-ORBnope"));
        assert!(parse(&["-ORBInitRef", "x"], &[]).unwrap_err().to_string().contains("NAME=URL"));
        assert!(parse(&["-ORBendPoint", "x"], &[]).is_err());
        assert!(parse(&["-ORBMaxMessageSize", "many"], &[]).unwrap_err().to_string().contains("bytes"));
        let (builder, _) = parse(&["-ORBMaxMessageSize", "65536"], &[]).unwrap();
        assert_eq!(builder.core.config.connection.fragment_size, Some(65536));
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn options_of_tls_need_the_feature() {
        let error = parse(&["-ORBsslCAFile", "ca.pem"], &[]).unwrap_err().to_string();
        assert!(error.contains("-ORBsslCAFile ca.pem") && error.contains("feature `tls`"), "{error}");
    }

    #[cfg(feature = "tls")]
    fn error_text(args: &[&str], env: &[(&str, &str)]) -> String {
        parse(args, env).unwrap_err().to_string()
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_files_are_also_configured_by_variables() {
        let env = [("ZORB_SSL_CA_FILE", "/nowhere/a"), ("ZORB_SSL_CRL_FILE", "/nowhere/b; /nowhere/c")];
        assert!(error_text(&[], &env).contains("/nowhere/a"));
        assert!(error_text(&["-ORBsslCAFile", "/nowhere/d"], &env).contains("/nowhere/d"));
        assert!(error_text(&[], &env[1..]).contains("/nowhere/b"));
        // The argument replaces both lists of the variable.
        assert!(error_text(&["-ORBsslCRLFile", "/nowhere/e"], &env[1..]).contains("/nowhere/e"));
        let (key, certificate) =
            (("ZORB_SSL_KEY_FILE", "/nowhere/k"), ("ZORB_SSL_CERTIFICATE_FILE", "/nowhere/c"));
        assert!(error_text(&[], &[key]).contains("/nowhere/k"));
        assert!(error_text(&[], &[key, certificate]).contains("/nowhere/c"));
    }
}
