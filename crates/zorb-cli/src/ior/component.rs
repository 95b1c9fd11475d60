//! The components of a profile. They contain information in addition to the address and the object key.

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
use crate::output::{Node, Tone, printable};

/// A component, and its meaning if it is known. The field names are the JSON keys, unless renamed.
#[derive(Debug, Serialize)]
pub(super) struct ComponentView {
    tag: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(rename = "octets")]
    size: usize,
    hex: String,
    /// The meaning. `None` if the tag is unknown or the component is corrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// True if the tag is known, but the data does not have the format of the tag.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    corrupt: bool,
    #[serde(skip)]
    lines: Vec<String>,
}

/// The meaning of a component, as JSON and as lines of text.
struct Meaning(Value, Vec<String>);

impl Meaning {
    fn line(value: Value, line: impl Into<String>) -> Self {
        Self(value, vec![line.into()])
    }
}

impl ComponentView {
    pub(super) fn new(component: &TaggedComponent) -> Self {
        let meaning = meaning(component);
        let is_corrupt = matches!(meaning, Some(None));
        let (value, lines) = match meaning.flatten() {
            Some(Meaning(value, lines)) => (Some(value), lines),
            None => (None, Vec::new()),
        };
        Self {
            tag: component.tag.0,
            name: names::component_name(component.tag.0),
            size: component.data.len(),
            hex: hex(&component.data),
            value,
            corrupt: is_corrupt,
            lines,
        }
    }

    pub(super) fn node(&self) -> Node {
        let name = names::tag_text(self.tag, self.name);
        if self.corrupt {
            let text = format!("corrupt, and therefore ignored by ORBs: {}", self.hex);
            return Node::new(name, text).tone(Tone::Doubtful);
        }
        match self.value {
            Some(_) => Node::lines(name, &self.lines),
            None => Node::new(name, format!("{} ({} bytes)", self.hex, self.size)),
        }
    }
}

/// Returns the meaning of a component: `None` if the tag is unknown, and `Some(None)` if the data is corrupt.
fn meaning(component: &TaggedComponent) -> Option<Option<Meaning>> {
    Some(match component.tag {
        ComponentTag::ORB_TYPE => component
            .as_orb_type()
            .map(|orb| Meaning::line(json!({ "number": orb.0, "orb": orb.name() }), orb.to_string())),
        ComponentTag::CODE_SETS => component.as_code_sets().map(|sets| {
            let (chars, wchars) = (&sets.for_char, &sets.for_wchar);
            Meaning(
                json!({ "char": code_sets_json(chars), "wchar": code_sets_json(wchars) }),
                vec![
                    format!("char   {}", code_sets_text(chars)),
                    format!("wchar  {}", code_sets_text(wchars)),
                ],
            )
        }),
        ComponentTag::POLICIES => component.as_policies().map(|policies| {
            let lines: Vec<String> = policies.0.iter().map(policy_text).collect();
            Meaning(json!(lines), lines)
        }),
        ComponentTag::ALTERNATE_IIOP_ADDRESS => component.as_alternate_address().map(|(host, port)| {
            Meaning::line(json!({ "host": host, "port": port }), address_text(&host, port))
        }),
        ComponentTag::COMPLETE_OBJECT_KEY => read(component, |d| {
            let length = d.read_len(1)?;
            let key = KeyView::new(d.take(length)?);
            Ok(Meaning::line(json!(key), key.display()))
        }),
        ComponentTag::ENDPOINT_ID_POSITION => read(component, |d| {
            let (begin, end) = (d.read_u16()?, d.read_u16()?);
            Ok(Meaning::line(
                json!({ "begin": begin, "end": end }),
                format!("bytes {begin} to {end} of the key"),
            ))
        }),
        ComponentTag::LOCATION_POLICY => read(component, |d| {
            let number = d.read_u8()?;
            let frequency =
                ["never", "once per object", "once per operation", "always"].get(usize::from(number));
            let text = frequency.map_or_else(
                || number.to_string(),
                |frequency| format!("clients should send LocateRequest: {frequency}"),
            );
            Ok(Meaning::line(json!(number), text))
        }),
        ComponentTag::SSL_SEC_TRANS => component.as_ssl_sec_trans().map(ssl_meaning),
        ComponentTag::JAVA_CODEBASE | ComponentTag::OMNI_BIDIR => read(component, |d| {
            let text = String::from(d.read_unconverted_str()?);
            Ok(Meaning::line(json!(text), printable(&text)))
        }),
        ComponentTag::FT_GROUP => read(component, |d| {
            let (major, minor) = (d.read_u8()?, d.read_u8()?);
            let domain = String::from(d.read_unconverted_str()?);
            let (group, version) = (d.read_u64()?, d.read_u32()?);
            Ok(Meaning::line(
                json!({ "ft": format!("{major}.{minor}"), "domain": domain, "group": group, "version": version }),
                format!("group {group} of domain {:?}, version {version}", Printable::new(&domain)),
            ))
        }),
        ComponentTag::FT_PRIMARY | ComponentTag::FT_HEARTBEAT_ENABLED => read(component, |d| {
            let value = d.read_bool()?;
            Ok(Meaning::line(json!(value), if value { "yes" } else { "no" }))
        }),
        ComponentTag::OTS_POLICY => component.as_ots_policy().map(|policy| {
            Meaning::line(json!(format!("{policy:?}")), format!("{policy:?} (of transactions)"))
        }),
        ComponentTag::INV_POLICY => component
            .as_invocation_policy()
            .map(|policy| Meaning::line(json!(format!("{policy:?}")), format!("{policy:?}"))),
        ComponentTag::CSI_SEC_MECH_LIST => component.as_csi_mechanisms().map(|list| {
            let (values, lines): (Vec<Value>, Vec<Vec<String>>) =
                list.mechanisms.iter().map(mechanism_meaning).unzip();
            let state = if list.stateful {
                "security contexts can be reused"
            } else {
                "each request needs its own security context"
            };
            let lines = std::iter::once(state.to_owned()).chain(lines.into_iter().flatten()).collect();
            Meaning(json!({ "stateful": list.stateful, "mechanisms": values }), lines)
        }),
        ComponentTag::TLS_SEC_TRANS => read(component, TlsSecTrans::decode).map(|tls| {
            let (value, line) = tls_transport(&tls);
            Meaning::line(value, line)
        }),
        ComponentTag::NULL_TAG => Some(Meaning::line(Value::Null, "no information")),
        ComponentTag::RMI_CUSTOM_MAX_STREAM_FORMAT => read(component, |d| {
            let version = d.read_u8()?;
            Ok(Meaning::line(json!(version), format!("version {version}")))
        }),
        ComponentTag::OMNI_UNIX => component.as_omni_unix().map(|unix| {
            let line = format!("{} on the host {}", printable(&unix.path), printable(&unix.host));
            Meaning::line(json!({ "host": unix.host, "path": unix.path }), line)
        }),
        ComponentTag::OMNI_PERSISTENT_ID => {
            let id = text(&component.data);
            Some(Meaning::line(json!(id), id))
        }
        ComponentTag::TAO_ENDPOINTS => read(component, tao_endpoints),
        ComponentTag::ZORB_BLOCKS => component.is_zorb_blocks().then(|| {
            Meaning::line(json!(true), "messages may contain a list of the blocks of bulk data in them")
        }),
        ComponentTag::ZORB_OPERATIONS => component.as_zorb_operations().map(|numbers| {
            let count = numbers.interfaces.len();
            let line = format!("operations of {count} interface(s) may be called by number");
            Meaning::line(json!({ "interfaces": count }), line)
        }),
        _ => return None,
    })
}

fn read<T>(
    component: &TaggedComponent,
    decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Option<T> {
    open_encapsulation(&component.data).and_then(|mut d| decode(&mut d)).ok()
}

pub(crate) fn address_text(host: &str, port: u16) -> String {
    let printable_host = printable(host);
    match host.contains(':') {
        true => format!("[{printable_host}]:{port}"),
        false => format!("{printable_host}:{port}"),
    }
}

fn code_sets_text(code_sets: &CodeSetComponent) -> String {
    if code_sets.conversion.is_empty() {
        return code_sets.native.to_string();
    }
    let conversion: Vec<String> = code_sets.conversion.iter().map(ToString::to_string).collect();
    format!("{}, converts {}", code_sets.native, conversion.join(", "))
}

fn code_sets_json(code_sets: &CodeSetComponent) -> Value {
    let json = |id: CodeSetId| json!({ "number": id.0, "name": id.name() });
    let conversion: Vec<Value> = code_sets.conversion.iter().copied().map(json).collect();
    json!({ "native": json(code_sets.native), "conversion": conversion })
}

fn policy_text(policy: &Policy) -> String {
    match policy {
        Policy::Other { kind, value } => format!("policy {} = {}", kind.0, hex(value)),
        known => format!("{known:?}"),
    }
}

fn ssl_meaning(ssl: SslSecTrans) -> Meaning {
    let (supports, requires) =
        (AssociationOptions(ssl.target_supports), AssociationOptions(ssl.target_requires));
    let requirement = if ssl.is_required() { "TLS is required" } else { "TLS is offered" };
    Meaning(
        json!({ "port": ssl.port, "supports": option_names(supports), "requires": option_names(requires), "required": ssl.is_required() }),
        vec![
            format!("port {}, {requirement}", ssl.port),
            format!("supports  {}", option_list(supports)),
            format!("requires  {}", option_list(requires)),
        ],
    )
}

fn mechanism_meaning(mechanism: &CompoundSecMech) -> (Value, Vec<String>) {
    let (transport, transport_line) = match &mechanism.transport {
        TransportMechanism::None => (Value::Null, "no protection of the connection".to_owned()),
        TransportMechanism::Tls(tls) => tls_transport(tls),
        TransportMechanism::Other(other) => {
            let name = names::tag_text(other.tag.0, names::component_name(other.tag.0));
            (json!({ "tag": other.tag.0, "hex": hex(&other.data) }), format!("transport {name}"))
        }
        _ => (Value::Null, "unknown transport".to_owned()),
    };
    let login = &mechanism.authentication;
    let realm = ExportedName::from_octets(&login.target_name);
    let realm = match realm.as_ref().and_then(ExportedName::as_gssup) {
        Some(realm) => realm.to_owned(),
        None => text(&login.target_name),
    };
    let assertion = &mechanism.attributes;
    let mut lines = vec![
        format!("mechanism that requires {}", option_list(mechanism.target_requires)),
        format!("  transport  {transport_line}"),
    ];
    if login.supports != AssociationOptions::NONE {
        let modal = if login.requires == AssociationOptions::NONE { "may" } else { "must" };
        lines.push(format!(
            "  login      clients {modal} log in by {} to {:?}",
            oid_text(&login.mechanism),
            Printable::new(&realm)
        ));
    }
    if assertion.supports != AssociationOptions::NONE {
        let types = identity_type_names(assertion.identity_types).join(", ");
        lines.push(format!("  identity   {}; as {types}", option_list(assertion.supports)));
    }
    let value = json!({
        "requires": option_names(mechanism.target_requires),
        "transport": transport,
        "login": {
            "supports": option_names(login.supports), "requires": option_names(login.requires),
            "mechanism": oid_text(&login.mechanism), "realm": realm,
        },
        "identity": {
            "supports": option_names(assertion.supports), "requires": option_names(assertion.requires),
            "types": identity_type_names(assertion.identity_types),
        },
    });
    (value, lines)
}

fn tls_transport(tls: &TlsSecTrans) -> (Value, String) {
    let addresses: Vec<String> =
        tls.addresses.iter().map(|address| address_text(&address.host, address.port)).collect();
    let line = format!("TLS at {}, requires {}", addresses.join(", "), option_list(tls.requires));
    let addresses: Vec<Value> =
        tls.addresses.iter().map(|address| json!({ "host": address.host, "port": address.port })).collect();
    (
        json!({ "tls": addresses, "supports": option_names(tls.supports), "requires": option_names(tls.requires) }),
        line,
    )
}

fn tao_endpoints(d: &mut Decoder<'_>) -> Result<Meaning, DecodeError> {
    // The minimum size of an endpoint is 9 bytes: a string with its length and terminator, and two shorts.
    let count = d.read_len(9)?;
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..count {
        let host = String::from(d.read_unconverted_str()?);
        let (port, priority) = (d.read_u16()?, d.read_i16()?);
        lines.push(format!("{}, priority {priority}", address_text(&host, port)));
        values.push(json!({ "host": host, "port": port, "priority": priority }));
    }
    Ok(Meaning(json!(values), lines))
}

fn oid_text(oid: &Oid) -> String {
    if *oid == Oid::GSSUP { "GSSUP (user and password)".to_owned() } else { hex(oid.as_der()) }
}

fn option_names(options: AssociationOptions) -> Vec<&'static str> {
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
    all.into_iter().filter(|(bit, _)| options.has(*bit)).map(|(_, name)| name).collect()
}

fn option_list(options: AssociationOptions) -> String {
    let names = option_names(options);
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn identity_type_names(types: IdentityTypes) -> Vec<&'static str> {
    let all = [
        (IdentityTypes::ANONYMOUS, "anonymous"),
        (IdentityTypes::PRINCIPAL_NAME, "principal name"),
        (IdentityTypes::X509_CERT_CHAIN, "certificate chain"),
        (IdentityTypes::DISTINGUISHED_NAME, "distinguished name"),
    ];
    all.into_iter().filter(|(bit, _)| types.has(*bit)).map(|(_, name)| name).collect()
}
