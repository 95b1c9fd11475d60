//! The keys in etcd, and the encoding of a binding.

use super::super::record::checksum;
use super::{ContextId, Key, Target};

/// The keys below a prefix: `format`, `next`, `stamp`, `c/CONTEXT` for each context, and `b/CONTEXT/ID NUL
/// KIND` for each binding.
#[derive(Debug)]
pub(super) struct Keys {
    /// Ends with a slash.
    pub(super) prefix: String,
}

/// The object that a key stands for.
pub(super) enum Place {
    Context(ContextId),
    Binding(ContextId, Key),
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: format!("{}/", prefix.trim_end_matches('/')) }
    }

    /// Returns the key of the format version.
    pub(super) fn format(&self) -> String {
        format!("{}format", self.prefix)
    }

    /// Returns the key of the first number for contexts that no server has reserved.
    pub(super) fn next(&self) -> String {
        format!("{}next", self.prefix)
    }

    /// Returns the key that every change writes. Its revision is that of the last change.
    pub(super) fn stamp(&self) -> String {
        format!("{}stamp", self.prefix)
    }

    pub(super) fn context(&self, context: ContextId) -> String {
        format!("{}c/{:016x}", self.prefix, context.0)
    }

    /// Returns the prefix of all bindings of a context.
    pub(super) fn bindings(&self, context: ContextId) -> String {
        format!("{}b/{:016x}/", self.prefix, context.0)
    }

    pub(super) fn binding(&self, context: ContextId, key: &Key) -> String {
        format!("{}{}", self.bindings(context), key.text())
    }

    /// Decodes a key. Returns `None` if it is neither a context nor a binding.
    pub(super) fn place(&self, key: &[u8]) -> Option<Place> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        let number =
            |text: &str| (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok())?.map(ContextId);
        if let Some(context) = rest.strip_prefix("c/") {
            return number(context).map(Place::Context);
        }
        let (context, text) = rest.strip_prefix("b/")?.split_once('/')?;
        Some(Place::Binding(number(context)?, Key::from_text(text)?))
    }
}

/// Encodes the value of a binding: a checksum, the mark of the change that made it, and the target.
pub(super) fn seal(context: ContextId, key: &Key, mark: u128, target: &Target) -> Vec<u8> {
    let mut octets = vec![0; 4];
    octets.extend_from_slice(&mark.to_be_bytes());
    octets.extend_from_slice(&target.write());
    let sum = checksum(context.0, key.text(), &octets[4..]);
    octets[..4].copy_from_slice(&sum.to_be_bytes());
    octets
}

/// Decodes the mark and the target of a value. Returns `None` if it is not what was written.
pub(super) fn open(context: ContextId, key: &Key, value: &[u8]) -> Option<(u128, Target)> {
    let (sum, octets) = value.split_first_chunk()?;
    if u32::from_be_bytes(*sum) != checksum(context.0, key.text(), octets) {
        return None;
    }
    let (mark, target) = octets.split_first_chunk()?;
    Some((u128::from_be_bytes(*mark), Target::read(target)?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use zorb::cos_naming::NameComponent;

    use super::*;

    #[test]
    fn keys_lead_back_to_what_they_are_of() {
        let keys = Keys::new("/site/names");
        let key = Key::new(&NameComponent::new("a/b", "k/")).unwrap();
        let context = ContextId(0xAB);
        let binding = keys.binding(context, &key);
        assert_eq!(binding, "/site/names/b/00000000000000ab/a/b\0k/");
        assert!(
            matches!(keys.place(binding.as_bytes()), Some(Place::Binding(ContextId(0xAB), k)) if k == key)
        );
        let there = keys.context(context);
        assert!(matches!(keys.place(there.as_bytes()), Some(Place::Context(ContextId(0xAB)))));
        for other in
            [keys.stamp(), keys.next(), keys.bindings(context), "/other/c/0000000000000000".to_owned()]
        {
            assert!(keys.place(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn a_value_with_any_octet_changed_or_missing_is_not_read() {
        let key = Key::new(&NameComponent::new("a", "")).unwrap();
        let target = Target::Object(Bytes::from_static(b"reference"));
        let whole = seal(ContextId(3), &key, 7, &target);
        assert_eq!(open(ContextId(3), &key, &whole), Some((7, target)));
        assert_eq!(open(ContextId(4), &key, &whole), None);
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 0x10;
            assert_eq!(open(ContextId(3), &key, &changed), None, "octet {i}");
            assert_eq!(open(ContextId(3), &key, &whole[..i]), None, "{i} octets");
        }
    }
}
