//! Object URLs: the grammar as a table, errors with positions and minor codes, and conversion to references.

use std::path::Path;

use giop_codec::Version;
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::ObjectKey;
use giop_codec::ior::{Ior, MAX_PROFILES};
use giop_codec::url::{Corbaloc, Corbaname, IiopAddress, ObjectUrl, UrlError, UrlErrorKind};
use proptest::prelude::*;

fn address(version: Version, host: &str, port: u16) -> IiopAddress {
    IiopAddress { version, host: host.into(), port, uses_tls: false }
}

fn iiop(addresses: &[IiopAddress], key: &[u8]) -> Corbaloc {
    Corbaloc::Iiop { addresses: addresses.to_vec(), key: ObjectKey::from(key) }
}

fn unix(version: Version, path: &str, key: &[u8]) -> Corbaloc {
    Corbaloc::Unix { version, path: path.into(), key: ObjectKey::from(key) }
}

fn rir(name: &str) -> Corbaloc {
    Corbaloc::Rir { name: name.into() }
}

// clause: ior.corbaloc.iiop, ior.corbaloc.version, ior.corbaloc.host, ior.corbaloc.port, ior.corbaloc.rir
// clause: ior.corbaloc.list, ior.corbaloc.key
#[test]
fn corbaloc_grammar() {
    use Version::{V1_0, V1_1, V1_2};
    let table = [
        ("corbaloc::host/Key", iiop(&[address(V1_0, "host", 2809)], b"Key")),
        ("corbaloc:iiop:host/Key", iiop(&[address(V1_0, "host", 2809)], b"Key")),
        ("CORBALOC:IIOP:host/Key", iiop(&[address(V1_0, "host", 2809)], b"Key")),
        (" corbaloc::host/Key\n", iiop(&[address(V1_0, "host", 2809)], b"Key")),
        ("corbaloc::1.2@host:1/Key", iiop(&[address(V1_2, "host", 1)], b"Key")),
        ("corbaloc::1.1@host:65535/Key", iiop(&[address(V1_1, "host", 65535)], b"Key")),
        ("corbaloc::1.9@h/Key", iiop(&[address(V1_2, "h", 2809)], b"Key")),
        ("corbaloc::/Key", iiop(&[address(V1_0, "", 2809)], b"Key")),
        ("corbaloc:iiop:/Key", iiop(&[address(V1_0, "", 2809)], b"Key")),
        ("corbaloc:iiop::99/Key", iiop(&[address(V1_0, "", 99)], b"Key")),
        ("corbaloc::[::1]/Key", iiop(&[address(V1_0, "::1", 2809)], b"Key")),
        ("corbaloc::1.2@[fe80::1]:7/Key", iiop(&[address(V1_2, "fe80::1", 7)], b"Key")),
        ("corbaloc::10.0.0.1:7/a/b", iiop(&[address(V1_0, "10.0.0.1", 7)], b"a/b")),
        (
            "corbaloc::a,iiop:1.1@b:2,:1.2@[::1]:3/Key",
            iiop(&[address(V1_0, "a", 2809), address(V1_1, "b", 2), address(V1_2, "::1", 3)], b"Key"),
        ),
        (
            "corbaloc::h/%00%fF%2f-_.!~*'();/:?@&=+$,",
            iiop(&[address(V1_0, "h", 2809)], b"\0\xff/-_.!~*'();/:?@&=+$,"),
        ),
        ("corbaloc:uiop:/tmp/socket|Key", unix(V1_0, "/tmp/socket", b"Key")),
        ("corbaloc:UIOP:1.2@relative|a/b%7C", unix(V1_2, "relative", b"a/b|")),
        ("corbaloc:uiop:1.1@/a%7cb@c:d,e%23|Key", unix(V1_1, "/a|b@c:d,e#", b"Key")),
        ("corbaloc:omniunix:/tmp/omni-x:/Key", unix(V1_0, "/tmp/omni-x", b"Key")),
        ("corbaloc:omniunix:1.2@/tmp/omni-x:/a:/b", unix(V1_2, "/tmp/omni-x", b"a:/b")),
        ("corbaloc:rir:", rir("NameService")),
        ("corbaloc:rir:/", rir("NameService")),
        ("corbaloc:RIR:/TradingService", rir("TradingService")),
        ("corbaloc:rir:/Trading%20Service", rir("Trading Service")),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse(), Ok(ObjectUrl::Corbaloc(expected.clone())), "{text}");
        assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
        assert_eq!(expected.to_string().parse(), Ok(expected), "{text} printed and read again");
    }
}

// clause: ior.corbaname, ior.corbaname.key, ior.corbaname.rir
#[test]
fn corbaname_grammar() {
    let host = |key: &[u8]| iiop(&[address(Version::V1_0, "h", 2809)], key);
    let table = [
        ("corbaname::h", host(b"NameService"), ""),
        ("corbaname::h/", host(b"NameService"), ""),
        ("corbaname::h#", host(b"NameService"), ""),
        ("corbaname:uiop:/a|Other#a", unix(Version::V1_0, "/a", b"Other"), "a"),
        ("corbaname:omniunix:1.2@/a:#a", unix(Version::V1_2, "/a", b"NameService"), "a"),
        ("corbaname::h#a/b", host(b"NameService"), "a/b"),
        ("corbaname::h/Other#a.kind/b", host(b"Other"), "a.kind/b"),
        ("corbaname:rir:#a", rir("NameService"), "a"),
        ("corbaname:rir:/Mine#a", rir("Mine"), "a"),
        ("CorbaName::h#%c3%a4%5c.%23", host(b"NameService"), "ä\\.#"),
    ];
    for (text, context, name) in table {
        let expected = Corbaname { context, name: name.into() };
        assert_eq!(text.parse(), Ok(ObjectUrl::Corbaname(expected.clone())), "{text}");
        assert_eq!(expected.to_string().parse(), Ok(expected), "{text} printed and read again");
    }
}

// clause: ior.url.file
#[test]
fn file_grammar() {
    let table = [
        ("file:///srv/x.ior", "/srv/x.ior"),
        ("file:/srv/x.ior", "/srv/x.ior"),
        ("FILE://localhost/srv/x.ior", "/srv/x.ior"),
        ("file://x.ior", "x.ior"),
        ("file:dir/x.ior", "dir/x.ior"),
        ("file:localhost/x", "localhost/x"),
        ("file:///with%20space/100%25", "/with space/100%"),
        ("file:///grüße/a b", "/grüße/a b"),
    ];
    for (text, path) in table {
        let url: ObjectUrl = text.parse().unwrap();
        let ObjectUrl::File(found) = &url else { panic!("{text} is a file") };
        assert_eq!(found, Path::new(path), "{text}");
        assert_eq!(url.to_string().parse(), Ok(url), "{text} printed and read again");
    }
}

// clause: ior.corbaloc.ssliop
#[test]
fn ssliop_is_a_profile_that_requires_tls() {
    for (text, expected, version, host, port) in [
        ("corbaloc:ssliop:h/K", "corbaloc:ssliop:1.2@h:684/K", Version::V1_2, "h", 684),
        ("corbaloc:ssliop:1.0@h:7/K", "corbaloc:ssliop:1.1@h:7/K", Version::V1_1, "h", 7),
        ("corbaloc:SSLIOP:1.1@[::1]:7/K", "corbaloc:ssliop:1.1@[::1]:7/K", Version::V1_1, "::1", 7),
    ] {
        let url: Corbaloc = text.parse().unwrap();
        assert_eq!(url.to_string(), expected);
        assert_eq!(expected.parse(), Ok(url.clone()));
        let profile = url.to_ior().unwrap().iiop_profile().unwrap();
        assert_eq!((profile.version, profile.host.as_str(), profile.port), (version, host, 0));
        let ssl = profile.ssl().unwrap();
        assert!(ssl.port == port && ssl.is_required() && profile.addresses().is_empty());
    }
    // An object that also has a plain-text address has a profile for each.
    let url: Corbaloc = "corbaloc::1.2@a:1,ssliop:1.2@a:2/K".parse().unwrap();
    let profiles: Vec<_> = url.to_ior().unwrap().iiop_profiles().collect();
    assert_eq!((profiles.len(), profiles[0].addresses().len(), profiles[0].ssl()), (2, 1, None));
    assert_eq!(profiles[1].ssl().unwrap().port, 2);
}

// clause: ior.corbaloc.bad_scheme, ior.corbaloc.bad_address, ior.corbaloc.bad_specific
// clause: ior.corbaloc.missing_key, ior.corbaname.bad, exc.minor.bad_param.7, exc.minor.bad_param.8
// clause: exc.minor.bad_param.9, exc.minor.bad_param.10
#[test]
fn errors_name_the_character_and_the_minor_code() {
    use UrlErrorKind as K;
    let table = [
        ("", 1, 7, K::UnknownScheme("".into())),
        ("NameService", 1, 7, K::UnknownScheme("NameService".into())),
        ("  http://x", 3, 7, K::UnknownScheme("http".into())),
        ("corbaloc", 1, 7, K::UnknownScheme("corbaloc".into())),
        ("corbaloc:", 10, 8, K::NoProtocol),
        ("corbaloc:host/Key", 10, 8, K::NoProtocol),
        ("corbaloc:/Key", 10, 8, K::NoProtocol),
        ("corbaloc:htiop:host/Key", 10, 8, K::UnknownProtocol("htiop".into())),
        ("corbaloc::a,,:b/Key", 13, 8, K::NoProtocol),
        ("corbaloc::a,uiop:b/Key", 13, 8, K::UnknownProtocol("uiop".into())),
        ("corbaloc::1@h/Key", 11, 8, K::Version),
        ("corbaloc::2.0@h/Key", 11, 8, K::Version),
        ("corbaloc::1.x@h/Key", 11, 8, K::Version),
        ("corbaloc::@h/Key", 11, 8, K::Version),
        ("corbaloc::a b/Key", 12, 8, K::HostCharacter(' ')),
        ("corbaloc::1.2@hö/Key", 16, 8, K::HostCharacter('ö')),
        ("corbaloc::ö,:a:x/Key", 11, 8, K::HostCharacter('ö')),
        ("corbaloc::[::1/Key", 11, 8, K::Ipv6Address),
        ("corbaloc::[host]/Key", 11, 8, K::Ipv6Address),
        ("corbaloc::::1/Key", 11, 8, K::Ipv6Brackets),
        ("corbaloc::[::1]x/Key", 16, 8, K::Port),
        ("corbaloc::h:/Key", 13, 8, K::Port),
        ("corbaloc::h:0/Key", 13, 8, K::Port),
        ("corbaloc::h:65536/Key", 13, 8, K::Port),
        ("corbaloc::h:+1/Key", 13, 8, K::Port),
        ("corbaloc::h:12x/Key", 13, 8, K::Port),
        ("corbaloc:rir:h/Key", 14, 8, K::RirNotAlone),
        ("corbaloc:rir:,:h/Key", 14, 8, K::RirNotAlone),
        ("corbaloc::h,rir:/Key", 13, 8, K::RirNotAlone),
        ("corbaloc::h/a b", 14, 9, K::Character(' ')),
        ("corbaloc::h/aä", 14, 9, K::Character('ä')),
        ("corbaloc::h/a#b", 14, 9, K::Character('#')),
        ("corbaloc::h/a%2", 14, 9, K::Escape),
        ("corbaloc::h/%g0", 13, 9, K::Escape),
        ("corbaloc:rir:/%ff", 15, 9, K::NotUtf8),
        ("corbaloc:uiop:|Key", 15, 8, K::NoSocketPath),
        ("corbaloc:uiop:1.2@|Key", 19, 8, K::NoSocketPath),
        ("corbaloc:omniunix::/Key", 19, 8, K::NoSocketPath),
        ("corbaloc:uiop:2.0@/a|Key", 15, 8, K::Version),
        ("corbaloc:uiop:/a%f|Key", 17, 9, K::Escape),
        ("corbaloc:uiop:/a", 17, 10, K::MissingKey),
        ("corbaloc:omniunix:/a:", 22, 10, K::MissingKey),
        ("corbaloc::h", 12, 10, K::MissingKey),
        ("corbaloc::h/", 13, 10, K::MissingKey),
        ("corbaname::h#a#b", 15, 9, K::Character('#')),
        ("corbaname::h#%", 14, 9, K::Escape),
        ("corbaname:h", 11, 8, K::NoProtocol),
        ("file:", 6, 9, K::EmptyPath),
        ("file://", 8, 9, K::EmptyPath),
        ("file:///%zz", 9, 9, K::Escape),
        ("file:///größe%zz", 14, 9, K::Escape),
    ];
    for (text, position, minor, kind) in table {
        let error = text.parse::<ObjectUrl>().unwrap_err();
        assert_eq!((error.position(), error.kind()), (position, &kind), "{text:?}: {error}");
        let exception = SystemException::from(error);
        assert_eq!(
            (exception.kind, exception.minor.code()),
            (SystemExceptionKind::BadParam, minor),
            "{text:?}"
        );
    }
    let error = "  IOR:0x".parse::<ObjectUrl>().unwrap_err();
    assert_eq!((error.position(), error.minor().code()), (8, 9));
    assert_eq!(error.to_string(), "object reference, character 8: hexadecimal digit expected, found 'x'");
    assert_eq!("corbaname::h".parse::<Corbaloc>().unwrap_err().minor().code(), 7);
}

// clause: ior.corbaloc.uiop
#[test]
fn a_corbaloc_of_a_unix_socket_becomes_a_profile_of_taos() {
    for text in ["corbaloc:uiop:1.1@/tmp/a|Key", "corbaloc:omniunix:1.1@/tmp/a:/Key"] {
        let ior = text.parse::<Corbaloc>().unwrap().to_ior().unwrap();
        let [profile] = ior.uiop_profiles().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((ior.type_id.as_str(), ior.profiles.len()), ("", 1));
        assert_eq!((profile.version, profile.path.as_str()), (Version::V1_1, "/tmp/a"));
        assert_eq!(profile.object_key.as_slice(), b"Key");
    }
}

/// Found by fuzzing: a reference with 65 addresses before IIOP 1.2 has 65 profiles, more than decoders
/// accept.
#[test]
fn a_corbaloc_has_as_many_addresses_as_a_reference_has_profiles() {
    for version in ["", "1.2@"] {
        let text = |n| format!("corbaloc:{}/Key", vec![format!(":{version}h"); n].join(","));
        let most = text(MAX_PROFILES).parse::<Corbaloc>().unwrap();
        let ior = most.to_ior().unwrap();
        assert_eq!(ior.to_string().parse().as_ref(), Ok(&ior));
        let error = text(MAX_PROFILES + 1).parse::<Corbaloc>().unwrap_err();
        assert_eq!(error.kind(), &UrlErrorKind::TooManyAddresses);
        assert_eq!(error.position(), 10 + MAX_PROFILES * (3 + version.len()));
        assert_eq!(error.minor().code(), 8);
        let Corbaloc::Iiop { mut addresses, key } = most else { panic!("not of addresses") };
        addresses.push(address(Version::V1_2, "h", 1));
        let error = Corbaloc::Iiop { addresses, key }.to_ior().unwrap_err();
        assert_eq!(error.kind(), &UrlErrorKind::TooManyAddresses);
    }
}

// clause: ior.corbaloc.list, ior.corbaloc.host
#[test]
fn a_corbaloc_becomes_a_reference_of_its_lowest_version() {
    let shape = |text: &str| {
        let ior = text.parse::<Corbaloc>().unwrap().to_ior().unwrap();
        assert_eq!(ior.type_id, "");
        ior.iiop_profiles()
            .map(|p| {
                assert_eq!(p.object_key.as_slice(), b"Key");
                let addresses: Vec<_> = p.addresses().into_iter().map(|(h, p)| format!("{h} {p}")).collect();
                (p.version, addresses.join(", "))
            })
            .collect::<Vec<_>>()
    };
    let v = |minor| Version::from_minor(minor).unwrap();
    assert_eq!(shape("corbaloc::h:1/Key"), [(v(0), "h 1".to_owned())]);
    assert_eq!(shape("corbaloc::1.2@/Key"), [(v(2), "localhost 2809".to_owned())]);
    assert_eq!(shape("corbaloc::1.2@a:1,:1.2@[::1]:2/Key"), [(v(2), "a 1, ::1 2".to_owned())]);
    assert_eq!(shape("corbaloc::1.2@a:1,:1.1@b:2/Key"), [(v(1), "a 1".to_owned()), (v(1), "b 2".to_owned())]);
    let error = "corbaloc:rir:/X".parse::<Corbaloc>().unwrap().to_ior().unwrap_err();
    assert_eq!(error.kind(), &UrlErrorKind::NoAddress);
}

#[test]
fn a_stringified_reference_is_an_object_url() {
    let text = Ior::nil().to_string();
    assert_eq!(text.parse(), Ok(ObjectUrl::Ior(Ior::nil())));
    assert_eq!(ObjectUrl::from(Ior::nil()).to_string(), text);
}

#[test]
fn addresses_of_an_interface_name_it() {
    let host = |text: &str| match text.parse::<Corbaloc>().unwrap() {
        Corbaloc::Iiop { addresses, .. } => addresses[0].host.clone(),
        other => panic!("{other}"),
    };
    for zone in ["%eth0", "%25eth0", "%2"] {
        let text = format!("corbaloc:iiop:1.2@[fe80::1{zone}]:2809/NameService");
        let wanted = format!("fe80::1{}", zone.replace("%25", "%"));
        assert_eq!(host(&text), wanted);
        let url: Corbaloc = text.parse().unwrap();
        assert_eq!(url.to_string().parse(), Ok(url));
    }
    for wrong in ["[fe80::1%]", "[fe80::1%a b]", "[1.2.3.4%eth0]"] {
        let error = format!("corbaloc::{wrong}/K").parse::<Corbaloc>().unwrap_err();
        assert_eq!(error.kind(), &UrlErrorKind::Ipv6Address, "{wrong}");
    }
}

#[test]
fn slashes_of_the_web_are_refused_with_the_right_spelling() {
    for (text, place) in [
        ("corbaloc:iiop://host:2809/Key", 15),
        ("corbaloc:iiop:1.2@//host:2809/Key", 19),
        ("corbaloc:://host/Key", 11),
        ("corbaname:iiop://host:2809#a/b", 16),
    ] {
        let error = text.parse::<ObjectUrl>().unwrap_err();
        assert_eq!(
            (error.kind(), error.position(), error.minor().code()),
            (&UrlErrorKind::Slashes, place, 8),
            "{text}"
        );
        assert!(error.to_string().contains("iiop:1.2@host:2809/Key"));
    }
    // Keys may begin with a slash.
    let url: Corbaloc = "corbaloc:iiop:1.2@host:1//Key".parse().unwrap();
    assert!(matches!(url, Corbaloc::Iiop { key, .. } if key.as_slice() == b"/Key"));
    assert!("corbaloc:iiop:/Key".parse::<Corbaloc>().is_ok());
}

#[test]
fn references_survive_mail_and_editors() {
    let ior = "corbaloc:iiop:1.2@host:2809/Key".parse::<Corbaloc>().unwrap().to_ior().unwrap();
    let text = ior.to_string();
    let (head, tail) = text.split_at(30);
    for pasted in [
        format!("{head}\r\n{tail}"),
        format!("{head} \t{tail}\n"),
        format!("\u{feff}{text}\n"),
        format!("{text}000000"),
        format!("{text}00\n0000"),
    ] {
        assert_eq!(pasted.parse(), Ok(ObjectUrl::Ior(ior.clone())), "{pasted:?}");
    }
    let position = |text: &str| text.parse::<Ior>().unwrap_err().position();
    assert_eq!(position(&format!("{head}\n{tail}x")), text.len() + 2);
    assert_eq!(position(&format!("{head}\n{tail}0")), text.len() + 2);
    assert_eq!(position(&format!("{head}\n{tail}01")), text.len() + 2);
    assert_eq!(position(&format!("{text} see above")), text.len() + 2);
}

/// Which error a text with several faults has, and the character that it names.
#[test]
fn text_with_several_faults_has_one_defined_error() {
    use UrlErrorKind as K;
    let table = [
        // White space and a byte order mark at the beginning count, several bytes of a character do not.
        ("\u{feff} \tcorbaloc::h:0/K", 16, K::Port),
        ("\u{3000}corbaloc::1.2@ö/K", 16, K::HostCharacter('ö')),
        ("\u{feff}\u{feff}corbaloc::h/K", 2, K::UnknownScheme("\u{feff}corbaloc".into())),
        (" ", 1, K::UnknownScheme("".into())),
        (":", 1, K::UnknownScheme("".into())),
        ("corbaloc :h/K", 1, K::UnknownScheme("corbaloc ".into())),
        ("\u{212a}orbaloc::h/K", 1, K::UnknownScheme("\u{212a}orbaloc".into())),
        // The key is expected after one more character, whatever that is.
        ("corbaloc::h ", 13, K::MissingKey),
        ("corbaloc::h\u{3000}\n", 13, K::MissingKey),
        ("corbaloc::h/ ", 13, K::MissingKey),
        ("corbaloc:uiop:/a|", 18, K::MissingKey),
        ("corbaloc:uiop:/a| \n", 19, K::MissingKey),
        ("corbaloc:uiop:/a:\n", 19, K::MissingKey),
        ("corbaloc:omniunix:/a:/", 23, K::MissingKey),
        ("corbaloc:omniunix:/a::", 23, K::MissingKey),
        // Two slashes precede all errors of addresses, and these that of the key.
        ("corbaloc://host/Key", 10, K::Slashes),
        ("corbaloc:a b,iiop://host", 19, K::Slashes),
        ("corbaloc:a:b@//host", 14, K::Slashes),
        ("corbaloc::h,//K", 13, K::Slashes),
        ("corbaloc:http://host/Key", 15, K::Slashes),
        ("corbaloc:http:/Key", 10, K::UnknownProtocol("http".into())),
        ("corbaloc:iiop::0//K", 16, K::Port),
        ("corbaloc::h:0/a b", 13, K::Port),
        ("corbaloc::h:0", 13, K::Port),
        ("corbaname://#//", 11, K::Slashes),
        ("corbaname::h:0/a b#c d", 14, K::Port),
        ("corbaname::h/a b#c d", 15, K::Character(' ')),
        ("corbaname::h#c d", 15, K::Character(' ')),
        ("corbaloc::a#b:c/K", 12, K::HostCharacter('#')),
        ("corbaloc:a#b:c/K", 10, K::UnknownProtocol("a#b".into())),
        // Addresses.
        ("corbaloc:rirx:/K", 10, K::UnknownProtocol("rirx".into())),
        ("corbaloc:rir/K", 10, K::NoProtocol),
        ("corbaloc::h,Rir:x/K", 13, K::RirNotAlone),
        ("corbaloc:rir:/a b", 16, K::Character(' ')),
        ("corbaloc:rir:,", 14, K::RirNotAlone),
        ("corbaloc:iıop:h/K", 10, K::UnknownProtocol("iıop".into())),
        ("corbaloc:\u{130}iop:h/K", 10, K::UnknownProtocol("\u{130}iop".into())),
        ("corbaloc::h,/K", 13, K::NoProtocol),
        ("corbaloc::1.2@1.2@h/K", 18, K::HostCharacter('@')),
        ("corbaloc::h@/K", 11, K::Version),
        ("corbaloc::1.@h/K", 11, K::Version),
        ("corbaloc::.1@h/K", 11, K::Version),
        ("corbaloc::1.2.3@h/K", 11, K::Version),
        ("corbaloc:: 1.2@h/K", 11, K::Version),
        ("corbaloc::1.\u{662}@h/K", 11, K::Version),
        ("corbaloc::[::1]@/K", 11, K::Version),
        ("corbaloc:ssliop:0.1@h/K", 17, K::Version),
        ("corbaloc::]/K", 11, K::HostCharacter(']')),
        ("corbaloc::h[/K", 12, K::HostCharacter('[')),
        ("corbaloc::[]/K", 11, K::Ipv6Address),
        ("corbaloc::1.2@[/K", 15, K::Ipv6Address),
        ("corbaloc::[::1%]/K", 11, K::Ipv6Address),
        ("corbaloc::[::1%25%]/K", 11, K::Ipv6Address),
        ("corbaloc::[::1]]:1/K", 16, K::Port),
        ("corbaloc::[::1]:/K", 17, K::Port),
        ("corbaloc::[::1]:1:2/K", 17, K::Port),
        ("corbaloc::1.2@fe80::1/K", 15, K::Ipv6Brackets),
        ("corbaloc::fe80::1%eth0/K", 16, K::Port),
        ("corbaloc::h:-1/K", 13, K::Port),
        ("corbaloc::h: 1/K", 13, K::Port),
        ("corbaloc::h:\u{661}/K", 13, K::Port),
        ("corbaloc::h:99999999999999999999/K", 13, K::Port),
        // Unix sockets.
        ("corbaloc:uiop:x@/a|K", 15, K::Version),
        ("corbaloc:uiop:1.2@a b|K", 20, K::Character(' ')),
        ("corbaloc:uiop:1.2@%ff|K d", 19, K::NotUtf8),
        ("corbaloc:uiop:1.2@|K d", 19, K::NoSocketPath),
        ("corbaloc:uiop:/a|K|d", 19, K::Character('|')),
        ("corbaloc:uiop:/a|%4", 18, K::Escape),
        ("corbaloc:uiop:", 15, K::NoSocketPath),
        ("corbaloc:uiop::", 15, K::NoSocketPath),
        ("corbaloc:uiop", 10, K::NoProtocol),
        ("corbaname:uiop:#a", 16, K::NoSocketPath),
        // Escapes and paths.
        ("corbaloc::h/%", 13, K::Escape),
        ("corbaloc::h/%+1", 13, K::Escape),
        ("corbaloc::h/%1ö", 13, K::Escape),
        ("corbaloc::h/a\u{7f}", 14, K::Character('\u{7f}')),
        ("corbaname::h#a%c3", 14, K::NotUtf8),
        ("file: ", 6, K::EmptyPath),
        ("file:///%ff", 8, K::NotUtf8),
        ("file://localhost/%g", 18, K::Escape),
    ];
    for (text, position, kind) in table {
        let error = text.parse::<ObjectUrl>().unwrap_err();
        assert_eq!((error.position(), error.kind()), (position, &kind), "{text:?}: {error}");
    }
    let unknown = |error: UrlError| (error.position(), error.kind().clone());
    let scheme = |name: &str| K::UnknownScheme(name.into());
    assert_eq!(unknown(" corbaloc".parse::<Corbaloc>().unwrap_err()), (2, scheme("")));
    assert_eq!(unknown("IOR:00".parse::<Corbaloc>().unwrap_err()), (1, scheme("IOR")));
    assert_eq!(unknown("corbaloc::h/K".parse::<Corbaname>().unwrap_err()), (1, scheme("corbaloc")));
    let long = "ö".repeat(40);
    assert_eq!(unknown(long.parse::<ObjectUrl>().unwrap_err()), (1, scheme(&"ö".repeat(32))));
}

/// Texts that a stricter grammar would reject.
#[test]
fn unusual_spellings_are_accepted() {
    for (text, expected) in [
        ("corbaloc::001.1@h/K", "corbaloc:iiop:1.1@h:2809/K"),
        ("corbaloc::1.00@h/K", "corbaloc:iiop:1.0@h:2809/K"),
        ("corbaloc::1.300@h/K", "corbaloc:iiop:1.2@h:2809/K"),
        ("corbaloc::1.99999999999999999999@h/K", "corbaloc:iiop:1.2@h:2809/K"),
        ("corbaloc::h:000000080/K", "corbaloc:iiop:1.0@h:80/K"),
        ("corbaloc::-._:1/K", "corbaloc:iiop:1.0@-._:1/K"),
        ("corbaloc::[::1%25]/K", "corbaloc:iiop:1.0@[::1%25]:2809/K"),
        ("corbaloc::[::1%2525]/K", "corbaloc:iiop:1.0@[::1%25]:2809/K"),
        ("corbaloc::[::1%25a~b]/K", "corbaloc:iiop:1.0@[::1%a~b]:2809/K"),
        ("corbaloc::[0:0:0:0:0:0:0:1]/K", "corbaloc:iiop:1.0@[0:0:0:0:0:0:0:1]:2809/K"),
        ("corbaloc::h//", "corbaloc:iiop:1.0@h:2809//"),
        ("corbaloc::1.2//K", "corbaloc:iiop:1.0@1.2:2809//K"),
        ("corbaloc:uiop:/a:|K", "corbaloc:uiop:1.0@/a:|K"),
        ("corbaloc:omniunix:/a:b:/K", "corbaloc:uiop:1.0@/a:b|K"),
        ("corbaloc:uiop:1.2@a@b|K", "corbaloc:uiop:1.2@a@b|K"),
        ("corbaname:uiop:/a:", "corbaname:uiop:1.0@/a|NameService#"),
        ("corbaname:uiop:/a|", "corbaname:uiop:1.0@/a|NameService#"),
        ("corbaname:omniunix:/a", "corbaname:uiop:1.0@/a|NameService#"),
        ("corbaname:rir:/#", "corbaname:rir:/NameService#"),
        ("corbaname:iiop:/#//", "corbaname:iiop:1.0@:2809/NameService#//"),
        ("file://localhost", "file:localhost"),
        ("file:////", "file:////"),
    ] {
        assert_eq!(text.parse::<ObjectUrl>().unwrap().to_string(), expected, "{text}");
    }
}

/// Programs show these lines to their users.
#[test]
fn message_says_what_was_expected_and_where() {
    for (text, message) in [
        (
            "http://x\n",
            r#"1: unknown or unexpected scheme "http" (object URLs begin with IOR:, corbaloc:, corbaname: or file:)"#,
        ),
        (
            "corbaloc:ht\u{202e}p:h/K",
            r#"10: protocol "ht\u{202e}p" is not allowed here (iiop: and ssliop: are; uiop: and omniunix: must be the only address)"#,
        ),
        ("corbaloc:host/K", "10: address expected, such as iiop:1.2@host:2809 or :host"),
        ("corbaloc::2.0@h/K", "11: version expected before '@': 1.0, 1.1 or 1.2"),
        ("corbaloc::a\tb/K", r"12: '\t' is not allowed in this part of an address"),
        ("corbaloc::[h]/K", "11: IPv6 address in brackets expected, such as [::1]"),
        ("corbaloc::::1/K", "11: an IPv6 address must be in brackets, such as [::1]:2809"),
        ("corbaloc::h:0/K", "13: port number from 1 to 65535 expected"),
        ("corbaloc:uiop:|K", "15: path of a Unix socket expected, such as uiop:1.2@/tmp/socket|Key"),
        ("corbaloc:://h/K", "11: unexpected `//` before the host: write iiop:1.2@host:2809/Key"),
        ("corbaloc::h,rir:/K", "13: rir: must be the only address, followed by / and a name or by nothing"),
        ("corbaloc::h/a b", "14: ' ' is not allowed here unless escaped as %HH"),
        ("corbaloc::h/%4", "13: two hexadecimal digits expected after '%'"),
        ("corbaname::h#%ff", "14: escaped bytes are not UTF-8 text"),
        ("file:", "6: path expected after file:"),
        ("corbaloc::h", "12: object key expected, such as /NameService"),
    ] {
        let error = text.parse::<ObjectUrl>().unwrap_err();
        assert_eq!(error.to_string(), format!("object URL, character {message}"), "{text:?}");
    }
    let many = format!("corbaloc:{}/K", [":h"; MAX_PROFILES + 1].join(","));
    let error = many.parse::<Corbaloc>().unwrap_err();
    assert_eq!(error.to_string(), "object URL, character 202: a URL must not have more than 64 addresses");
    let error = rir("X").to_ior().unwrap_err();
    assert_eq!(
        error.to_string(),
        "object URL, character 1: the URL has no address (a rir: URL only names an initial reference)"
    );
}

proptest! {
    #[test]
    fn corbaloc_round_trips(
        key in prop::collection::vec(any::<u8>(), 1..20),
        hosts in prop::collection::vec(("[a-z0-9.-]{0,10}", 1..=u16::MAX, 0..3_u8), 1..4),
        name in "\\PC{0,12}",
    ) {
        let addresses: Vec<_> =
            hosts.iter().map(|(host, port, minor)| address(Version::from_minor(*minor).unwrap(), host, *port)).collect();
        let url = iiop(&addresses, &key);
        prop_assert_eq!(url.to_string().parse(), Ok(url.clone()));
        let named = Corbaname { context: url, name };
        prop_assert_eq!(named.to_string().parse(), Ok(named));
    }

    #[test]
    fn invented_urls_never_panic(scheme in "(corbaloc:|corbaname:|file:|IOR:)", rest in "[\\[\\]:/@,%#a-z0-9.ö ]{0,30}") {
        if let Ok(url) = format!("{scheme}{rest}").parse::<ObjectUrl>() {
            prop_assert_eq!(url.to_string().parse(), Ok(url));
        }
    }
}
