//! Request headers that were encoded before.
//!
//! A request differs from the last one of the same operation through the same reference in its id and its arguments
//! only. So its header is kept as octets, and the next one costs one copy and one number.

use std::sync::Arc;

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{RequestId, ResponseFlags};

use crate::reference::Binding;

/// Headers kept for one connection.
const KEPT: usize = 8;

/// The longest header that is kept: longer keys and names are encoded each time.
const LONGEST: usize = 256;

/// Where the request id stands in GIOP 1.2; before, it stands behind the service contexts.
const ID_AT: usize = 12;

/// What a header says, besides its id: no service contexts, the target by its key.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    pub(crate) binding: &'a Arc<Binding>,
    /// The address of the static that it stands in.
    pub(crate) operation: usize,
    pub(crate) response: ResponseFlags,
}

/// The headers of one connection: the last few operations, in no order.
#[derive(Default)]
pub(super) struct Headers {
    kept: Vec<Kept>,
    /// Which gives its place to the next.
    oldest: usize,
}

struct Kept {
    binding: Arc<Binding>,
    operation: usize,
    response: ResponseFlags,
    octets: Vec<u8>,
}

impl Headers {
    /// Starts a request by the header kept for it, if there is one.
    #[inline]
    pub(super) fn start(&self, plain: Plain<'_>, id: RequestId, e: &mut Encoder) -> bool {
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

    /// Keeps a header for the next request.
    pub(super) fn keep(&mut self, plain: Plain<'_>, octets: &[u8]) {
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
