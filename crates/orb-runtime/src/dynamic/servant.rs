//! [`DynServant`]: servants of interfaces that are known at run time.

use std::any::Any as StdAny;
use std::future::Future;
use std::sync::Arc;

use giop_codec::any::Any;
use giop_codec::dynamic::{DynError, Interface, OperationInfo};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::typecode::TcKind;

use super::named::Aside;
use super::offload::{is_large, offload};
use super::{DynamicException, ServerRequest};
use crate::serve::entry::RunMode;
use crate::serve::request::unlisted;
use crate::serve::{DispatchSlot, Outcome, Servant, ServerRequest as Incoming, Skeleton};

/// A servant of whatever interface (the Dynamic Skeleton Interface). [`Servant::dynamic`] makes it a servant of one.
///
/// It is asked for the operations and attributes of the interface alone. What every object has, such as `_is_a`, is answered for it, and
/// what the interface has not gets BAD_OPERATION.
///
/// Arguments and results of 64 KiB and more are decoded and encoded on the runtime's threads for blocking work, for as many requests of the
/// ORB at a time as there are processors. Requests that follow on the same connection may be served before such a one, but not after a oneway.
#[doc(alias = "PortableServer::DynamicImplementation")]
pub trait DynServant: Send + Sync + 'static {
    /// Serves a request, and gives it back with its results.
    ///
    /// # Errors
    /// An exception of the operation's raises clause, which others are UNKNOWN for the client; or a system exception.
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
    /// A servant of that interface. Calls of it in this process are marshalled as calls from afar are.
    #[must_use]
    pub fn dynamic<S: DynServant>(interface: Arc<Interface>, servant: S) -> Self {
        Self { skeleton: Arc::new(Dynamic { interface, servant }), mode: RunMode::default() }
    }
}

/// The skeleton of a dynamic servant.
pub(super) struct Dynamic<S> {
    pub(super) interface: Arc<Interface>,
    pub(super) servant: S,
}

impl<S: DynServant> Skeleton for Dynamic<S> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn repository_id(&self) -> &str {
        self.interface.id()
    }

    fn is_a(&self, repository_id: &str) -> Option<bool> {
        Some(self.interface.is_a(repository_id))
    }

    fn seat_kind(&self) -> usize {
        std::any::type_name::<S>().as_ptr().addr()
    }

    fn dispatch(self: Arc<Self>, request: Incoming, slot: &mut DispatchSlot) {
        slot.set(async move { self.serve(request).await });
    }

    /// There is no interface to be called by without marshalling.
    fn local(self: Arc<Self>, _: &mut dyn StdAny) {}
}

impl<S: DynServant> Dynamic<S> {
    pub(super) async fn serve(&self, incoming: Incoming) -> Outcome {
        let name = std::str::from_utf8(incoming.operation()).unwrap_or_default();
        let Some(operation) = self.interface.find(name).map(Arc::clone) else {
            return incoming.operation_of_every_object(self.interface.id(), |id| self.interface.is_a(id));
        };
        let (bytes, of) = (incoming.argument_bytes(), Arc::clone(&operation));
        let decoded =
            work(incoming, bytes, CompletionStatus::No, move |incoming| decode(incoming, &of)).await;
        let (incoming, request) = match decoded {
            Ok((incoming, Ok(request))) => (incoming, request),
            Ok((incoming, Err(error))) => {
                return incoming.system_exception(error.system(CompletionStatus::No));
            }
            Err(lost) => return lost,
        };
        let replied = match self.servant.invoke(request).await {
            Ok(done) => match done.check() {
                Ok(()) => {
                    let bytes = done.reply_bytes();
                    let reply =
                        move |incoming: Incoming| incoming.reply(|e| Aside::new().encoded(done.encode(e)));
                    work(incoming, bytes, CompletionStatus::Yes, reply).await
                }
                Err(exception) => Ok(incoming.system_exception(exception)),
            },
            Err(DynamicException::User(exception)) => match raisable(&exception, &operation) {
                Ok(()) => {
                    let bytes = exception.byte_len();
                    work(incoming, bytes, CompletionStatus::Yes, move |incoming| incoming.raise(&exception))
                        .await
                }
                Err(exception) => Ok(incoming.system_exception(exception)),
            },
            Err(DynamicException::System(exception)) => Ok(incoming.system_exception(exception)),
        };
        replied.unwrap_or_else(|lost| lost)
    }
}

/// The request with its arguments, or why it has none.
fn decode(
    mut incoming: Incoming,
    operation: &Arc<OperationInfo>,
) -> (Incoming, Result<ServerRequest, DynError>) {
    let aside = Aside::new();
    let decoded = incoming.decode(|d| {
        let request = ServerRequest::decode(operation, d);
        aside.decoded(d, request)
    });
    let decoded = decoded.map_err(|error| aside.take().unwrap_or_else(|| error.into()));
    (incoming, decoded)
}

/// Does what is to be done with a request and so many bytes of values: on another thread where they are many, unless this thread may be blocked.
///
/// # Errors
/// The request is lost with the runtime; what its caller gets then.
async fn work<T: Send + 'static>(
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
        current.seen().system_exception(&exception);
        to.failed(exception)
    })
}

/// Whether that is an exception of the operation's raises clause.
#[cold]
fn raisable(exception: &Any, operation: &OperationInfo) -> Result<(), SystemException> {
    let code = exception.type_code().unaliased();
    if code.kind() != TcKind::Except {
        return Err(SystemException::new(
            SystemExceptionKind::BadParam,
            minor::BAD_PARAM_ANY_NO_EXCEPTION,
            CompletionStatus::Maybe,
        )
        .because(format!("`{}` raised a value of type `{code}`", operation.name)));
    }
    if operation.raises.iter().any(|listed| listed.equivalent(&code)) {
        return Ok(());
    }
    Err(unlisted(format!("`{}` raised {code}, which is not in its raises clause", operation.name)))
}
