//! Object keys. They are opaque to all ORBs except the one that created them, but the formats of some ORBs
//! are known.

use orb_runtime::inside::Key;
use serde::Serialize;

use crate::output::Node;

/// An object key, and its parts if the format is known.
#[derive(Debug, Serialize)]
pub(super) struct KeyView {
    octets: usize,
    hex: String,
    /// As text, with `\xHH` for bytes that are not text.
    text: String,
    /// The parts of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<Form>,
}

/// The parts of a key in the format of a known ORB. They are not trustworthy, because references can be
/// forged.
#[derive(Debug, Serialize)]
struct Form {
    /// The ORB that uses this format.
    orb: &'static str,
    /// Whether the key outlives its server's process, if the format contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    persistent: Option<bool>,
    /// The names of the POAs below the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    poa: Option<Vec<String>>,
    /// The object's id in its POA, with `\xHH` for bytes that are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl KeyView {
    pub(super) fn of(key: &[u8]) -> Self {
        Self { octets: key.len(), hex: hex(key), text: text(key), form: Form::of(key) }
    }

    /// Returns the key as text if it is text, otherwise in hexadecimal digits.
    pub(super) fn shown(&self) -> String {
        let shown = if self.text.contains("\\x") { &self.hex } else { &self.text };
        format!("{shown}  ({} octets)", self.octets)
    }

    pub(super) fn node(&self) -> Node {
        let node = Node::new("key", self.shown());
        let Some(form) = &self.form else { return node };
        let lifespan = match form.persistent {
            Some(true) => ", persistent",
            Some(false) => ", of one run of its server",
            None => "",
        };
        let mut under = vec![Node::new("form", format!("{}{lifespan}", form.orb))];
        if let Some(poa) = &form.poa {
            let path = if poa.is_empty() { "RootPOA".to_owned() } else { poa.join("/") };
            under.push(Node::new("POA", path));
        }
        under.extend(form.id.as_ref().map(|id| Node::new("id", id)));
        node.under(under)
    }
}

impl Form {
    fn of(key: &[u8]) -> Option<Self> {
        zorb(key).or_else(|| omniorb(key)).or_else(|| tao(key)).or_else(|| jacorb(key))
    }
}

fn zorb(key: &[u8]) -> Option<Form> {
    let key = Key::parse(key).ok()?;
    if matches!(key, Key::Plain(_)) {
        return None;
    }
    let persistent = matches!(key, Key::Persistent { .. });
    let poa = key.path().and_then(|path| path.names().ok().map(|names| names.map(str::to_owned).collect()));
    Some(Form { orb: "zorb", persistent: Some(persistent), poa, id: Some(text(key.object_id().as_slice())) })
}

/// Parses `FE stamp(8) 00 id` of the root POA, or `FF name FF name (FE stamp(8)) 00 id` below it.
fn omniorb(key: &[u8]) -> Option<Form> {
    let mut poa = Vec::new();
    let mut rest = key;
    while let Some(behind) = rest.strip_prefix(&[0xff]) {
        let end = behind.iter().position(|octet| matches!(octet, 0 | 0xfe | 0xff))?;
        let (name, behind) = behind.split_at(end);
        poa.push(String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty())?);
        rest = behind;
    }
    let (transient, rest) = match rest.strip_prefix(&[0xfe]) {
        Some(behind) => (true, behind.get(8..)?),
        None if poa.is_empty() => return None,
        None => (false, rest),
    };
    let id = rest.strip_prefix(&[0])?;
    Some(Form { orb: "omniORB", persistent: Some(!transient), poa: Some(poa), id: Some(text(id)) })
}

/// Parses `14 01 0F 00`, then letters for the kind of POA, the kind of id, and the lifespan.
fn tao(key: &[u8]) -> Option<Form> {
    let rest = key.strip_prefix(&[0x14, 0x01, 0x0f, 0x00])?;
    let [b'R' | b'N', b'S' | b'U', lasts @ (b'P' | b'T'), ..] = rest else { return None };
    Some(Form { orb: "TAO", persistent: Some(*lasts == b'P'), poa: None, id: None })
}

/// Parses `server/POA/POA/id`, in which a `/` within a part is written `&%`, and a `&` twice.
fn jacorb(key: &[u8]) -> Option<Form> {
    let mut parts: Vec<&[u8]> = key.split(|octet| *octet == b'/').collect();
    let id = parts.pop().filter(|id| !id.is_empty())?;
    let (server, poas) = parts.split_first()?;
    let name = |part: &&[u8]| {
        let unmasked = unmask(part);
        String::from_utf8(unmasked).ok().filter(|name| !name.is_empty() && !name.contains(char::is_control))
    };
    let server = name(server)?;
    let poa = poas.iter().map(name).collect::<Option<Vec<_>>>()?;
    // The default name of an unnamed server identifies the ORB. Any other text with slashes could be a
    // user-defined key.
    let transient = server == "StandardImplName" || server.bytes().all(|octet| octet.is_ascii_digit());
    (transient || !poa.is_empty()).then(|| Form {
        orb: "JacORB",
        persistent: (!transient).then_some(true),
        poa: Some(poa),
        id: Some(text(&unmask(id))),
    })
}

fn unmask(part: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(part.len());
    let mut rest = part.iter();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'&' => match rest.next() {
                Some(b'%') => b'/',
                Some(other) => *other,
                None => b'&',
            },
            other => *other,
        });
    }
    octets
}

pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns the key as text. Control characters and invalid UTF-8 become `\xHH`, and backslashes are doubled.
pub(super) fn text(octets: &[u8]) -> String {
    let mut out = String::new();
    for chunk in octets.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    c.encode_utf8(&mut [0; 4])
                        .bytes()
                        .for_each(|octet| out.push_str(&format!("\\x{octet:02x}")));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|octet| out.push_str(&format!("\\x{octet:02x}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (&'static str, Option<bool>, Option<Vec<String>>, Option<String>);

    fn form(key: &[u8]) -> Option<Parts> {
        Form::of(key).map(|form| (form.orb, form.persistent, form.poa, form.id))
    }

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The keys were created by these ORBs.
    #[test]
    fn keys_of_known_orbs_are_taken_apart() {
        let root = b"\xfe\x27\xf2\x00\x6b\x00\x00\x54\x5c\x00\x00\x00\x00\x00";
        let id = Some("\\x00\\x00\\x00\\x00".to_owned());
        assert_eq!(form(root), Some(("omniORB", Some(false), names(&[]), id.clone())));
        let child = b"\xffbd\xfe\x77\xf3\x00\x6b\x01\x00\x7a\x92\x00\x00\x00\x00\x00";
        assert_eq!(form(child), Some(("omniORB", Some(false), names(&["bd"]), id)));
        let persistent = b"\xffa\xffb\x00name";
        assert_eq!(form(persistent), Some(("omniORB", Some(true), names(&["a", "b"]), Some("name".into()))));
        assert_eq!(form(b"\x14\x01\x0f\x00NUP\x00\x00"), Some(("TAO", Some(true), None, None)));
        let jacorb = form(b"StandardImplName/Accounts/a&%b&&c");
        assert_eq!(jacorb, Some(("JacORB", None, names(&["Accounts"]), Some("a/b&c".into()))));
    }

    #[test]
    fn other_keys_are_left_whole() {
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
            assert_eq!(form(key), None, "{key:?}");
        }
    }

    #[test]
    fn text_shows_every_octet() {
        assert_eq!(text(b"a\\b\n\xffc"), "a\\\\b\\x0a\\xffc");
        assert_eq!(text("ä".as_bytes()), "ä");
    }
}
