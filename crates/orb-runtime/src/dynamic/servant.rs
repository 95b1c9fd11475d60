//! [`DynServant`]: servants of interfaces that are known at run time.

use std::any::Any as StdAny;
use std::future::Future;
use std::sync::Arc;

use giop_codec::any::Any;
use giop_codec::dynamic::{Interface, OperationInfo};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::typecode::TcKind;

use super::named::Aside;
use super::{DynamicException, ServerRequest};
use crate::serve::entry::RunMode;
use crate::serve::request::unlisted;
use crate::serve::{DispatchSlot, Outcome, Servant, ServerRequest as Incoming, Skeleton};

/// A servant of whatever interface (the Dynamic Skeleton Interface). [`Servant::dynamic`] makes it a servant of one.
///
/// It is asked for the operations and attributes of the interface alone. What every object has, such as `_is_a`, is answered for it, and
/// what the interface has not gets BAD_OPERATION.
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
    pub(super) async fn serve(&self, mut incoming: Incoming) -> Outcome {
        let name = std::str::from_utf8(incoming.operation()).unwrap_or_default();
        let Some(operation) = self.interface.find(name).map(Arc::clone) else {
            return incoming.operation_of_every_object(self.interface.id(), |id| self.interface.is_a(id));
        };
        let decoded = {
            let aside = Aside::new();
            let decoded = incoming.decode(|d| {
                let request = ServerRequest::decode(&operation, d);
                aside.decoded(d, request)
            });
            decoded.map_err(|error| aside.take().unwrap_or_else(|| error.into()))
        };
        let request = match decoded {
            Ok(request) => request,
            Err(error) => return incoming.system_exception(error.system(CompletionStatus::No)),
        };
        match self.servant.invoke(request).await {
            Ok(done) => match done.check() {
                Ok(()) => incoming.reply(|e| Aside::new().encoded(done.encode(e))),
                Err(exception) => incoming.system_exception(exception),
            },
            Err(DynamicException::User(exception)) => match raisable(&exception, &operation) {
                Ok(()) => incoming.raise(&exception),
                Err(exception) => incoming.system_exception(exception),
            },
            Err(DynamicException::System(exception)) => incoming.system_exception(exception),
        }
    }
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
