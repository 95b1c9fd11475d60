//! The layout of the keys in etcd, and the encoding of a binding.

use super::super::record::checksum;
use super::{ContextId, Key, Target};

/// Creates keys: `format`, `next`, `stamp`, `c/CONTEXT` for contexts, `b/CONTEXT/ID\0KIND` for bindings.
#[derive(Debug)]
pub(super) struct Keys {
    /// The prefix of all keys. It ends with a slash.
    pub(super) prefix: String,
}

/// The context or the binding to which a key belongs.
pub(super) enum KeyTarget {
    Context(ContextId),
    Binding(ContextId, Key),
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: format!("{}/", prefix.trim_end_matches('/')) }
    }

    pub(super) fn format(&self) -> String {
        format!("{}format", self.prefix)
    }

    /// Returns the key whose value is the first context number that no server has reserved.
    pub(super) fn next_context(&self) -> String {
        format!("{}next", self.prefix)
    }

    /// Returns the key that every change writes, so that its revision is that of the last change.
    pub(super) fn last_change(&self) -> String {
        format!("{}stamp", self.prefix)
    }

    pub(super) fn context(&self, context: ContextId) -> String {
        format!("{}c/{:016x}", self.prefix, context.0)
    }

    /// Returns the prefix of the keys of all bindings of a context.
    pub(super) fn bindings(&self, context: ContextId) -> String {
        format!("{}b/{:016x}/", self.prefix, context.0)
    }

    pub(super) fn binding(&self, context: ContextId, key: &Key) -> String {
        format!("{}{}", self.bindings(context), key.text())
    }

    /// Decodes a key. Returns `None` if it belongs neither to a context nor to a binding.
    pub(super) fn decode(&self, key: &[u8]) -> Option<KeyTarget> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        let number =
            |text: &str| (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok())?.map(ContextId);
        if let Some(context) = rest.strip_prefix("c/") {
            return number(context).map(KeyTarget::Context);
        }
        let (context, text) = rest.strip_prefix("b/")?.split_once('/')?;
        Some(KeyTarget::Binding(number(context)?, Key::from_text(text)?))
    }
}

/// Encodes the value of a binding: a checksum, the id of the change that writes it, and the target.
pub(super) fn encode_value(context: ContextId, key: &Key, change_id: u128, target: &Target) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&change_id.to_be_bytes());
    bytes.extend_from_slice(&target.encode());
    let sum = checksum(context.0, key.text(), &bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Decodes the change id and the target of a value. Returns `None` if the value is damaged.
pub(super) fn decode_value(context: ContextId, key: &Key, value: &[u8]) -> Option<(u128, Target)> {
    let (sum, bytes) = value.split_first_chunk()?;
    if u32::from_be_bytes(*sum) != checksum(context.0, key.text(), bytes) {
        return None;
    }
    let (change_id, target) = bytes.split_first_chunk()?;
    Some((u128::from_be_bytes(*change_id), Target::decode(target)?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use zorb::cos_naming::NameComponent;

    use super::*;

    #[test]
    fn encoded_keys_are_decoded() {
        let keys = Keys::new("/site/names");
        let key = Key::new(&NameComponent::new("a/b", "k/")).unwrap();
        let context = ContextId(0xAB);
        let binding = keys.binding(context, &key);
        assert_eq!(binding, "/site/names/b/00000000000000ab/a/b\0k/");
        assert!(
            matches!(keys.decode(binding.as_bytes()), Some(KeyTarget::Binding(ContextId(0xAB), k)) if k == key)
        );
        let context_key = keys.context(context);
        assert!(matches!(keys.decode(context_key.as_bytes()), Some(KeyTarget::Context(ContextId(0xAB)))));
        for other in [
            keys.last_change(),
            keys.next_context(),
            keys.bindings(context),
            "/other/c/0000000000000000".to_owned(),
        ] {
            assert!(keys.decode(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn a_value_with_a_changed_or_missing_byte_is_rejected() {
        let key = Key::new(&NameComponent::new("a", "")).unwrap();
        let target = Target::Object(Bytes::from_static(b"reference"));
        let whole = encode_value(ContextId(3), &key, 7, &target);
        assert_eq!(decode_value(ContextId(3), &key, &whole), Some((7, target)));
        assert_eq!(decode_value(ContextId(4), &key, &whole), None);
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 0x10;
            assert_eq!(decode_value(ContextId(3), &key, &changed), None, "byte {i}");
            assert_eq!(decode_value(ContextId(3), &key, &whole[..i]), None, "{i} bytes");
        }
    }
}
