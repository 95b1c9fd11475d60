//! The server side: object tables, requests and skeletons.

pub(crate) mod adapter;
/// A module of its own, because the models in `loom/` replace it with loom's atomics.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}
mod charge;
pub(crate) mod count;
mod current;
pub(crate) mod demux;
mod deposit;
pub(crate) mod elsewhere;
pub(crate) mod entry;
mod item_stream;
mod optable;
mod outflow;
pub(crate) mod reply;
pub(crate) mod request;
mod results;
pub(crate) mod running;
mod seq_stream;
mod servant_future;
mod served;
mod skeleton;
mod stream;
pub(crate) mod together;
pub(crate) mod turns;
pub(crate) mod waiting;

#[cfg(feature = "tracing")]
pub(crate) use current::current_trace;
pub use current::{Request, request, try_request};
pub(crate) use current::{deadline_for_call, ending_behind_us, has_turn};
pub use demux::{Demux, Interface, ObjectDemux, OperationDemux, Operations, PathDemux};
pub use deposit::DepositError;
pub use item_stream::ItemStream;
pub use optable::OpTable;
pub use request::{Outcome, ServerRequest, unknown_user_exception};
pub(crate) use results::{BadResults, ResultStream, Results};
pub use seq_stream::{SeqStart, SeqStream};
pub use servant_future::ServantFuture;
pub(crate) use served::Served;
pub use skeleton::{DispatchSlot, Servant, Serves, Skeleton, UserException};
pub use stream::{ByteStream, StreamStart};
