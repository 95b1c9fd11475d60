//! [`DynServant`]: servants of interfaces that are known only at run time.

use std::any::Any as StdAny;
use std::future::Future;
use std::sync::Arc;

use giop_codec::any::Any;
use giop_codec::dynamic::{DynError, Interface, OperationInfo};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::typecode::TcKind;

use crate::dynamic::error::DynamicException;
use crate::dynamic::named::LocatedErrorSlot;
use crate::dynamic::offload::{is_large, offload};
use crate::dynamic::server_request::ServerRequest;
use crate::servant::active_object::RunMode;
use crate::servant::request::unreportable_user_exception;
use crate::servant::{DispatchSlot, Outcome, Servant, ServerRequest as Incoming, Skeleton};

/// A servant of any interface (the Dynamic Skeleton Interface). [`Servant::dynamic`] combines it with an
/// interface.
///
/// It receives only requests for operations and attributes of the interface. The ORB answers requests for the
/// operations that every object has, such as `_is_a`, and raises BAD_OPERATION for unknown operations.
///
/// Arguments and results of 64 KiB or more are decoded and encoded on threads for blocking work, at most one
/// per processor at a time. Meanwhile, later requests are served, unless they must wait for a oneway.
#[doc(alias = "PortableServer::DynamicImplementation")]
pub trait DynServant: Send + Sync + 'static {
    /// Serves a request, and returns it with its results.
    ///
    /// # Errors
    /// An exception of the operation's raises clause, or a system exception. For other user exceptions, the
    /// client receives UNKNOWN, and for a value that is not an exception BAD_PARAM.
    fn invoke(
        &self,
        request: ServerRequest,
    ) -> impl Future<Output = Result<ServerRequest, DynamicException>> + Send;
}

impl<S: DynServant> DynServant for Arc<S> {
    fn invoke(
        &self,
        request: ServerRequest,
    ) -> impl Future<Output = Result<ServerRequest, DynamicException>> + Send {
        (**self).invoke(request)
    }
}

impl Servant {
    /// Creates a servant of this interface. Collocated calls are marshalled like remote calls.
    #[must_use]
    pub fn dynamic<S: DynServant>(interface: Arc<Interface>, servant: S) -> Self {
        Self { skeleton: Arc::new(DynamicSkeleton { interface, servant }), mode: RunMode::default() }
    }
}

pub(super) struct DynamicSkeleton<S> {
    pub(super) interface: Arc<Interface>,
    pub(super) servant: S,
}

impl<S: DynServant> Skeleton for DynamicSkeleton<S> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn repository_id(&self) -> &str {
        self.interface.id()
    }

    fn is_a(&self, repository_id: &str) -> Option<bool> {
        Some(self.interface.is_a(repository_id))
    }

    fn slot_kind(&self) -> usize {
        std::any::type_name::<S>().as_ptr().addr()
    }

    fn dispatch(self: Arc<Self>, request: Incoming, slot: &mut DispatchSlot) {
        slot.set(async move { self.serve(request).await });
    }

    /// Does nothing, because there is no Rust trait for calls without marshalling.
    fn downcast_into(self: Arc<Self>, _: &mut dyn StdAny) {}
}

impl<S: DynServant> DynamicSkeleton<S> {
    pub(super) async fn serve(&self, incoming: Incoming) -> Outcome {
        let name = std::str::from_utf8(incoming.operation()).unwrap_or_default();
        let Some(operation) = self.interface.find(name).map(Arc::clone) else {
            return incoming.operation_of_every_object(self.interface.id(), |id| self.interface.is_a(id));
        };
        let (bytes, decoded_operation) = (incoming.argument_byte_len(), Arc::clone(&operation));
        let decode = move |incoming| decode(incoming, &decoded_operation);
        let (incoming, request) = match run_or_offload(incoming, bytes, CompletionStatus::No, decode).await {
            Ok((incoming, Ok(request))) => (incoming, request),
            Ok((incoming, Err(error))) => {
                return incoming.system_exception(error.to_system_exception(CompletionStatus::No));
            }
            Err(lost) => return lost,
        };
        let outcome = match self.servant.invoke(request).await {
            Ok(request) => match request.check_results() {
                Ok(()) => {
                    let bytes = request.reply_byte_len();
                    let reply = move |incoming: Incoming| {
                        incoming.reply(|e| LocatedErrorSlot::new().keep_encode_error(request.encode(e)))
                    };
                    run_or_offload(incoming, bytes, CompletionStatus::Yes, reply).await
                }
                Err(exception) => Ok(incoming.system_exception(exception)),
            },
            Err(DynamicException::User(exception)) => match check_raised(&exception, &operation) {
                Ok(()) => {
                    let bytes = exception.byte_len();
                    let raise = move |incoming: Incoming| incoming.raise(&exception);
                    run_or_offload(incoming, bytes, CompletionStatus::Yes, raise).await
                }
                Err(exception) => Ok(incoming.system_exception(exception)),
            },
            Err(DynamicException::System(exception)) => Ok(incoming.system_exception(exception)),
        };
        outcome.unwrap_or_else(|lost| lost)
    }
}

fn decode(
    mut incoming: Incoming,
    operation: &Arc<OperationInfo>,
) -> (Incoming, Result<ServerRequest, DynError>) {
    let error_slot = LocatedErrorSlot::new();
    let decoded = incoming.decode(|d| {
        let request = ServerRequest::decode(operation, d);
        error_slot.keep_decode_error(d, request)
    });
    let decoded = decoded.map_err(|error| error_slot.take().unwrap_or_else(|| error.into()));
    (incoming, decoded)
}

/// Runs work on values of this size. Large values are processed on another thread, unless the servant already
/// runs on a thread for blocking work. If the runtime has shut down, returns the outcome of the request.
async fn run_or_offload<T: Send + 'static>(
    incoming: Incoming,
    bytes: usize,
    completed: CompletionStatus,
    work: impl FnOnce(Incoming) -> T + Send + 'static,
) -> Result<T, Outcome> {
    let may_block = || incoming.current.entry().is_some_and(|entry| entry.mode.blocking);
    if !is_large(bytes) || may_block() {
        return Ok(work(incoming));
    }
    let (current, to) = (incoming.current.clone(), incoming.to);
    let done = offload(current.core(), completed, move || work(incoming)).await;
    done.map_err(|exception| {
        current.span().record_system_exception(&exception);
        to.exception_outcome(exception)
    })
}

/// Checks whether a value is an exception of the operation's raises clause.
#[cold]
fn check_raised(exception: &Any, operation: &OperationInfo) -> Result<(), SystemException> {
    let code = exception.type_code().unaliased();
    let name = &operation.name;
    if code.kind() != TcKind::Except {
        return Err(SystemException::bad_param()
            .with_minor(minor::BAD_PARAM_ANY_NO_EXCEPTION)
            .completed(CompletionStatus::Maybe)
            .with_reason(format!("`{name}` raised a value of type `{code}`, which is not an exception")));
    }
    if operation.raises.iter().any(|listed| listed.equivalent(&code)) {
        return Ok(());
    }
    Err(unreportable_user_exception(format!("`{name}` raised {code}, which is not in its raises clause")))
}
