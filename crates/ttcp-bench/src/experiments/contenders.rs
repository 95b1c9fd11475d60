//! The participants of experiments: sockets, zorb in several configurations, and other
//! middleware whose peers have been built.

use crate::external_peers;
use crate::harness::CommonArgs;
use crate::harness::placement::HOST_PLACEHOLDER;
use crate::harness::{BuiltInPeer, Peer};
use crate::work::Element;

/// A participant of experiments.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) peer: Peer,
    /// The element type that the participant sends for structs.
    pub(crate) struct_element: Element,
    /// Whether only structs are measured, because for other types another participant does the same.
    pub(crate) is_for_structs_only: bool,
    /// Whether the participant can send [`Element::Struct32`], a struct padded to 32 bytes.
    pub(crate) sends_struct32: bool,
}

/// A configuration of zorb: the peer's name, and the additional options of the server and of the client.
type Variant = (&'static str, &'static [&'static str], &'static [&'static str]);

const VARIANTS: &[Variant] = &[
    ("zorb-dynamic", &["--skeleton", "dsi"], &["--invocation", "dii"]),
    ("zorb-copying", &["--copying"], &["--copying"]),
    ("zorb-unix", &["--unix", "{dir}/zorb.socket"], &[]),
    #[cfg(feature = "uring")]
    ("zorb-uring", &["--transport", "uring"], &["--transport", "uring"]),
];

/// The configuration that sends structs in their memory representation.
const ZERO_COPY: &str = "zorb-zero-copy";

impl Contender {
    fn new(peer: Peer) -> Contender {
        Contender { peer, struct_element: Element::Struct, is_for_structs_only: false, sends_struct32: false }
    }

    /// Returns the type that this participant sends for elements of a type; `None` if the type is not
    /// measured.
    pub(crate) fn sent_element(&self, element: Element) -> Option<Element> {
        match element {
            Element::Struct | Element::Zstruct => Some(self.struct_element),
            Element::Struct32 => self.sends_struct32.then_some(element),
            _ if self.is_for_structs_only => None,
            other => Some(other),
        }
    }
}

/// Returns all participants, or the selected ones, in the order of the tables. Those that `--peer` adds are
/// last.
pub(crate) fn contenders(common: &CommonArgs, built_in: &[BuiltInPeer]) -> anyhow::Result<Vec<Contender>> {
    let program = std::env::current_exe()?;
    let mut all = Vec::new();
    for peer in built_in.iter().map(|peer| Peer::built_in(&program, peer)) {
        let is_zorb = peer.name == "zorb";
        all.push(Contender { sends_struct32: peer.name == "raw", ..Contender::new(peer.clone()) });
        if is_zorb {
            all.extend(variants(&peer));
        }
    }
    let external = |peer: Peer| {
        let sends_struct32 = external_peers::MEMORY_REPRESENTATION_PEERS.contains(&peer.name.as_str());
        Contender { sends_struct32, ..Contender::new(peer) }
    };
    all.extend(external_peers::built_peers()?.into_iter().map(external));
    let extra = common.extra_peers.iter().cloned().map(Contender::new).collect();
    external_peers::select_peers(all, extra, common.peers.as_deref(), |one| &one.peer)
}

fn variants(zorb: &Peer) -> Vec<Contender> {
    let mut variants: Vec<Contender> = VARIANTS
        .iter()
        .map(|(name, server, client)| {
            let mut peer = Peer { name: (*name).to_owned(), ..zorb.clone() };
            // A Unix socket bypasses the link, so that the server has no `{host}` and is measured only over
            // loopback.
            if server.contains(&"--unix") {
                peer.server.retain(|word| word != "--host" && word != HOST_PLACEHOLDER);
            }
            peer.server.extend(server.iter().map(|word| (*word).to_owned()));
            peer.client.extend(client.iter().map(|word| (*word).to_owned()));
            Contender::new(peer)
        })
        .collect();
    let peer = Peer { name: ZERO_COPY.to_owned(), ..zorb.clone() };
    variants.push(Contender {
        struct_element: Element::Zstruct,
        is_for_structs_only: true,
        ..Contender::new(peer)
    });
    variants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::parse_options;

    fn names(line: &str) -> anyhow::Result<Vec<String>> {
        let words = line.split('|').filter(|word| !word.is_empty());
        let built_in = [
            BuiltInPeer::new("raw", "raw-server", "raw-client {args}"),
            BuiltInPeer::new("zorb", "server", "client {args} --ior {ready}").with_zstruct(),
        ];
        let all = contenders(&parse_options(words)?, &built_in)?;
        Ok(all.into_iter().map(|one| one.peer.name).collect())
    }

    #[test]
    fn zorb_takes_part_in_each_configuration() {
        let all = names("--peer|a=s::c").unwrap();
        let own: Vec<&str> = all.iter().map(String::as_str).filter(|name| name.starts_with("zorb")).collect();
        let mut expected = vec!["zorb", "zorb-dynamic", "zorb-copying", "zorb-unix"];
        if cfg!(feature = "uring") {
            expected.push("zorb-uring");
        }
        expected.push("zorb-zero-copy");
        assert_eq!(own, expected);
        assert_eq!((all.first().unwrap().as_str(), all.last().unwrap().as_str()), ("raw", "a"));
        assert_eq!(names("--peers|zorb-copying,raw").unwrap(), ["raw", "zorb-copying"]);
        assert_eq!(names("--peers|none|--peer|a=s::c").unwrap(), ["a"]);
        let error = |line| names(line).unwrap_err().to_string();
        assert!(error("--peers|zorp").contains("there is no peer 'zorp', only: raw, zorb, "));
        assert!(error("--peer|zorb=s::c").contains("two peers are called 'zorb'"));
    }

    #[test]
    fn zero_copy_structs_are_sent_only_by_peers_that_support_them() {
        let built_in = [BuiltInPeer::new("zorb", "server", "client").with_zstruct()];
        let all = contenders(&parse_options([]).unwrap(), &built_in).unwrap();
        let named = |name: &str| all.iter().find(|one| one.peer.name == name).unwrap();
        assert_eq!(named("zorb").sent_element(Element::Struct), Some(Element::Struct));
        assert_eq!(named("zorb").sent_element(Element::Octet), Some(Element::Octet));
        assert_eq!(named("zorb-zero-copy").sent_element(Element::Struct), Some(Element::Zstruct));
        assert_eq!(named("zorb-zero-copy").sent_element(Element::Octet), None);
        assert_eq!(named("zorb").sent_element(Element::Struct32), None);
        assert_eq!(
            named("zorb-dynamic").peer.client,
            named("zorb").peer.client[..]
                .iter()
                .cloned()
                .chain(["--invocation".into(), "dii".into()])
                .collect::<Vec<_>>()
        );
    }
}
