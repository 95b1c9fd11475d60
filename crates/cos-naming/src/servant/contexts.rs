//! The servant of all naming contexts. It forwards the operations to the [`Service`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use zorb::cos_naming::naming_context::{
    BindContextError, BindError, BindNewContextError, DestroyError, InvalidName, RebindContextError,
    RebindError, ResolveError, UnbindError,
};
use zorb::cos_naming::naming_context_ext::{
    InvalidAddress, ResolveStrError, ToNameError, ToStringError, ToUrlError,
};
use zorb::cos_naming::{
    Binding, BindingIteratorRef, Name, NameComponent, NameText, NamingContextExtServant, NamingContextRef,
    NamingContextServant, parse_name, print_name,
};
use zorb::poa::{ObjectId, Poa, Refusal, ServantLocator};
use zorb::wire::{ContextId as ServiceContextId, ServiceContext};
use zorb::{ObjectRef, Servant, SystemException, SystemExceptionKind};

use super::fault::{Fault, system_exception};
use super::service::Service;
use super::walk::Operation;
use crate::store::{ContextId, MayReplace, Store};
use crate::zorb_naming::balanced_context::{
    BindForError, BindGroupError, JoinError, LeaveError, MembersError, ReportLoadError,
};
use crate::zorb_naming::{BalancedContextServant, Member, State, Strategy};

/// The service context of replies from a cache. Its data is a big-endian `u32`: the number of seconds for
/// which the storage has been unavailable.
const CACHED_REPLY: ServiceContextId = ServiceContextId(0x5A4F_5211);

/// The servant of all contexts of a service, or of its root context alone.
pub(crate) struct ContextServant<S> {
    /// Weak, because the service is owned by its `Server`.
    service: Weak<Service<S>>,
    /// The context of all requests, or `None` if the object id of each request determines its context.
    fixed_context: Option<ContextId>,
}

impl<S: Store> ContextServant<S> {
    pub(crate) fn all_contexts(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service), fixed_context: None }
    }

    pub(crate) fn root_context(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service), fixed_context: Some(ContextId::ROOT) }
    }

    fn service_and_context(&self) -> Result<(Arc<Service<S>>, ContextId), SystemException> {
        let service = self.service.upgrade().ok_or_else(service_ended)?;
        if let Some(time) = service.store.state().unavailable_for {
            mark_reply_as_cached(time);
        }
        let context = match self.fixed_context {
            Some(context) => context,
            None => context_of(zorb::request().object_id()).ok_or_else(|| {
                system_exception(SystemExceptionKind::ObjectNotExist, "no naming context has this key")
            })?,
        };
        Ok((service, context))
    }

    async fn execute(&self, n: &[NameComponent], operation: Operation<'_>) -> Result<(), Fault> {
        let (service, context) = self.service_and_context()?;
        service.execute(context, n, operation).await.map(drop)
    }
}

/// Informs the client, by a service context, that the reply may be outdated.
#[cold]
fn mark_reply_as_cached(unavailable_for: Duration) {
    #[cfg(feature = "etcd")]
    metrics::counter!("zorb_names_cached_answers_total").increment(1);
    if let Some(request) = zorb::try_request() {
        let data = zorb::Bytes::copy_from_slice(&whole_seconds(unavailable_for).to_be_bytes());
        request.set_reply_context(ServiceContext { id: CACHED_REPLY, data });
    }
}

fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cold]
fn service_ended() -> SystemException {
    system_exception(SystemExceptionKind::ObjectNotExist, "the naming service has ended")
}

pub(super) fn id_of(context: ContextId) -> ObjectId {
    ObjectId::from(context.0.to_be_bytes().as_slice())
}

pub(super) fn context_of(id: &[u8]) -> Option<ContextId> {
    id.try_into().ok().map(u64::from_be_bytes).map(ContextId)
}

/// Returns the shared servant, but only for contexts that exist, so that `_non_existent` is correct.
pub(crate) struct ContextLocator<S> {
    service: Weak<Service<S>>,
    servant: Servant,
}

impl<S: Store> ContextLocator<S> {
    pub(crate) fn new(service: &Weak<Service<S>>, servant: Servant) -> Self {
        Self { service: Weak::clone(service), servant }
    }
}

impl<S: Store> ServantLocator for ContextLocator<S> {
    type Cookie = ();

    async fn preinvoke(&self, id: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, ()), Refusal> {
        let service = self.service.upgrade().ok_or_else(service_ended)?;
        let exists = match context_of(id.as_slice()) {
            Some(context) => service.store.has_context(context).await,
            None => Ok(false),
        };
        match exists {
            Ok(true) => Ok((self.servant.clone(), ())),
            Ok(false) => Err(system_exception(
                SystemExceptionKind::ObjectNotExist,
                "the naming context does not exist",
            )
            .into()),
            Err(error) => Err(Refusal::System(BindError::from(Fault::from(error)).into())),
        }
    }
}

impl<S: Store> NamingContextServant for ContextServant<S> {
    async fn bind(&self, n: &[NameComponent], obj: Option<ObjectRef>) -> Result<(), BindError> {
        Ok(self.execute(n, Operation::Bind(obj, MayReplace::Nothing)).await?)
    }

    async fn rebind(&self, n: &[NameComponent], obj: Option<ObjectRef>) -> Result<(), RebindError> {
        Ok(self.execute(n, Operation::Bind(obj, MayReplace::Object)).await?)
    }

    async fn bind_context(
        &self,
        n: &[NameComponent],
        nc: Option<NamingContextRef>,
    ) -> Result<(), BindContextError> {
        let (service, context) = self.service_and_context()?;
        let nc = nc.ok_or_else(nil_reference)?;
        service.execute(context, n, Operation::BindContext(nc, MayReplace::Nothing)).await?;
        Ok(())
    }

    async fn rebind_context(
        &self,
        n: &[NameComponent],
        nc: Option<NamingContextRef>,
    ) -> Result<(), RebindContextError> {
        let (service, context) = self.service_and_context()?;
        let nc = nc.ok_or_else(nil_reference)?;
        service.execute(context, n, Operation::BindContext(nc, MayReplace::Context)).await?;
        Ok(())
    }

    async fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, ResolveError> {
        let (service, context) = self.service_and_context()?;
        Ok(service.resolve(context, n).await?)
    }

    async fn unbind(&self, n: &[NameComponent]) -> Result<(), UnbindError> {
        Ok(self.execute(n, Operation::Unbind).await?)
    }

    async fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        let (service, _) = self.service_and_context()?;
        let created = service.new_context().await;
        created.map(Some).map_err(|fault| BindError::from(fault).into())
    }

    async fn bind_new_context(
        &self,
        n: &[NameComponent],
    ) -> Result<Option<NamingContextRef>, BindNewContextError> {
        let (service, context) = self.service_and_context()?;
        Ok(service.execute(context, n, Operation::BindNewContext).await?)
    }

    async fn destroy(&self) -> Result<(), DestroyError> {
        let (service, context) = self.service_and_context()?;
        Ok(service.destroy(context).await?)
    }

    async fn list(
        &self,
        how_many: u32,
    ) -> Result<(Vec<Binding>, Option<BindingIteratorRef>), SystemException> {
        let (service, context) = self.service_and_context()?;
        service.list(context, how_many).await.map_err(|fault| BindError::from(fault).into())
    }
}

impl<S: Store> NamingContextExtServant for ContextServant<S> {
    async fn to_string(&self, n: &[NameComponent]) -> Result<String, ToStringError> {
        if n.is_empty() {
            return Err(InvalidName.into());
        }
        Ok(print_name(n))
    }

    async fn to_name(&self, sn: &str) -> Result<Name, ToNameError> {
        Ok(parse_name(sn).map_err(|_| InvalidName)?)
    }

    async fn to_url(&self, addr: &str, sn: &str) -> Result<String, ToUrlError> {
        parse_name(sn).map_err(|_| InvalidName)?;
        let context = format!("corbaname:{addr}");
        let is_address = !addr.contains('#') && context.parse::<zorb::wire::Corbaname>().is_ok();
        if addr.is_empty() || !is_address {
            return Err(InvalidAddress.into());
        }
        Ok(format!("{context}#{}", NameText::escape(sn)))
    }

    async fn resolve_str(&self, sn: &str) -> Result<Option<ObjectRef>, ResolveStrError> {
        let (service, context) = self.service_and_context()?;
        let name = parse_name(sn).map_err(|_| InvalidName)?;
        Ok(service.resolve(context, &name).await?)
    }
}

impl<S: Store> BalancedContextServant for ContextServant<S> {
    async fn bind_group(&self, n: &[NameComponent], by: Strategy) -> Result<(), BindGroupError> {
        Ok(self.execute(n, Operation::BindGroup(by)).await?)
    }

    async fn join(
        &self,
        n: &[NameComponent],
        member: &str,
        target: Option<ObjectRef>,
    ) -> Result<(), JoinError> {
        let (service, context) = self.service_and_context()?;
        let target = target.ok_or_else(nil_reference)?;
        service.execute(context, n, Operation::Join(member, target)).await?;
        Ok(())
    }

    async fn leave(&self, n: &[NameComponent], member: &str) -> Result<(), LeaveError> {
        Ok(self.execute(n, Operation::Leave(member)).await?)
    }

    async fn report_load(
        &self,
        n: &[NameComponent],
        member: &str,
        load: f64,
        step: f64,
    ) -> Result<(), ReportLoadError> {
        let (service, context) = self.service_and_context()?;
        if !load.is_finite() || !step.is_finite() || step < 0.0 {
            return Err(
                bad_param("the load and the step must be finite, and the step must not be negative").into()
            );
        }
        Ok(service.report_load(context, n, member, load, step).await?)
    }

    async fn members(&self, n: &[NameComponent]) -> Result<Vec<Member>, MembersError> {
        let (service, context) = self.service_and_context()?;
        Ok(service.members(context, n).await?)
    }

    async fn bind_for(
        &self,
        n: &[NameComponent],
        obj: Option<ObjectRef>,
        seconds: u32,
    ) -> Result<(), BindForError> {
        let (service, context) = self.service_and_context()?;
        let obj = obj.ok_or_else(nil_reference)?;
        if seconds == 0 {
            return Err(bad_param("the duration of a binding must be at least one second").into());
        }
        service.execute(context, n, Operation::BindFor(obj, Duration::from_secs(seconds.into()))).await?;
        Ok(())
    }

    async fn state(&self) -> Result<State, SystemException> {
        let (service, _) = self.service_and_context()?;
        let unavailable_for = service.store.state().unavailable_for;
        Ok(State {
            current: unavailable_for.is_none(),
            away_for: unavailable_for.map_or(0, whole_seconds),
            iterators: u32::try_from(service.iterators.count()).unwrap_or(u32::MAX),
        })
    }
}

/// A missing context must be reported instead. Therefore callers first call
/// [`ContextServant::service_and_context`].
#[cold]
fn nil_reference() -> SystemException {
    bad_param("the reference is nil")
}

#[cold]
fn bad_param(text: &'static str) -> SystemException {
    system_exception(SystemExceptionKind::BadParam, text)
}
