//! The messages of etcd's JSON gateway (etcd 3.4 and later): keys and values in Base64, 64-bit numbers as
//! text, and zero fields omitted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

/// A byte string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Octets(pub(super) Vec<u8>);

impl Octets {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Octets {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        let octets = STANDARD.decode(text.as_bytes());
        octets.map(Self).map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"Base64"))
    }
}

/// A number of 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Long(pub(super) i64);

impl Long {
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for Long {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Long {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"a number"))
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RangeRequest {
    pub(super) key: Octets,
    #[serde(skip_serializing_if = "Octets::is_empty")]
    pub(super) range_end: Octets,
    #[serde(skip_serializing_if = "Long::is_zero")]
    pub(super) limit: Long,
    #[serde(skip_serializing_if = "Long::is_zero")]
    pub(super) revision: Long,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) keys_only: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct PutRequest {
    pub(super) key: Octets,
    pub(super) value: Octets,
    #[serde(skip_serializing_if = "Long::is_zero")]
    pub(super) lease: Long,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DeleteRequest {
    pub(super) key: Octets,
}

/// A condition of a transaction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Compare {
    result: &'static str,
    target: &'static str,
    key: Octets,
    #[serde(skip_serializing_if = "Octets::is_empty")]
    range_end: Octets,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_revision: Option<Long>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mod_revision: Option<Long>,
}

impl Compare {
    fn new(result: &'static str, target: &'static str, key: String) -> Self {
        let (key, range_end) = (key.into(), Octets::default());
        Self { result, target, key, range_end, create_revision: None, mod_revision: None }
    }

    /// Such a key exists.
    pub(super) fn there(key: String) -> Self {
        Self { create_revision: Some(Long(0)), ..Self::new("GREATER", "CREATE", key) }
    }

    /// No such key exists.
    pub(super) fn missing(key: String) -> Self {
        Self { create_revision: Some(Long(0)), ..Self::new("EQUAL", "CREATE", key) }
    }

    /// No key with that prefix exists.
    pub(super) fn none_below(prefix: &str) -> Self {
        Self { range_end: behind(prefix), ..Self::missing(prefix.to_owned()) }
    }

    /// The key was last changed in that revision; `revision` 0 means that it does not exist.
    pub(super) fn last_changed(key: String, revision: Long) -> Self {
        Self { mod_revision: Some(revision), ..Self::new("EQUAL", "MOD", key) }
    }
}

/// Returns the first key after all keys with that prefix. Prefixes end with a slash.
pub(super) fn behind(prefix: &str) -> Octets {
    let mut octets = prefix.as_bytes().to_vec();
    if let Some(last) = octets.last_mut() {
        *last += 1;
    }
    Octets(octets)
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
        Self::Put(PutRequest { key: key.into(), value: Octets(value), lease: Long(0) })
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
    pub(super) revision: Long,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    pub(super) key: Octets,
    pub(super) value: Octets,
    pub(super) mod_revision: Long,
    pub(super) lease: Long,
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
    pub(super) key: Octets,
    pub(super) range_end: Octets,
    pub(super) start_revision: Long,
}

/// A line of a watch.
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
    pub(super) compact_revision: Long,
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    /// `DELETE`, or empty.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) kv: KeyValue,
}

#[derive(Debug, Serialize)]
pub(super) struct GrantRequest {
    #[serde(rename = "TTL")]
    pub(super) ttl: Long,
}

#[derive(Debug, Serialize)]
pub(super) struct KeepAliveRequest {
    #[serde(rename = "ID")]
    pub(super) id: Long,
}

/// The answer to both requests for a lease; without a time if it has ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Lease {
    #[serde(rename = "ID")]
    pub(super) id: Long,
    #[serde(rename = "TTL")]
    pub(super) ttl: Long,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeptAlive {
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

/// An error response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) error: String,
    pub(super) message: String,
    /// The gRPC status code.
    pub(super) code: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_written_as_etcd_reads_them() {
        let txn = TxnRequest {
            compare: vec![Compare::none_below("a/"), Compare::last_changed("b".to_owned(), Long(7))],
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
    fn what_is_missing_in_an_answer_is_zero() {
        let text = r#"{"header":{"revision":"12","raft_term":"2"},"responses":[{"response_range":{"header":{},"kvs":[{"key":"YQ=="}]}}]}"#;
        let answer: TxnResponse = serde_json::from_str(text).unwrap();
        assert_eq!((answer.header.revision, answer.succeeded), (Long(12), false));
        let kv = &answer.responses[0].response_range.as_ref().unwrap().kvs[0];
        assert_eq!((&*kv.key.0, &*kv.value.0, kv.mod_revision), (&b"a"[..], &b""[..], Long(0)));
        assert!(serde_json::from_str::<TxnResponse>(r#"{"header":{"revision":"x"}}"#).is_err());
    }
}
