//! Cache of encoded request headers.
//!
//! Successive requests of one operation through one reference differ only in request id and arguments. A
//! cached header reduces the next one to one copy and one patched number.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{RequestId, ResponseFlags};

use crate::connection::binding::Binding;

/// Maximum number of cached headers of one connection.
const KEPT: usize = 8;

/// Maximum size of a cached header, in bytes. Headers with longer keys and names are encoded each time.
const LONGEST: usize = 256;

/// Position of the request id in GIOP 1.2. In earlier versions it follows the service contexts.
const ID_AT: usize = 12;

/// The parts of a header other than its id. It has no service contexts, and addresses its target by key.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    pub(crate) binding: &'a Arc<Binding>,
    /// The address of the static that describes the operation.
    pub(crate) operation: usize,
    pub(crate) response: ResponseFlags,
}

/// The cached headers of one connection, in no order.
#[derive(Default)]
pub(crate) struct Headers {
    kept: Vec<Kept>,
    /// Index of the entry to be replaced next.
    oldest: usize,
}

struct Kept {
    binding: Arc<Binding>,
    operation: usize,
    response: ResponseFlags,
    octets: Vec<u8>,
}

impl Headers {
    /// Starts a request with its cached header. Returns whether there is one.
    #[inline]
    pub(crate) fn start(&self, plain: Plain<'_>, id: RequestId, e: &mut Encoder) -> bool {
        let known = self.kept.iter().find(|kept| {
            kept.operation == plain.operation
                && Arc::ptr_eq(&kept.binding, plain.binding)
                && kept.response == plain.response
        });
        if let Some(kept) = known {
            e.set_code_sets(plain.binding.code_sets);
            e.put_raw(&kept.octets);
            e.patch_u32(ID_AT, id.0);
        }
        known.is_some()
    }

    /// Caches a header for later requests.
    pub(crate) fn keep(&mut self, plain: Plain<'_>, octets: &[u8]) {
        if plain.binding.version != Version::V1_2 || octets.len() > LONGEST {
            return;
        }
        let Plain { binding, operation, response } = plain;
        if self.kept.len() < KEPT {
            let (binding, octets) = (Arc::clone(binding), octets.to_vec());
            self.kept.push(Kept { binding, operation, response, octets });
        } else if let Some(kept) = self.kept.get_mut(self.oldest) {
            if !Arc::ptr_eq(&kept.binding, binding) {
                kept.binding = Arc::clone(binding);
            }
            (kept.operation, kept.response) = (operation, response);
            kept.octets.clear();
            kept.octets.extend_from_slice(octets);
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }
}
