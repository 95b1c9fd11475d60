//! The complete content of a reference.

use giop_codec::cdr::CdrDecode;
use giop_codec::ior::{
    ComponentTag, IiopProfile, Ior, ProfileTag, TaggedComponent, TaggedProfile, UiopProfile,
    open_encapsulation,
};
use giop_codec::url::ObjectUrl;
use giop_codec::{OneLine, Version};
use serde::Serialize;

use super::component::{ComponentView, address};
use super::key::{KeyView, hex};
use super::names;
use crate::output::{Node, Tone, told};

/// A parsed reference.
#[derive(Debug, Serialize)]
pub(super) struct Dump {
    /// The URL that was given, unless it was a stringified IOR.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The name in a URL, which only a naming service can resolve.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    type_id: String,
    nil: bool,
    /// The ORB that created it, if a profile contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    orb: Option<&'static str>,
    profiles: Vec<ProfileView>,
    ior: String,
}

#[derive(Debug, Serialize)]
struct ProfileView {
    tag: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    octets: usize,
    #[serde(flatten)]
    body: Body,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Body {
    Iiop {
        version: String,
        addresses: Vec<Address>,
        key: KeyView,
        components: Vec<ComponentView>,
    },
    Uiop {
        version: String,
        path: String,
        key: KeyView,
        components: Vec<ComponentView>,
    },
    Components {
        components: Vec<ComponentView>,
    },
    /// The tag is unknown.
    Unknown {
        hex: String,
    },
    /// The content does not match the tag.
    Corrupt {
        error: String,
        hex: String,
    },
}

/// An address of the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Address {
    pub(super) protocol: Protocol,
    pub(super) host: String,
    /// 0 if the server does not listen there.
    pub(super) port: u16,
    /// The source of the address: the profile, or a component.
    pub(super) from: &'static str,
}

/// The protocol of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Iiop,
    Ssliop,
    Unix,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Iiop => "iiop",
            Self::Ssliop => "ssliop",
            Self::Unix => "unix",
        }
    }
}

impl Address {
    /// Formats the address for people.
    pub(super) fn shown(&self) -> String {
        match self.protocol {
            Protocol::Unix => format!("unix://{}", told(&self.host)),
            protocol => format!("{}://{}", protocol.name(), address(&self.host, self.port)),
        }
    }
}

impl Dump {
    /// Parses the reference in `url`.
    ///
    /// # Errors
    /// A URL that names no address, such as `corbaloc:rir:`.
    pub(super) fn of(url: &ObjectUrl) -> anyhow::Result<Self> {
        let (ior, text, name) = match url {
            ObjectUrl::Ior(ior) => (ior.clone(), None, None),
            ObjectUrl::Corbaloc(loc) => (loc.to_ior()?, Some(url.to_string()), None),
            ObjectUrl::Corbaname(of) => (of.context.to_ior()?, Some(url.to_string()), Some(of.name.clone())),
            ObjectUrl::File(path) => anyhow::bail!("{} is a file in a file", path.display()),
        };
        let orb = ior.iiop_profiles().find_map(|profile| profile.orb_type()?.name());
        Ok(Self {
            url: text,
            name,
            type_id: ior.type_id.clone(),
            nil: ior.is_nil(),
            orb,
            profiles: ior.profiles.iter().map(ProfileView::of).collect(),
            ior: ior.to_string(),
        })
    }

    pub(super) fn tree(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        nodes.extend(self.url.as_ref().map(|url| Node::new("url", url)));
        nodes.extend(self.name.as_ref().map(|name| {
            let what = if name.is_empty() { "the context itself" } else { name.as_str() };
            // The backslashes of a name are already doubled.
            let what = OneLine::new(what);
            Node::new("name", format!("{what}  (in the naming context below)"))
        }));
        let id = match self.type_id.as_str() {
            "" if self.nil => Node::new("type", "nil: no object").tone(Tone::Head),
            "" => Node::new("type", "not said; the object knows (_is_a)").tone(Tone::Doubtful),
            id => Node::new("type", told(id)).tone(Tone::Head),
        };
        nodes.push(id);
        nodes.extend(self.orb.map(|orb| Node::new("made by", orb)));
        nodes.extend(self.profiles.iter().enumerate().map(|(number, profile)| profile.node(number + 1)));
        nodes
    }
}

impl ProfileView {
    fn of(profile: &TaggedProfile) -> Self {
        Self {
            tag: profile.tag.0,
            name: names::of_profile(profile.tag.0),
            octets: profile.data.len(),
            body: Body::of(profile),
        }
    }

    fn node(&self, number: usize) -> Node {
        let tag = names::shown(self.tag, self.name);
        let name = format!("profile {number}");
        let parts = |first: Vec<Node>, key: Option<&KeyView>, components: &[ComponentView]| {
            let key = key.map(KeyView::node);
            first.into_iter().chain(key).chain(components.iter().map(ComponentView::node)).collect::<Vec<_>>()
        };
        match &self.body {
            Body::Iiop { version, addresses, key, components } => {
                let line = |address: &Address| {
                    let node = Node::new("address", address.shown());
                    if address.port == 0 && address.protocol == Protocol::Iiop {
                        Node::new("address", format!("{}  (nobody listens there)", address.shown()))
                    } else {
                        node.tone(Tone::Head)
                    }
                };
                let addresses = addresses.iter().map(line).collect();
                Node::new(name, format!("IIOP {version}")).under(parts(addresses, Some(key), components))
            }
            Body::Uiop { version, path, key, components } => {
                let at = vec![Node::new("path", told(path)).tone(Tone::Head)];
                Node::new(name, format!("{tag} {version}")).under(parts(at, Some(key), components))
            }
            Body::Components { components } => {
                Node::new(name, tag).under(parts(Vec::new(), None, components))
            }
            Body::Unknown { hex } => Node::new(name, tag).under([Node::new("octets", hex)]),
            Body::Corrupt { error, hex } => {
                Node::new(name, format!("{tag}: {error}")).tone(Tone::Bad).under([Node::new("octets", hex)])
            }
        }
    }
}

impl Body {
    fn of(profile: &TaggedProfile) -> Self {
        let views = |components: &[TaggedComponent]| components.iter().map(ComponentView::of).collect();
        let body = match profile.tag {
            ProfileTag::INTERNET_IOP => IiopProfile::from_tagged(profile).map(|iiop| Self::Iiop {
                version: version(iiop.version),
                addresses: addresses(&iiop),
                key: KeyView::of(iiop.object_key.as_slice()),
                components: views(&iiop.components),
            }),
            ProfileTag::TAO_UIOP => UiopProfile::from_tagged(profile).map(|uiop| Self::Uiop {
                version: version(uiop.version),
                path: uiop.path.clone(),
                key: KeyView::of(uiop.object_key.as_slice()),
                components: views(&uiop.components),
            }),
            ProfileTag::MULTIPLE_COMPONENTS => open_encapsulation(&profile.data)
                .and_then(|mut d| Vec::<TaggedComponent>::decode(&mut d))
                .map(|components| Self::Components { components: views(&components) })
                .map_err(Into::into),
            _ => Ok(Self::Unknown { hex: hex(&profile.data) }),
        };
        body.unwrap_or_else(|error| {
            let error = match std::error::Error::source(&error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            };
            Self::Corrupt { error, hex: hex(&profile.data) }
        })
    }
}

fn version(version: Version) -> String {
    format!("1.{}", version.minor())
}

/// Returns all addresses of the object in the profile, in their order.
pub(super) fn addresses(profile: &IiopProfile) -> Vec<Address> {
    let plain =
        |host: &str, port, from| Address { protocol: Protocol::Iiop, host: host.to_owned(), port, from };
    let secure =
        |host: &str, port, from| Address { protocol: Protocol::Ssliop, host: host.to_owned(), port, from };
    let mut all = vec![plain(&profile.host, profile.port, "profile")];
    for component in &profile.components {
        match component.tag {
            // Clients of IIOP 1.1 ignore them.
            ComponentTag::ALTERNATE_IIOP_ADDRESS if profile.version >= Version::V1_2 => {
                let named = component.as_alternate_address();
                all.extend(named.map(|(host, port)| plain(&host, port, "TAG_ALTERNATE_IIOP_ADDRESS")));
            }
            ComponentTag::SSL_SEC_TRANS => {
                let ssl = component.as_ssl_sec_trans();
                all.extend(ssl.map(|ssl| secure(&profile.host, ssl.port, "TAG_SSL_SEC_TRANS")));
            }
            ComponentTag::CSI_SEC_MECH_LIST => {
                for mechanism in component.as_csi_mechanisms().into_iter().flat_map(|list| list.mechanisms) {
                    let giop_codec::csi::TransportMechanism::Tls(tls) = mechanism.transport else { continue };
                    for at in tls.addresses {
                        let host = if at.host.is_empty() { &profile.host } else { &at.host };
                        all.push(secure(host, at.port, "TAG_CSI_SEC_MECH_LIST"));
                    }
                }
            }
            ComponentTag::OMNI_UNIX => {
                let unix = component.as_omni_unix().map(|unix| Address {
                    protocol: Protocol::Unix,
                    host: unix.path,
                    port: 0,
                    from: "omniORB Unix socket",
                });
                all.extend(unix);
            }
            _ => {}
        }
    }
    let mut seen: Vec<Address> = Vec::new();
    for address in all {
        let same = |other: &Address| {
            (other.protocol, &other.host, other.port) == (address.protocol, &address.host, address.port)
        };
        if !seen.iter().any(same) {
            seen.push(address);
        }
    }
    seen
}

/// Returns all addresses of the object, each with its profile, without parsing the rest of the reference.
pub(super) fn ways(ior: &Ior) -> Vec<(Address, IiopProfile)> {
    ior.iiop_profiles()
        .flat_map(|profile| addresses(&profile).into_iter().map(move |address| (address, profile.clone())))
        .collect()
}
