//! Alignment of bulk data in messages.

use bytes::Bytes;
use giop_codec::giop::{ContextId, ServiceContext};

/// Returns a service context that shifts the following bytes by 4, half of the maximum alignment.
pub(crate) fn padding() -> ServiceContext {
    ServiceContext { id: ContextId::ZORB_PADDING, data: Bytes::from_static(&[0; 4]) }
}
