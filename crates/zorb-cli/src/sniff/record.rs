//! The record of a message, which is printed as JSON or as text.

use std::net::SocketAddr;

use giop_codec::cdr::Decoder;
use serde::Serialize;
use serde_json::value::RawValue;

use super::types::DecodedBody;

/// The maximum number of bytes that are printed of a body in hexadecimal.
const MAX_BODY_BYTES: usize = 4096;

/// A message in the output. The field names are the JSON keys, unless a field is renamed.
#[derive(Debug, Serialize)]
pub(super) struct MessageRecord {
    /// Seconds since the start of 1970.
    pub(super) time: f64,
    pub(super) connection: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The message type, such as `request`.
    pub(super) message: &'static str,
    pub(super) giop: String,
    pub(super) little_endian: bool,
    #[serde(rename = "octets")]
    pub(super) size: u64,
    /// The number of fragments, 1 for a message that is not fragmented.
    #[serde(skip_serializing_if = "is_one")]
    pub(super) fragments: u32,
    /// The request id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<u32>,
    /// The object key. Bytes that are not printable are escaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The interface such as `Bank::Account`, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) oneway: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// The time since the request, in a reply or cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Box<RawValue>>,
    /// The body in hexadecimal, if it could not be decoded or its types are not known.
    #[serde(rename = "body_octets", skip_serializing_if = "Option::is_none")]
    pub(super) body_hex: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) contexts: Vec<ContextRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remarks: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

#[derive(Debug, Serialize)]
pub(super) struct ContextRecord {
    pub(super) id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'static str>,
    #[serde(rename = "says", skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(rename = "octets")]
    pub(super) size: usize,
}

impl MessageRecord {
    /// Sets the body as JSON if it was decoded. Sets it in hexadecimal if it was not, or if its types are not
    /// known (`is_typed`).
    pub(super) fn set_body(&mut self, is_typed: bool, decoded: DecodedBody, body: &Decoder<'_>) {
        self.remarks.extend(decoded.remark);
        if !is_typed || decoded.json.is_none() {
            let bytes = body.rest();
            let start = bytes.get(..MAX_BODY_BYTES).unwrap_or(bytes);
            let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            if start.len() < bytes.len() {
                self.remarks.push(format!("only {} of {} bytes are printed", start.len(), bytes.len()));
            }
            self.body_hex = Some(hex).filter(|hex| !hex.is_empty());
        }
        self.body = decoded.json;
    }
}
