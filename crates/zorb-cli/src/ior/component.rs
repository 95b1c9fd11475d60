//! Components: the parts of a profile other than address and key.

use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::code_set::{CodeSetComponent, CodeSetId};
use giop_codec::csi::{
    AssociationOptions, CompoundSecMech, ExportedName, IdentityTypes, Oid, TlsSecTrans, TransportMechanism,
};
use giop_codec::ior::{ComponentTag, Policy, SslSecTrans, TaggedComponent, open_encapsulation};
use giop_codec::{DecodeError, Printable};
use serde::Serialize;
use serde_json::{Value, json};

use super::key::{KeyView, hex, text};
use super::names;
use crate::output::{Node, Tone, told};

/// A component, and its meaning if known.
#[derive(Debug, Serialize)]
pub(super) struct ComponentView {
    tag: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    octets: usize,
    hex: String,
    /// The meaning; missing if the tag is unknown, or if the bytes do not match the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Set if the tag is known and the bytes do not match it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    corrupt: bool,
    #[serde(skip)]
    lines: Vec<String>,
}

/// A component's meaning, for programs and for people.
struct Meaning(Value, Vec<String>);

impl Meaning {
    fn line(value: Value, line: impl Into<String>) -> Self {
        Self(value, vec![line.into()])
    }
}

impl ComponentView {
    pub(super) fn of(component: &TaggedComponent) -> Self {
        let meaning = meaning(component);
        let corrupt = matches!(meaning, Some(None));
        let (value, lines) = match meaning.flatten() {
            Some(Meaning(value, lines)) => (Some(value), lines),
            None => (None, Vec::new()),
        };
        Self {
            tag: component.tag.0,
            name: names::of_component(component.tag.0),
            octets: component.data.len(),
            hex: hex(&component.data),
            value,
            corrupt,
            lines,
        }
    }

    pub(super) fn node(&self) -> Node {
        let name = names::shown(self.tag, self.name);
        if self.corrupt {
            let wrong = format!("not what its tag says, and ignored by ORBs: {}", self.hex);
            return Node::new(name, wrong).tone(Tone::Doubtful);
        }
        match self.value {
            Some(_) => Node::lines(name, &self.lines),
            None => Node::new(name, format!("{} ({} octets)", self.hex, self.octets)),
        }
    }
}

/// Returns the meaning of a component: `None` for unknown tags, `Some(None)` if the bytes do not match the
/// tag.
fn meaning(component: &TaggedComponent) -> Option<Option<Meaning>> {
    Some(match component.tag {
        ComponentTag::ORB_TYPE => component
            .as_orb_type()
            .map(|orb| Meaning::line(json!({ "number": orb.0, "orb": orb.name() }), orb.to_string())),
        ComponentTag::CODE_SETS => component.as_code_sets().map(|sets| {
            let (chars, wchars) = (&sets.for_char, &sets.for_wchar);
            Meaning(
                json!({ "char": code_sets_json(chars), "wchar": code_sets_json(wchars) }),
                vec![format!("char   {}", code_sets(chars)), format!("wchar  {}", code_sets(wchars))],
            )
        }),
        ComponentTag::POLICIES => component.as_policies().map(|policies| {
            let lines: Vec<String> = policies.0.iter().map(policy).collect();
            Meaning(json!(lines), lines)
        }),
        ComponentTag::ALTERNATE_IIOP_ADDRESS => component
            .as_alternate_address()
            .map(|(host, port)| Meaning::line(json!({ "host": host, "port": port }), address(&host, port))),
        ComponentTag::COMPLETE_OBJECT_KEY => read(component, |d| {
            let length = d.read_len(1)?;
            let key = KeyView::of(d.take(length)?);
            Ok(Meaning::line(json!(key), key.shown()))
        }),
        ComponentTag::ENDPOINT_ID_POSITION => read(component, |d| {
            let (begin, end) = (d.read_u16()?, d.read_u16()?);
            Ok(Meaning::line(
                json!({ "begin": begin, "end": end }),
                format!("octets {begin} to {end} of the key"),
            ))
        }),
        ComponentTag::LOCATION_POLICY => read(component, |d| {
            let number = d.read_u8()?;
            let word = ["never", "once per object", "once per operation", "always"].get(usize::from(number));
            let word =
                word.map_or_else(|| number.to_string(), |word| format!("ask where the object is: {word}"));
            Ok(Meaning::line(json!(number), word))
        }),
        ComponentTag::SSL_SEC_TRANS => component.as_ssl_sec_trans().map(ssl),
        ComponentTag::JAVA_CODEBASE => read(component, |d| {
            let urls = String::from(d.read_str_ascii()?);
            Ok(Meaning::line(json!(urls), told(&urls)))
        }),
        ComponentTag::FT_GROUP => read(component, |d| {
            let (major, minor) = (d.read_u8()?, d.read_u8()?);
            let domain = String::from(d.read_str_ascii()?);
            let (group, version) = (d.read_u64()?, d.read_u32()?);
            Ok(Meaning::line(
                json!({ "ft": format!("{major}.{minor}"), "domain": domain, "group": group, "version": version }),
                format!("group {group} of domain {:?}, version {version}", Printable::new(&domain)),
            ))
        }),
        ComponentTag::FT_PRIMARY | ComponentTag::FT_HEARTBEAT_ENABLED => read(component, |d| {
            let is = d.read_bool()?;
            Ok(Meaning::line(json!(is), if is { "yes" } else { "no" }))
        }),
        ComponentTag::OTS_POLICY => component
            .as_ots_policy()
            .map(|policy| Meaning::line(json!(format!("{policy:?}")), format!("{policy:?} (a transaction)"))),
        ComponentTag::INV_POLICY => component
            .as_invocation_policy()
            .map(|policy| Meaning::line(json!(format!("{policy:?}")), format!("{policy:?}"))),
        ComponentTag::CSI_SEC_MECH_LIST => component.as_csi_mechanisms().map(|list| {
            let (values, lines): (Vec<Value>, Vec<Vec<String>>) =
                list.mechanisms.iter().map(mechanism).unzip();
            let state = if list.stateful { "contexts may be kept" } else { "contexts are of one request" };
            let lines = std::iter::once(state.to_owned()).chain(lines.into_iter().flatten()).collect();
            Meaning(json!({ "stateful": list.stateful, "mechanisms": values }), lines)
        }),
        ComponentTag::TLS_SEC_TRANS => read(component, TlsSecTrans::decode).map(|tls| {
            let (value, line) = tls_transport(&tls);
            Meaning::line(value, line)
        }),
        ComponentTag::NULL_TAG => Some(Meaning::line(Value::Null, "nothing")),
        ComponentTag::RMI_CUSTOM_MAX_STREAM_FORMAT => read(component, |d| {
            let version = d.read_u8()?;
            Ok(Meaning::line(json!(version), format!("version {version}")))
        }),
        ComponentTag::OMNI_UNIX => component.as_omni_unix().map(|unix| {
            let line = format!("{} on the host {}", told(&unix.path), told(&unix.host));
            Meaning::line(json!({ "host": unix.host, "path": unix.path }), line)
        }),
        ComponentTag::OMNI_BIDIR => read(component, |d| {
            let from = String::from(d.read_str_ascii()?);
            Ok(Meaning::line(json!(from), told(&from)))
        }),
        ComponentTag::OMNI_PERSISTENT_ID => {
            let id = text(&component.data);
            Some(Meaning::line(json!(id), id))
        }
        ComponentTag::TAO_ENDPOINTS => read(component, tao_endpoints),
        ComponentTag::ZORB_BLOCKS => component
            .is_zorb_blocks()
            .then(|| Meaning::line(json!(true), "messages may say where their bulk data lies")),
        ComponentTag::ZORB_OPERATIONS => component.as_zorb_operations().map(|numbers| {
            let count = numbers.interfaces.len();
            let line = format!("operations may be called by number, of {count} interface(s)");
            Meaning::line(json!({ "interfaces": count }), line)
        }),
        _ => return None,
    })
}

fn read<T>(
    component: &TaggedComponent,
    f: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Option<T> {
    open_encapsulation(&component.data).and_then(|mut d| f(&mut d)).ok()
}

/// Returns host and port in the form of URLs.
pub(super) fn address(host: &str, port: u16) -> String {
    let shown = told(host);
    if host.contains(':') { format!("[{shown}]:{port}") } else { format!("{shown}:{port}") }
}

fn code_sets(one: &CodeSetComponent) -> String {
    if one.conversion.is_empty() {
        return one.native.to_string();
    }
    let others: Vec<String> = one.conversion.iter().map(ToString::to_string).collect();
    format!("{}, converts {}", one.native, others.join(", "))
}

fn code_sets_json(one: &CodeSetComponent) -> Value {
    let json = |id: CodeSetId| json!({ "number": id.0, "name": id.name() });
    json!({ "native": json(one.native), "conversion": one.conversion.iter().copied().map(json).collect::<Vec<_>>() })
}

fn policy(policy: &Policy) -> String {
    match policy {
        Policy::Other { kind, value } => format!("policy {} = {}", kind.0, hex(value)),
        known => format!("{known:?}"),
    }
}

fn ssl(ssl: SslSecTrans) -> Meaning {
    let (supports, requires) =
        (AssociationOptions(ssl.target_supports), AssociationOptions(ssl.target_requires));
    let must = if ssl.is_required() { "TLS is required" } else { "TLS is offered" };
    Meaning(
        json!({ "port": ssl.port, "supports": words(supports), "requires": words(requires), "required": ssl.is_required() }),
        vec![
            format!("port {}, {must}", ssl.port),
            format!("supports  {}", listed(supports)),
            format!("requires  {}", listed(requires)),
        ],
    )
}

fn mechanism(mechanism: &CompoundSecMech) -> (Value, Vec<String>) {
    let (transport, transport_line) = match &mechanism.transport {
        TransportMechanism::None => (Value::Null, "no protection below the messages".to_owned()),
        TransportMechanism::Tls(tls) => tls_transport(tls),
        TransportMechanism::Other(other) => {
            let name = names::shown(other.tag.0, names::of_component(other.tag.0));
            (json!({ "tag": other.tag.0, "hex": hex(&other.data) }), format!("transport {name}"))
        }
        _ => (Value::Null, "another transport".to_owned()),
    };
    let login = &mechanism.authentication;
    let realm = ExportedName::from_octets(&login.target_name);
    let realm = match realm.as_ref().and_then(ExportedName::as_gssup) {
        Some(realm) => realm.to_owned(),
        None => text(&login.target_name),
    };
    let assertion = &mechanism.attributes;
    let mut lines = vec![
        format!("mechanism that requires {}", listed(mechanism.target_requires)),
        format!("  transport  {transport_line}"),
    ];
    if login.supports != AssociationOptions::NONE {
        let must = if login.requires == AssociationOptions::NONE { "may" } else { "must" };
        lines.push(format!(
            "  login      clients {must} log in by {} to {:?}",
            oid(&login.mechanism),
            Printable::new(&realm)
        ));
    }
    if assertion.supports != AssociationOptions::NONE {
        let forms = identities(assertion.identity_types).join(", ");
        lines.push(format!("  identity   {}; as {forms}", listed(assertion.supports)));
    }
    let value = json!({
        "requires": words(mechanism.target_requires),
        "transport": transport,
        "login": {
            "supports": words(login.supports), "requires": words(login.requires),
            "mechanism": oid(&login.mechanism), "realm": realm,
        },
        "identity": {
            "supports": words(assertion.supports), "requires": words(assertion.requires),
            "types": identities(assertion.identity_types),
        },
    });
    (value, lines)
}

fn tls_transport(tls: &TlsSecTrans) -> (Value, String) {
    let addresses: Vec<String> = tls.addresses.iter().map(|at| address(&at.host, at.port)).collect();
    let line = format!("TLS at {}, requires {}", addresses.join(", "), listed(tls.requires));
    let addresses: Vec<Value> =
        tls.addresses.iter().map(|at| json!({ "host": at.host, "port": at.port })).collect();
    (json!({ "tls": addresses, "supports": words(tls.supports), "requires": words(tls.requires) }), line)
}

fn tao_endpoints(d: &mut Decoder<'_>) -> Result<Meaning, DecodeError> {
    // Minimum size: a string with its length and terminator, and two shorts.
    let count = d.read_len(9)?;
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..count {
        let host = String::from(d.read_str_ascii()?);
        let (port, priority) = (d.read_u16()?, d.read_i16()?);
        lines.push(format!("{}, priority {priority}", address(&host, port)));
        values.push(json!({ "host": host, "port": port, "priority": priority }));
    }
    Ok(Meaning(json!(values), lines))
}

fn oid(oid: &Oid) -> String {
    if *oid == Oid::GSSUP { "GSSUP (user and password)".to_owned() } else { hex(oid.as_der()) }
}

fn words(options: AssociationOptions) -> Vec<&'static str> {
    type A = AssociationOptions;
    let all = [
        (A::NO_PROTECTION, "NoProtection"),
        (A::INTEGRITY, "Integrity"),
        (A::CONFIDENTIALITY, "Confidentiality"),
        (A::DETECT_REPLAY, "DetectReplay"),
        (A::DETECT_MISORDERING, "DetectMisordering"),
        (A::ESTABLISH_TRUST_IN_TARGET, "EstablishTrustInTarget"),
        (A::ESTABLISH_TRUST_IN_CLIENT, "EstablishTrustInClient"),
        (A::NO_DELEGATION, "NoDelegation"),
        (A::SIMPLE_DELEGATION, "SimpleDelegation"),
        (A::COMPOSITE_DELEGATION, "CompositeDelegation"),
        (A::IDENTITY_ASSERTION, "IdentityAssertion"),
        (A::DELEGATION_BY_CLIENT, "DelegationByClient"),
    ];
    all.into_iter().filter(|(bit, _)| options.has(*bit)).map(|(_, word)| word).collect()
}

fn listed(options: AssociationOptions) -> String {
    let words = words(options);
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn identities(types: IdentityTypes) -> Vec<&'static str> {
    let all = [
        (IdentityTypes::ANONYMOUS, "anonymous"),
        (IdentityTypes::PRINCIPAL_NAME, "principal name"),
        (IdentityTypes::X509_CERT_CHAIN, "certificate chain"),
        (IdentityTypes::DISTINGUISHED_NAME, "distinguished name"),
    ];
    all.into_iter().filter(|(bit, _)| types.has(*bit)).map(|(_, word)| word).collect()
}
