//! The messages of the JSON gateway of etcd (3.4 and later). The names of types and fields are etcd's.
//!
//! Keys and values are in Base64, and 64-bit numbers are texts. etcd omits fields that are zero or empty.
//! Requests omit optional fields that are not set.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

/// A byte string that JSON represents in Base64. The field holds the decoded bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Base64Bytes(pub(super) Vec<u8>);

impl From<String> for Base64Bytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes());
        bytes.map(Self).map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"Base64"))
    }
}

/// A 64-bit integer that JSON represents as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextI64(pub(super) i64);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Serialize for TextI64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TextI64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"a number"))
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RangeRequest {
    pub(super) key: Base64Bytes,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) range_end: Base64Bytes,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) limit: TextI64,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) revision: TextI64,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) keys_only: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct PutRequest {
    pub(super) key: Base64Bytes,
    pub(super) value: Base64Bytes,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) lease: TextI64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DeleteRequest {
    pub(super) key: Base64Bytes,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Compare {
    result: &'static str,
    target: &'static str,
    key: Base64Bytes,
    #[serde(skip_serializing_if = "is_default")]
    range_end: Base64Bytes,
    #[serde(skip_serializing_if = "is_default")]
    create_revision: Option<TextI64>,
    #[serde(skip_serializing_if = "is_default")]
    mod_revision: Option<TextI64>,
}

impl Compare {
    fn new(result: &'static str, target: &'static str, key: String) -> Self {
        let (key, range_end) = (key.into(), Base64Bytes::default());
        Self { result, target, key, range_end, create_revision: None, mod_revision: None }
    }

    pub(super) fn exists(key: String) -> Self {
        Self { create_revision: Some(TextI64(0)), ..Self::new("GREATER", "CREATE", key) }
    }

    pub(super) fn missing(key: String) -> Self {
        Self { create_revision: Some(TextI64(0)), ..Self::new("EQUAL", "CREATE", key) }
    }

    /// No key with this prefix exists. The prefix must end with a slash.
    pub(super) fn none_with_prefix(prefix: &str) -> Self {
        Self { range_end: end_of_prefix(prefix), ..Self::missing(prefix.to_owned()) }
    }

    /// The key was last changed in `revision`. Revision 0 means that the key does not exist.
    pub(super) fn last_changed(key: String, revision: TextI64) -> Self {
        Self { mod_revision: Some(revision), ..Self::new("EQUAL", "MOD", key) }
    }
}

/// Returns the least key that is greater than every key with this prefix. The prefix must end with a slash.
pub(super) fn end_of_prefix(prefix: &str) -> Base64Bytes {
    let mut bytes = prefix.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    Base64Bytes(bytes)
}

#[derive(Debug, Clone, Serialize)]
pub(super) enum Op {
    #[serde(rename = "request_put")]
    Put(PutRequest),
    #[serde(rename = "request_range")]
    Range(RangeRequest),
    #[serde(rename = "request_delete_range")]
    Delete(DeleteRequest),
}

impl Op {
    pub(super) fn put(key: String, value: Vec<u8>) -> Self {
        Self::Put(PutRequest { key: key.into(), value: Base64Bytes(value), lease: TextI64(0) })
    }

    pub(super) fn get(key: String) -> Self {
        Self::Range(RangeRequest { key: key.into(), ..RangeRequest::default() })
    }

    pub(super) fn delete(key: String) -> Self {
        Self::Delete(DeleteRequest { key: key.into() })
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct TxnRequest {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Op>,
    pub(super) failure: Vec<Op>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    pub(super) revision: TextI64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    pub(super) key: Base64Bytes,
    pub(super) value: Base64Bytes,
    pub(super) mod_revision: TextI64,
    pub(super) lease: TextI64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RangeResponse {
    pub(super) header: Header,
    pub(super) kvs: Vec<KeyValue>,
    pub(super) more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpResponse {
    pub(super) response_range: Option<RangeResponse>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TxnResponse {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    pub(super) responses: Vec<OpResponse>,
}

#[derive(Debug, Serialize)]
pub(super) struct WatchRequest {
    pub(super) create_request: WatchCreate,
}

#[derive(Debug, Serialize)]
pub(super) struct WatchCreate {
    pub(super) key: Base64Bytes,
    pub(super) range_end: Base64Bytes,
    pub(super) start_revision: TextI64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchLine {
    pub(super) result: Option<WatchResponse>,
    pub(super) error: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchResponse {
    pub(super) canceled: bool,
    pub(super) compact_revision: TextI64,
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    /// `DELETE`, or empty for a put.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) kv: KeyValue,
}

#[derive(Debug, Serialize)]
pub(super) struct GrantRequest {
    /// In seconds.
    #[serde(rename = "TTL")]
    pub(super) ttl: TextI64,
}

#[derive(Debug, Serialize)]
pub(super) struct KeepAliveRequest {
    #[serde(rename = "ID")]
    pub(super) id: TextI64,
}

/// The response to [`GrantRequest`]. The response to [`KeepAliveRequest`] contains it as `result`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Lease {
    #[serde(rename = "ID")]
    pub(super) id: TextI64,
    /// The number of seconds until the lease expires, or 0 if it has expired.
    #[serde(rename = "TTL")]
    pub(super) ttl: TextI64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeepAliveResponse {
    pub(super) result: Lease,
}

#[derive(Debug, Serialize)]
pub(super) struct AuthRequest<'a> {
    pub(super) name: &'a str,
    pub(super) password: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct AuthResponse {
    pub(super) token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorResponse {
    pub(super) error: String,
    pub(super) message: String,
    /// The gRPC status code.
    pub(super) code: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_serialized_in_the_form_that_etcd_expects() {
        let txn = TxnRequest {
            compare: vec![Compare::none_with_prefix("a/"), Compare::last_changed("b".to_owned(), TextI64(7))],
            success: vec![Op::put("k".to_owned(), b"v".to_vec()), Op::delete("d".to_owned())],
            failure: vec![Op::get("k".to_owned())],
        };
        let text = serde_json::to_string(&txn).unwrap();
        let expected = concat!(
            r#"{"compare":[{"result":"EQUAL","target":"CREATE","key":"YS8=","range_end":"YTA=","create_revision":"0"},"#,
            r#"{"result":"EQUAL","target":"MOD","key":"Yg==","mod_revision":"7"}],"#,
            r#""success":[{"request_put":{"key":"aw==","value":"dg=="}},{"request_delete_range":{"key":"ZA=="}}],"#,
            r#""failure":[{"request_range":{"key":"aw=="}}]}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn fields_that_are_missing_in_a_response_are_zero() {
        let text = r#"{"header":{"revision":"12","raft_term":"2"},"responses":[{"response_range":{"header":{},"kvs":[{"key":"YQ=="}]}}]}"#;
        let response: TxnResponse = serde_json::from_str(text).unwrap();
        assert_eq!((response.header.revision, response.succeeded), (TextI64(12), false));
        let kv = &response.responses[0].response_range.as_ref().unwrap().kvs[0];
        assert_eq!((&*kv.key.0, &*kv.value.0, kv.mod_revision), (&b"a"[..], &b""[..], TextI64(0)));
        assert!(serde_json::from_str::<TxnResponse>(r#"{"header":{"revision":"x"}}"#).is_err());
    }
}
