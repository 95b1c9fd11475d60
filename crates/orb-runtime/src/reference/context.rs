//! `Context`: properties that are sent after the arguments of operations with a `context` clause in IDL.

use std::collections::BTreeMap;

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError};

/// Properties of a caller: named strings that are arguments of operations with a `context` clause in IDL.
///
/// A client passes a context to the call. The servant receives the properties that match a pattern of the
/// clause: a name, or a prefix of names followed by `*`. Names are case-sensitive. Unlike in other language
/// mappings, a context has no parent.
///
/// # Examples
/// ```
/// # use orb_runtime::Context;
/// let context = Context::new().with("user", "ann").with("net.host", "h1");
/// assert_eq!(context.get("user"), Some("ann"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "CORBA::Context")]
pub struct Context {
    properties: BTreeMap<String, String>,
}

impl Context {
    /// Returns a context without properties.
    #[must_use]
    pub const fn new() -> Context {
        Context { properties: BTreeMap::new() }
    }

    /// Returns the context with a further property, which replaces a property of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Context {
        self.set(name, value);
        self
    }

    /// Sets a property. Returns its previous value.
    #[doc(alias = "set_one_value")]
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> Option<String> {
        self.properties.insert(name.into(), value.into())
    }

    /// Removes a property. Returns its value.
    #[doc(alias = "delete_values")]
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.properties.remove(name)
    }

    /// Returns the value of a property.
    #[must_use]
    #[doc(alias = "get_values")]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// Returns the names and values of all properties, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the number of properties.
    #[must_use]
    pub fn len(&self) -> usize {
        self.properties.len()
    }

    /// Returns whether there are no properties.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// Returns a context with the properties that match one of the patterns.
    #[doc(hidden)]
    #[must_use]
    pub fn matching(&self, patterns: &[&str]) -> Context {
        let listed = |name: &str| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == *pattern,
            })
        };
        self.iter().filter(|(name, _)| listed(name)).collect()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Context {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(properties: I) -> Context {
        let properties = properties.into_iter().map(|(name, value)| (name.into(), value.into()));
        Context { properties: properties.collect() }
    }
}

impl<N: Into<String>, V: Into<String>> Extend<(N, V)> for Context {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, properties: I) {
        let properties = properties.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.properties.extend(properties);
    }
}

/// The encoding is a sequence of strings, alternately names and values ("Context" in the clause "GIOP Message
/// Formats").
impl CdrEncode for Context {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(2 * self.properties.len())?;
        for (name, value) in &self.properties {
            name.encode(e)?;
            value.encode(e)?;
        }
        Ok(())
    }
}

/// If a property occurs several times, its last value is used. A name without a value is an error
/// ([`DecodeErrorKind::Malformed`]).
impl CdrDecode for Context {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Context, DecodeError> {
        let at = d.position();
        let mut strings = Vec::<String>::decode(d)?.into_iter();
        let mut properties = BTreeMap::new();
        while let Some(name) = strings.next() {
            let value = strings.next().ok_or(DecodeError::new(DecodeErrorKind::Malformed, at))?;
            properties.insert(name, value);
        }
        Ok(Context { properties })
    }
}

#[cfg(test)]
mod tests {
    use giop_codec::{ByteOrder, Version};

    use super::*;

    fn context() -> Context {
        [("user", "ann"), ("net.host", "h1"), ("net.port", "7"), ("nets", "x")].into_iter().collect()
    }

    #[test]
    fn patterns_match_names_and_prefixes_of_names() {
        let names = |patterns: &[&str]| {
            context().matching(patterns).iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["user", "host", "net"]), ["user"]);
        assert_eq!(names(&["net.*"]), ["net.host", "net.port"]);
        assert_eq!(names(&["net*", "net.host"]), ["net.host", "net.port", "nets"]);
        assert_eq!(names(&["USER", "nets*"]), ["nets"]);
        assert_eq!(names(&[]), [""; 0]);
    }

    #[test]
    fn context_is_encoded_as_a_sequence_of_names_and_values() {
        let context = Context::new().with("a", "xy").with("b.c", "");
        let octets = b"\0\0\0\x04\0\0\0\x02a\0\0\0\0\0\0\x03xy\0\0\0\0\0\x04b.c\0\0\0\0\x01\0";
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        context.encode(&mut e).unwrap();
        assert_eq!(e.into_bytes(), octets[..]);
        for cut in 0..octets.len() {
            let mut d = Decoder::new(&octets[..cut], ByteOrder::Big, Version::V1_2);
            Context::decode(&mut d).unwrap_err();
        }
        let mut d = Decoder::new(octets, ByteOrder::Big, Version::V1_2);
        assert_eq!(Context::decode(&mut d).unwrap(), context);
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order, Version::V1_2);
            ["a", "x", "b"].map(str::to_owned).to_vec().encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let error = Context::decode(&mut Decoder::new(&octets, order, Version::V1_2)).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::Malformed);
        }
    }

    #[test]
    fn last_value_of_a_repeated_property_is_used() {
        let mut e = Encoder::new(ByteOrder::Little, Version::V1_0);
        ["a", "x", "a", "y"].map(str::to_owned).to_vec().encode(&mut e).unwrap();
        let octets = e.into_bytes();
        let context = Context::decode(&mut Decoder::new(&octets, ByteOrder::Little, Version::V1_0)).unwrap();
        assert_eq!((context.len(), context.get("a")), (1, Some("y")));
    }

    #[test]
    fn properties_are_set_and_removed() {
        let mut context = context();
        assert_eq!(context.set("user", "bob"), Some("ann".to_owned()));
        assert_eq!(context.remove("nets"), Some("x".to_owned()));
        context.extend([("z", "1")]);
        assert_eq!((context.len(), context.get("user"), context.get("nets")), (4, Some("bob"), None));
        assert!(Context::new().is_empty());
    }
}
