//! Alignment of bulk data in messages.

use bytes::Bytes;
use giop_codec::giop::{ContextId, ServiceContext};

/// Returns a context that shifts the bytes after it by half of the largest alignment.
pub(crate) fn padding() -> ServiceContext {
    ServiceContext { id: ContextId::ZORB_PADDING, data: Bytes::from_static(&[0; 4]) }
}
