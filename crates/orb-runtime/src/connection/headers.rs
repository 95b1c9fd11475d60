//! [`HeaderCache`], a cache of encoded request headers.
//!
//! Requests of the same operation through the same reference usually differ only in their ids and arguments.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{RequestId, ResponseFlags};

use crate::connection::binding::Binding;

const MAX_HEADERS: usize = 8;
/// The maximum size of a cached header in bytes. Longer headers are encoded each time.
const MAX_HEADER_SIZE: usize = 256;
/// The offset in bytes of the request id in GIOP 1.2. In earlier versions, it varies.
const ID_OFFSET: usize = 12;

/// Determines a request header, except for the request id. The header has no service contexts except those
/// of the binding that identify the caller.
#[derive(Clone, Copy)]
pub(crate) struct HeaderKey<'a> {
    pub(crate) binding: &'a Arc<Binding>,
    /// The address in memory of the static that describes the operation.
    pub(crate) operation: usize,
    pub(crate) response: ResponseFlags,
}

#[derive(Default)]
pub(crate) struct HeaderCache {
    entries: Vec<CachedHeader>,
    /// The index of the entry that the next header replaces, when the cache is full.
    next_replaced: usize,
}

struct CachedHeader {
    binding: Arc<Binding>,
    operation: usize,
    response: ResponseFlags,
    bytes: Vec<u8>,
}

impl HeaderCache {
    /// Writes the cached header of a request. Returns whether there is one.
    #[inline]
    pub(crate) fn start_request(&self, key: HeaderKey<'_>, id: RequestId, e: &mut Encoder) -> bool {
        let found = self.entries.iter().find(|entry| {
            entry.operation == key.operation
                && Arc::ptr_eq(&entry.binding, key.binding)
                && entry.response == key.response
        });
        if let Some(entry) = found {
            e.set_code_sets(key.binding.code_sets);
            e.put_raw(&entry.bytes);
            e.patch_u32(ID_OFFSET, id.0);
        }
        found.is_some()
    }

    pub(crate) fn insert(&mut self, key: HeaderKey<'_>, header: &[u8]) {
        if key.binding.version != Version::V1_2 || header.len() > MAX_HEADER_SIZE {
            return;
        }
        let HeaderKey { binding, operation, response } = key;
        if self.entries.len() < MAX_HEADERS {
            let (binding, bytes) = (Arc::clone(binding), header.to_vec());
            self.entries.push(CachedHeader { binding, operation, response, bytes });
        } else if let Some(entry) = self.entries.get_mut(self.next_replaced) {
            if !Arc::ptr_eq(&entry.binding, binding) {
                entry.binding = Arc::clone(binding);
            }
            (entry.operation, entry.response) = (operation, response);
            entry.bytes.clear();
            entry.bytes.extend_from_slice(header);
            self.next_replaced = (self.next_replaced + 1) % MAX_HEADERS;
        }
    }
}
