//! The servant of all contexts, which maps operations to the service.

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

use super::fault::{Fault, system};
use super::service::Service;
use super::walk::Act;
use crate::store::{ContextId, Over, Store};
use crate::zorb_naming::balanced_context::{
    BindForError, BindGroupError, JoinError, LeaveError, MembersError, ReportLoadError,
};
use crate::zorb_naming::{BalancedContextServant, Member, State, Strategy};

/// The service context in replies that come from a cache while the store is unavailable. Holds the duration
/// in seconds, in four bytes, big-endian.
const CACHED: ServiceContextId = ServiceContextId(0x5A4F_5211);

/// The servant of all contexts of a service, or of its root context.
pub(crate) struct Contexts<S> {
    /// Weak, because the service is owned by its `Server`.
    service: Weak<Service<S>>,
    only: Option<ContextId>,
}

impl<S: Store> Contexts<S> {
    pub(crate) fn all(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service), only: None }
    }

    pub(crate) fn root(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service), only: Some(ContextId::ROOT) }
    }

    /// Returns the service, and the context that is called.
    fn called(&self) -> Result<(Arc<Service<S>>, ContextId), SystemException> {
        let service = self.service.upgrade().ok_or_else(ended)?;
        if let Some(away) = service.store.state().away {
            mark(away);
        }
        let context = match self.only {
            Some(context) => context,
            None => context_of(zorb::request().object_id()).ok_or_else(|| {
                system(SystemExceptionKind::ObjectNotExist, "no naming context has this key")
            })?,
        };
        Ok((service, context))
    }
}

/// Informs the client that the answer may be outdated.
#[cold]
fn mark(away: Duration) {
    #[cfg(feature = "etcd")]
    metrics::counter!("zorb_names_cached_answers_total").increment(1);
    if let Some(request) = zorb::try_request() {
        let data = zorb::Bytes::copy_from_slice(&seconds(away).to_be_bytes());
        request.set_reply_context(ServiceContext { id: CACHED, data });
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cold]
fn ended() -> SystemException {
    system(SystemExceptionKind::ObjectNotExist, "the naming service has ended")
}

/// Returns the object id of a context in its POA.
pub(super) fn id_of(context: ContextId) -> ObjectId {
    ObjectId::from(context.0.to_be_bytes().as_slice())
}

/// Returns the context with that object id.
pub(super) fn context_of(id: &[u8]) -> Option<ContextId> {
    id.try_into().ok().map(u64::from_be_bytes).map(ContextId)
}

/// Returns the same servant for every existing context. `_non_existent` is answered correctly because other
/// contexts have none.
pub(crate) struct Locator<S> {
    service: Weak<Service<S>>,
    servant: Servant,
}

impl<S: Store> Locator<S> {
    pub(crate) fn new(service: &Weak<Service<S>>, servant: Servant) -> Self {
        Self { service: Weak::clone(service), servant }
    }
}

impl<S: Store> ServantLocator for Locator<S> {
    type Cookie = ();

    async fn preinvoke(&self, id: &ObjectId, _: &Poa, _: &str) -> Result<(Servant, ()), Refusal> {
        let service = self.service.upgrade().ok_or_else(ended)?;
        let there = match context_of(id.as_slice()) {
            Some(context) => service.store.has_context(context).await,
            None => Ok(false),
        };
        match there {
            Ok(true) => Ok((self.servant.clone(), ())),
            Ok(false) => {
                Err(system(SystemExceptionKind::ObjectNotExist, "there is no such naming context").into())
            }
            Err(error) => Err(Refusal::System(BindError::from(Fault::from(error)).into())),
        }
    }
}

impl<S: Store> NamingContextServant for Contexts<S> {
    async fn bind(&self, n: &[NameComponent], obj: Option<ObjectRef>) -> Result<(), BindError> {
        let (service, context) = self.called()?;
        service.act(context, n, Act::Bind(obj, Over::Nothing)).await?;
        Ok(())
    }

    async fn rebind(&self, n: &[NameComponent], obj: Option<ObjectRef>) -> Result<(), RebindError> {
        let (service, context) = self.called()?;
        service.act(context, n, Act::Bind(obj, Over::Object)).await?;
        Ok(())
    }

    async fn bind_context(
        &self,
        n: &[NameComponent],
        nc: Option<NamingContextRef>,
    ) -> Result<(), BindContextError> {
        let (service, context) = self.called()?;
        let nc = nc.ok_or_else(nil)?;
        service.act(context, n, Act::BindContext(nc, Over::Nothing)).await?;
        Ok(())
    }

    async fn rebind_context(
        &self,
        n: &[NameComponent],
        nc: Option<NamingContextRef>,
    ) -> Result<(), RebindContextError> {
        let (service, context) = self.called()?;
        let nc = nc.ok_or_else(nil)?;
        service.act(context, n, Act::BindContext(nc, Over::Context)).await?;
        Ok(())
    }

    async fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, ResolveError> {
        let (service, context) = self.called()?;
        Ok(service.resolve(context, n).await?)
    }

    async fn unbind(&self, n: &[NameComponent]) -> Result<(), UnbindError> {
        let (service, context) = self.called()?;
        service.act(context, n, Act::Unbind).await?;
        Ok(())
    }

    async fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        let (service, _) = self.called()?;
        let made = service.new_context().await;
        made.map(Some).map_err(|fault| BindError::from(fault).into())
    }

    async fn bind_new_context(
        &self,
        n: &[NameComponent],
    ) -> Result<Option<NamingContextRef>, BindNewContextError> {
        let (service, context) = self.called()?;
        Ok(service.act(context, n, Act::BindNewContext).await?)
    }

    async fn destroy(&self) -> Result<(), DestroyError> {
        let (service, context) = self.called()?;
        Ok(service.destroy(context).await?)
    }

    async fn list(
        &self,
        how_many: u32,
    ) -> Result<(Vec<Binding>, Option<BindingIteratorRef>), SystemException> {
        let (service, context) = self.called()?;
        service.list(context, how_many).await.map_err(|fault| BindError::from(fault).into())
    }
}

impl<S: Store> NamingContextExtServant for Contexts<S> {
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
        let (service, context) = self.called()?;
        let name = parse_name(sn).map_err(|_| InvalidName)?;
        Ok(service.resolve(context, &name).await?)
    }
}

impl<S: Store> BalancedContextServant for Contexts<S> {
    async fn bind_group(&self, n: &[NameComponent], by: Strategy) -> Result<(), BindGroupError> {
        let (service, context) = self.called()?;
        service.act(context, n, Act::BindGroup(by)).await?;
        Ok(())
    }

    async fn join(
        &self,
        n: &[NameComponent],
        member: &str,
        target: Option<ObjectRef>,
    ) -> Result<(), JoinError> {
        let (service, context) = self.called()?;
        let target = target.ok_or_else(nil)?;
        service.act(context, n, Act::Join(member, target)).await?;
        Ok(())
    }

    async fn leave(&self, n: &[NameComponent], member: &str) -> Result<(), LeaveError> {
        let (service, context) = self.called()?;
        service.act(context, n, Act::Leave(member)).await?;
        Ok(())
    }

    async fn report_load(
        &self,
        n: &[NameComponent],
        member: &str,
        load: f64,
        step: f64,
    ) -> Result<(), ReportLoadError> {
        let (service, context) = self.called()?;
        if !load.is_finite() || !step.is_finite() || step < 0.0 {
            return Err(system(
                SystemExceptionKind::BadParam,
                "a load is a number, and a step is not below 0",
            )
            .into());
        }
        Ok(service.report_load(context, n, member, load, step).await?)
    }

    async fn members(&self, n: &[NameComponent]) -> Result<Vec<Member>, MembersError> {
        let (service, context) = self.called()?;
        Ok(service.members(context, n).await?)
    }

    async fn bind_for(
        &self,
        n: &[NameComponent],
        obj: Option<ObjectRef>,
        seconds: u32,
    ) -> Result<(), BindForError> {
        let (service, context) = self.called()?;
        let obj = obj.ok_or_else(nil)?;
        if seconds == 0 {
            return Err(system(SystemExceptionKind::BadParam, "a binding lasts a second at least").into());
        }
        service.act(context, n, Act::BindFor(obj, Duration::from_secs(seconds.into()))).await?;
        Ok(())
    }

    async fn state(&self) -> Result<State, SystemException> {
        let (service, _) = self.called()?;
        let away = service.store.state().away;
        Ok(State {
            current: away.is_none(),
            away_for: away.map_or(0, seconds),
            iterators: u32::try_from(service.iterator_count()).unwrap_or(u32::MAX),
        })
    }
}

#[cold]
fn nil() -> SystemException {
    system(SystemExceptionKind::BadParam, "the reference is nil")
}
