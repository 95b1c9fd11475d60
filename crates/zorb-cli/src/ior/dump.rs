//! `zorb ior dump`: the complete content of a reference.

use giop_codec::cdr::CdrDecode;
use giop_codec::ior::{
    ComponentTag, IiopProfile, Ior, ProfileTag, TaggedComponent, TaggedProfile, UiopProfile,
    open_encapsulation,
};
use giop_codec::url::ObjectUrl;
use giop_codec::{OneLine, Version};
use serde::Serialize;

use super::component::{ComponentView, address_text};
use super::key::{KeyView, hex};
use super::names;
use crate::output::{Node, Tone, printable};

#[derive(Debug, Serialize)]
pub(super) struct Dump {
    /// The URL, unless the reference was given as `IOR:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The name in a `corbaname:` URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    type_id: String,
    nil: bool,
    /// The ORB that created the reference, if a profile states it.
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
    #[serde(rename = "octets")]
    size: usize,
    #[serde(flatten)]
    body: ProfileBody,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProfileBody {
    Iiop { version: String, addresses: Vec<Address>, key: KeyView, components: Vec<ComponentView> },
    Uiop { version: String, path: String, key: KeyView, components: Vec<ComponentView> },
    Components { components: Vec<ComponentView> },
    Unknown { hex: String },
    Corrupt { error: String, hex: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Address {
    pub(super) protocol: Protocol,
    pub(super) host: String,
    /// 0 for a Unix socket, and if the server does not listen at this address.
    pub(super) port: u16,
    /// The part of the reference that contains the address: the profile, or a component.
    pub(super) from: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Iiop,
    Ssliop,
    Unix,
}

impl Address {
    pub(super) fn display(&self) -> String {
        let scheme = match self.protocol {
            Protocol::Unix => return format!("unix://{}", printable(&self.host)),
            Protocol::Iiop => "iiop",
            Protocol::Ssliop => "ssliop",
        };
        format!("{scheme}://{}", address_text(&self.host, self.port))
    }
}

impl Dump {
    pub(super) fn new(url: &ObjectUrl) -> anyhow::Result<Self> {
        let ior = to_ior(url)?;
        let (text, name) = match url {
            ObjectUrl::Ior(_) => (None, None),
            ObjectUrl::Corbaname(name) => (Some(url.to_string()), Some(name.name.clone())),
            _ => (Some(url.to_string()), None),
        };
        let orb = ior.iiop_profiles().find_map(|profile| profile.orb_type()?.name());
        Ok(Self {
            url: text,
            name,
            type_id: ior.type_id.clone(),
            nil: ior.is_nil(),
            orb,
            profiles: ior.profiles.iter().map(ProfileView::new).collect(),
            ior: ior.to_string(),
        })
    }

    pub(super) fn tree(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        nodes.extend(self.url.as_ref().map(|url| Node::new("url", url)));
        nodes.extend(self.name.as_ref().map(|name| {
            let name = if name.is_empty() { "the context itself" } else { name.as_str() };
            // Use `OneLine`, which does not double backslashes. Names already contain backslashes as escapes.
            let name = OneLine::new(name);
            Node::new("name", format!("{name}  (in the naming context below)"))
        }));
        let id = match self.type_id.as_str() {
            "" if self.nil => Node::new("type", "nil: no object").tone(Tone::Head),
            "" => Node::new("type", "unknown; only the object can tell (_is_a)").tone(Tone::Doubtful),
            id => Node::new("type", printable(id)).tone(Tone::Head),
        };
        nodes.push(id);
        nodes.extend(self.orb.map(|orb| Node::new("made by", orb)));
        nodes.extend(self.profiles.iter().enumerate().map(|(number, profile)| profile.node(number + 1)));
        nodes
    }
}

impl ProfileView {
    fn new(profile: &TaggedProfile) -> Self {
        Self {
            tag: profile.tag.0,
            name: names::profile_name(profile.tag.0),
            size: profile.data.len(),
            body: ProfileBody::parse(profile),
        }
    }

    fn node(&self, number: usize) -> Node {
        let tag = names::tag_text(self.tag, self.name);
        let name = format!("profile {number}");
        let children = |first: Vec<Node>, key: Option<&KeyView>, components: &[ComponentView]| {
            let key = key.map(KeyView::node);
            first.into_iter().chain(key).chain(components.iter().map(ComponentView::node)).collect::<Vec<_>>()
        };
        match &self.body {
            ProfileBody::Iiop { version, addresses, key, components } => {
                let address_node = |address: &Address| {
                    let text = address.display();
                    if address.port == 0 && address.protocol == Protocol::Iiop {
                        Node::new("address", format!("{text}  (the server does not listen here)"))
                    } else {
                        Node::new("address", text).tone(Tone::Head)
                    }
                };
                let addresses = addresses.iter().map(address_node).collect();
                Node::new(name, format!("IIOP {version}")).children(children(
                    addresses,
                    Some(key),
                    components,
                ))
            }
            ProfileBody::Uiop { version, path, key, components } => {
                let path = vec![Node::new("path", printable(path)).tone(Tone::Head)];
                Node::new(name, format!("{tag} {version}")).children(children(path, Some(key), components))
            }
            ProfileBody::Components { components } => {
                Node::new(name, tag).children(children(Vec::new(), None, components))
            }
            ProfileBody::Unknown { hex } => Node::new(name, tag).children([Node::new("bytes", hex)]),
            ProfileBody::Corrupt { error, hex } => {
                Node::new(name, format!("{tag}: {error}")).tone(Tone::Bad).children([Node::new("bytes", hex)])
            }
        }
    }
}

impl ProfileBody {
    fn parse(profile: &TaggedProfile) -> Self {
        let views = |components: &[TaggedComponent]| components.iter().map(ComponentView::new).collect();
        let body = match profile.tag {
            ProfileTag::INTERNET_IOP => IiopProfile::from_tagged(profile).map(|iiop| Self::Iiop {
                version: version_text(iiop.version),
                addresses: addresses(&iiop),
                key: KeyView::new(iiop.object_key.as_slice()),
                components: views(&iiop.components),
            }),
            ProfileTag::TAO_UIOP => UiopProfile::from_tagged(profile).map(|uiop| Self::Uiop {
                version: version_text(uiop.version),
                path: uiop.path.clone(),
                key: KeyView::new(uiop.object_key.as_slice()),
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

fn version_text(version: Version) -> String {
    format!("1.{}", version.minor())
}

pub(super) fn addresses(profile: &IiopProfile) -> Vec<Address> {
    let plain =
        |host: &str, port, from| Address { protocol: Protocol::Iiop, host: host.to_owned(), port, from };
    let secure =
        |host: &str, port, from| Address { protocol: Protocol::Ssliop, host: host.to_owned(), port, from };
    let mut all = vec![plain(&profile.host, profile.port, "profile")];
    for component in &profile.components {
        match component.tag {
            // This component is defined only for IIOP 1.2 and later.
            ComponentTag::ALTERNATE_IIOP_ADDRESS if profile.version >= Version::V1_2 => {
                let alternate = component.as_alternate_address();
                all.extend(alternate.map(|(host, port)| plain(&host, port, "TAG_ALTERNATE_IIOP_ADDRESS")));
            }
            ComponentTag::SSL_SEC_TRANS => {
                let ssl = component.as_ssl_sec_trans();
                all.extend(ssl.map(|ssl| secure(&profile.host, ssl.port, "TAG_SSL_SEC_TRANS")));
            }
            ComponentTag::CSI_SEC_MECH_LIST => {
                for mechanism in component.as_csi_mechanisms().into_iter().flat_map(|list| list.mechanisms) {
                    let giop_codec::csi::TransportMechanism::Tls(tls) = mechanism.transport else { continue };
                    for address in tls.addresses {
                        let host = if address.host.is_empty() { &profile.host } else { &address.host };
                        all.push(secure(host, address.port, "TAG_CSI_SEC_MECH_LIST"));
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
    let mut unique: Vec<Address> = Vec::new();
    for address in all {
        let is_same = |other: &Address| {
            (other.protocol, &other.host, other.port) == (address.protocol, &address.host, address.port)
        };
        if !unique.iter().any(is_same) {
            unique.push(address);
        }
    }
    unique
}

pub(super) fn addresses_with_profiles(ior: &Ior) -> Vec<(Address, IiopProfile)> {
    ior.iiop_profiles()
        .flat_map(|profile| addresses(&profile).into_iter().map(move |address| (address, profile.clone())))
        .collect()
}

/// Returns the reference in a URL. Fails if the URL has no address, such as `corbaloc:rir:`, or is a file.
pub(super) fn to_ior(url: &ObjectUrl) -> anyhow::Result<Ior> {
    Ok(match url {
        ObjectUrl::Ior(ior) => ior.clone(),
        ObjectUrl::Corbaloc(url) => url.to_ior()?,
        ObjectUrl::Corbaname(url) => url.context.to_ior()?,
        ObjectUrl::File(path) => {
            anyhow::bail!("the file contains only the name of another file, {}", path.display())
        }
    })
}
