//! Servants: their skeletons, the requests that they serve, and their results.
//!
//! Module `poa` finds objects. Requests are started and polled by `server`, or by `client` if the caller is
//! in the same ORB.

pub(crate) mod active_object;
pub(crate) mod poa_core;
pub(crate) mod request_counter;
mod streamed_result;
pub(crate) mod thread_model;

/// The atomics of [`request_counter`]. The models in `loom/` replace this module with loom's atomics.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
}
mod collocated_request;
mod current;
mod deposit;
#[cfg(feature = "experiments")]
pub(crate) mod experiments;
pub(crate) mod forward;
mod item_stream;
mod optable;
pub(crate) mod reply;
pub(crate) mod request;
mod result_source;
mod results;
mod seq_stream;
mod skeleton;
mod stream;

pub(crate) use collocated_request::CollocatedRequest;
#[cfg(feature = "tracing")]
pub(crate) use current::current_trace;
pub use current::{Request, request, try_request};
pub(crate) use current::{deadline_for_call, find_object_etherealized_after_callers, holds_turn};
pub use deposit::DepositError;
pub use forward::{ForwardRequest, Refusal};
pub use item_stream::ItemStream;
pub use optable::OpTable;
pub use request::{Outcome, ServerRequest, unknown_user_exception};
pub(crate) use result_source::ResultRequest;
pub use result_source::ResultSource;
pub(crate) use results::{BadResults, ResultStream, Results};
pub use seq_stream::{SeqStart, SeqStream};
pub use skeleton::{BoxedFuture, DispatchSlot, Operations, Servant, ServantFuture, Skeleton, UserException};
pub use stream::{ByteStream, StreamStart};
