//! Object keys. Only the ORB that created a key must understand it, but some formats are known.

use orb_runtime::inside::Key;
use serde::Serialize;

use crate::output::Node;

/// An object key, and its parts if the format is known. The field names are the JSON keys, unless renamed.
#[derive(Debug, Serialize)]
pub(super) struct KeyView {
    #[serde(rename = "octets")]
    size: usize,
    hex: String,
    /// The key as text, with `\xHH` for bytes that are not text.
    text: String,
    #[serde(rename = "form", skip_serializing_if = "Option::is_none")]
    parts: Option<KeyParts>,
}

/// The parts of a key in a known format. They can be wrong, because other ORBs may create similar keys.
#[derive(Debug, Serialize)]
struct KeyParts {
    orb: &'static str,
    /// Whether the object is persistent, if the format states this.
    #[serde(skip_serializing_if = "Option::is_none")]
    persistent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poa: Option<Vec<String>>,
    /// The id of the object in its POA, with `\xHH` for bytes that are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl KeyView {
    pub(super) fn new(key: &[u8]) -> Self {
        Self { size: key.len(), hex: hex(key), text: text(key), parts: KeyParts::parse(key) }
    }

    pub(super) fn display(&self) -> String {
        let key = if self.text.contains("\\x") { &self.hex } else { &self.text };
        format!("{key}  ({} bytes)", self.size)
    }

    pub(super) fn node(&self) -> Node {
        let node = Node::new("key", self.display());
        let Some(parts) = &self.parts else { return node };
        let lifespan = match parts.persistent {
            Some(true) => ", persistent",
            Some(false) => ", transient",
            None => "",
        };
        let mut children = vec![Node::new("format", format!("{}{lifespan}", parts.orb))];
        if let Some(poa) = &parts.poa {
            let path = if poa.is_empty() { "RootPOA".to_owned() } else { poa.join("/") };
            children.push(Node::new("POA", path));
        }
        children.extend(parts.id.as_ref().map(|id| Node::new("id", id)));
        node.children(children)
    }
}

impl KeyParts {
    fn parse(key: &[u8]) -> Option<Self> {
        parse_zorb(key)
            .or_else(|| parse_omniorb(key))
            .or_else(|| parse_tao(key))
            .or_else(|| parse_jacorb(key))
    }
}

fn parse_zorb(key: &[u8]) -> Option<KeyParts> {
    let key = Key::parse(key).ok()?;
    if matches!(key, Key::Plain(_)) {
        return None;
    }
    let persistent = matches!(key, Key::Persistent { .. });
    let poa = key.path().and_then(|path| path.names().ok().map(|names| names.map(str::to_owned).collect()));
    Some(KeyParts {
        orb: "zorb",
        persistent: Some(persistent),
        poa,
        id: Some(text(key.object_id().as_slice())),
    })
}

/// Parses a key of omniORB. Below the root POA, each POA adds `FF name`. Then follow `FE` and a time stamp of
/// 8 bytes if the object is transient, and `00 id`.
fn parse_omniorb(key: &[u8]) -> Option<KeyParts> {
    let mut poa = Vec::new();
    let mut rest = key;
    while let Some(after_marker) = rest.strip_prefix(&[0xff]) {
        let end = after_marker.iter().position(|byte| matches!(byte, 0 | 0xfe | 0xff))?;
        let (name, after_name) = after_marker.split_at(end);
        poa.push(String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty())?);
        rest = after_name;
    }
    let (is_transient, rest) = match rest.strip_prefix(&[0xfe]) {
        Some(stamp) => (true, stamp.get(8..)?),
        None if poa.is_empty() => return None,
        None => (false, rest),
    };
    let id = rest.strip_prefix(&[0])?;
    Some(KeyParts { orb: "omniORB", persistent: Some(!is_transient), poa: Some(poa), id: Some(text(id)) })
}

/// Parses a key of TAO: `14 01 0F 00`, then letters for the kind of POA, the kind of id, and the lifespan.
fn parse_tao(key: &[u8]) -> Option<KeyParts> {
    let rest = key.strip_prefix(&[0x14, 0x01, 0x0f, 0x00])?;
    let [b'R' | b'N', b'S' | b'U', lifespan @ (b'P' | b'T'), ..] = rest else { return None };
    Some(KeyParts { orb: "TAO", persistent: Some(*lifespan == b'P'), poa: None, id: None })
}

/// Parses a key of JacORB: `server/POA/POA/id`. In each part, `/` is written as `&%`, and `&` as `&&`.
fn parse_jacorb(key: &[u8]) -> Option<KeyParts> {
    let mut parts: Vec<&[u8]> = key.split(|byte| *byte == b'/').collect();
    let id = parts.pop().filter(|id| !id.is_empty())?;
    let (server, poas) = parts.split_first()?;
    let name = |part: &&[u8]| {
        String::from_utf8(unescape(part))
            .ok()
            .filter(|name| !name.is_empty() && !name.contains(char::is_control))
    };
    let server = name(server)?;
    let poa = poas.iter().map(name).collect::<Option<Vec<_>>>()?;
    // Without a POA, only the default server name or a number shows that a user did not choose the key.
    let is_default_server = server == "StandardImplName" || server.bytes().all(|byte| byte.is_ascii_digit());
    (is_default_server || !poa.is_empty()).then(|| KeyParts {
        orb: "JacORB",
        persistent: (!is_default_server).then_some(true),
        poa: Some(poa),
        id: Some(text(&unescape(id))),
    })
}

fn unescape(part: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'&' => match rest.next() {
                Some(b'%') => b'/',
                Some(other) => *other,
                None => b'&',
            },
            other => *other,
        });
    }
    bytes
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns bytes as text. Control characters and invalid UTF-8 become `\xHH`, and backslashes are doubled.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    c.encode_utf8(&mut [0; 4])
                        .bytes()
                        .for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (&'static str, Option<bool>, Option<Vec<String>>, Option<String>);

    fn parts(key: &[u8]) -> Option<Parts> {
        KeyParts::parse(key).map(|parts| (parts.orb, parts.persistent, parts.poa, parts.id))
    }

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The keys in this test were created by the ORBs.
    #[test]
    fn keys_of_known_orbs_are_parsed() {
        let root = b"\xfe\x27\xf2\x00\x6b\x00\x00\x54\x5c\x00\x00\x00\x00\x00";
        let id = Some("\\x00\\x00\\x00\\x00".to_owned());
        assert_eq!(parts(root), Some(("omniORB", Some(false), names(&[]), id.clone())));
        let child = b"\xffbd\xfe\x77\xf3\x00\x6b\x01\x00\x7a\x92\x00\x00\x00\x00\x00";
        assert_eq!(parts(child), Some(("omniORB", Some(false), names(&["bd"]), id)));
        let persistent = b"\xffa\xffb\x00name";
        assert_eq!(parts(persistent), Some(("omniORB", Some(true), names(&["a", "b"]), Some("name".into()))));
        assert_eq!(parts(b"\x14\x01\x0f\x00NUP\x00\x00"), Some(("TAO", Some(true), None, None)));
        let jacorb = parts(b"StandardImplName/Accounts/a&%b&&c");
        assert_eq!(jacorb, Some(("JacORB", None, names(&["Accounts"]), Some("a/b&c".into()))));
    }

    #[test]
    fn keys_in_other_formats_have_no_parts() {
        for key in [
            &b"NameService"[..],
            b"",
            b"\xff",
            b"\xfe123",
            b"/",
            b"a/",
            b"\xffname\xff",
            b"a/b",
            b"\x14\x01\x0f\x00",
        ] {
            assert_eq!(parts(key), None, "{key:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_escaped() {
        assert_eq!(text(b"a\\b\n\xffc"), "a\\\\b\\x0a\\xffc");
        assert_eq!(text("ä".as_bytes()), "ä");
    }
}
