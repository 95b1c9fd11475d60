//! Follows names to the context of their last component, and changes the binding of that component.

use std::time::Duration;

use zorb::cos_naming::naming_context::{AlreadyBound, InvalidName, NotEmpty, NotFoundReason};
use zorb::cos_naming::{NameComponent, NamingContextRef};
use zorb::wire::ContextId as ServiceContextId;
use zorb::{ObjectRef, Reference, SystemException, SystemExceptionKind};

use super::fault::{Fault, system_exception};
use super::service::Service;
use crate::store::{
    Change, ChangeError, ContextId, Group, Key, Lookup, MayReplace, Member, Refusal, Store, Strategy, Target,
};
use crate::zorb_naming::balanced_context::{GroupFull, NoGroup, NoMember};
use crate::zorb_naming::{self, BalancedContextRef};

pub(crate) const MAX_COMPONENTS: usize = 256;

/// The maximum number of times that a request is forwarded to another service. Each service awaits the reply.
const MAX_HOPS: u8 = 16;

/// The service context of forwarded requests. Its data is one byte: the number of times that services of zorb
/// have forwarded the request. Services of other vendors do not pass it on. Loops through them also end,
/// because each service shortens the name.
const HOPS: ServiceContextId = ServiceContextId(0x5A4F_5210);

/// An operation that changes the binding of a name.
#[derive(Debug, Clone)]
pub(crate) enum Operation<'a> {
    Bind(Option<ObjectRef>, MayReplace),
    BindContext(NamingContextRef, MayReplace),
    BindFor(ObjectRef, Duration),
    BindNewContext,
    Unbind,
    BindGroup(zorb_naming::Strategy),
    Join(&'a str, ObjectRef),
    Leave(&'a str),
}

/// Where [`Service::follow_name`] ended.
pub(super) enum NameEnd<'n> {
    /// In a context of this service. `key` and `last` are the last component. `is_compound_name` is true if
    /// others precede it.
    Local { context: ContextId, key: Key, last: &'n [NameComponent], is_compound_name: bool },
    /// In a context of another service. `rest` is the rest of the name, to be resolved in that context.
    Remote { context: NamingContextRef, rest: &'n [NameComponent] },
}

impl<S: Store> Service<S> {
    /// Follows all components of a name except the last one, as far as they are in this service.
    pub(super) async fn follow_name<'n>(
        &self,
        context: ContextId,
        n: &'n [NameComponent],
    ) -> Result<NameEnd<'n>, Fault> {
        if n.len() > MAX_COMPONENTS {
            return Err(Fault::InvalidName(InvalidName));
        }
        let keys: Option<Vec<Key>> = n.iter().map(Key::new).collect();
        let keys = keys.ok_or(Fault::InvalidName(InvalidName))?;
        let mut current = context;
        for (i, key) in keys.into_iter().enumerate() {
            let rest = n.get(i..).unwrap_or_default();
            if rest.len() == 1 {
                return Ok(NameEnd::Local { context: current, key, last: rest, is_compound_name: i > 0 });
            }
            let bound = match self.store.lookup(current, &key).await? {
                Lookup::Bound(bound) => bound,
                Lookup::NotBound => return Err(Fault::missing(rest)),
                Lookup::NoContext => return Err(self.no_context(current, rest, i > 0)),
            };
            match &bound.target {
                Target::Context(next) => current = *next,
                Target::RemoteContext(_) => {
                    let reference = self.single_reference(&bound)?.ok_or_else(|| Fault::missing(rest))?;
                    let context = NamingContextRef::from_object(reference);
                    return Ok(NameEnd::Remote { context, rest: rest.get(1..).unwrap_or_default() });
                }
                Target::Object(_) | Target::Group(_) => {
                    return Err(Fault::not_found(NotFoundReason::NotContext, rest));
                }
            }
        }
        // The name is empty.
        Err(Fault::InvalidName(InvalidName))
    }

    /// Returns the failure for a context that does not exist: OBJECT_NOT_EXIST if the client called it, or
    /// `CannotProceed` if a name led to it (`is_compound_name`).
    pub(super) fn no_context(
        &self,
        context: ContextId,
        rest: &[NameComponent],
        is_compound_name: bool,
    ) -> Fault {
        match self.context_ref::<NamingContextRef>(context) {
            Ok(reference) if is_compound_name => Fault::cannot_proceed(reference, rest),
            _ => Fault::destroyed(),
        }
    }

    /// Changes the binding of a name. Returns the new context, if one was created.
    pub(crate) async fn execute(
        &self,
        context: ContextId,
        n: &[NameComponent],
        operation: Operation<'_>,
    ) -> Result<Option<NamingContextRef>, Fault> {
        let (context, key, last, is_compound_name) = match self.follow_name(context, n).await? {
            NameEnd::Local { context, key, last, is_compound_name } => (context, key, last, is_compound_name),
            NameEnd::Remote { context, rest } => {
                let executed = self.execute_remotely(&context, rest, operation).await;
                return executed.map_err(|fault| remote_fault(fault, &context, rest));
            }
        };
        let group_id = (context, key.clone());
        let change = match operation {
            Operation::Bind(object, may_replace) => {
                let target = Target::Object(encode_reference(object.as_ref()));
                Change::Bind { context, key, target, may_replace }
            }
            Operation::BindContext(bound, may_replace) => {
                let target = match self.own_context(&bound) {
                    Some(own) => Target::Context(own),
                    None => Target::RemoteContext(encode_reference(Some(bound.as_object()))),
                };
                Change::Bind { context, key, target, may_replace }
            }
            Operation::BindFor(object, time) => {
                let target = Target::Object(encode_reference(Some(&object)));
                Change::BindFor { context, key, target, time }
            }
            Operation::BindNewContext => Change::BindNewContext { context, key },
            Operation::Unbind => Change::Unbind { context, key },
            Operation::BindGroup(strategy) => {
                let target = Target::Group(Group::new(stored_strategy(strategy)));
                Change::Bind { context, key, target, may_replace: MayReplace::Nothing }
            }
            Operation::Join(member, object) => {
                let member = Member { name: member.to_owned(), object: encode_reference(Some(&object)) };
                Change::Join { context, key, member }
            }
            Operation::Leave(member) => Change::Leave { context, key, member: member.to_owned() },
        };
        let is_join = matches!(change, Change::Join { .. });
        let created = self.store.change(change).await;
        let created = created.map_err(|error| self.change_fault(error, context, last, is_compound_name))?;
        if !is_join {
            self.balancer.forget(&group_id);
        }
        created.map(|created| self.context_ref(created)).transpose()
    }

    /// Returns the failure of a change to the binding of a name. `last` is the last component of the name.
    pub(super) fn change_fault(
        &self,
        error: ChangeError,
        context: ContextId,
        last: &[NameComponent],
        is_compound_name: bool,
    ) -> Fault {
        let refusal = match error {
            ChangeError::Refused(refusal) => refusal,
            ChangeError::Store(error) => return error.into(),
        };
        match refusal {
            Refusal::NoContext => self.no_context(context, last, is_compound_name),
            Refusal::AlreadyBound => Fault::AlreadyBound(AlreadyBound),
            Refusal::NotBound => Fault::missing(last),
            Refusal::IsContext => Fault::not_found(NotFoundReason::NotObject, last),
            Refusal::IsObject => Fault::not_found(NotFoundReason::NotContext, last),
            Refusal::NotGroup => Fault::NoGroup(NoGroup),
            Refusal::NoMember => Fault::NoMember(NoMember),
            Refusal::GroupFull => Fault::GroupFull(GroupFull),
            Refusal::NotEmpty => Fault::NotEmpty(NotEmpty),
            Refusal::IsRoot => {
                system_exception(SystemExceptionKind::NoPermission, "the root context cannot be destroyed")
                    .into()
            }
            Refusal::TimeLimitUnsupported => {
                let text = "this naming service does not support bindings for a limited time; only a service with \
                    its names in etcd supports them";
                system_exception(SystemExceptionKind::NoImplement, text).into()
            }
        }
    }

    /// Forwards an operation to another service.
    async fn execute_remotely(
        &self,
        context: &NamingContextRef,
        rest: &[NameComponent],
        operation: Operation<'_>,
    ) -> Result<Option<NamingContextRef>, Fault> {
        let remote = self.remote_context(context, rest)?;
        let balanced = || self.remote_balanced_context(context, rest);
        match operation {
            Operation::Bind(object, MayReplace::Nothing) => remote.bind(rest, object).await?,
            Operation::Bind(object, _) => remote.rebind(rest, object).await?,
            Operation::BindContext(bound, MayReplace::Nothing) => remote.bind_context(rest, bound).await?,
            Operation::BindContext(bound, _) => remote.rebind_context(rest, bound).await?,
            Operation::BindNewContext => return Ok(remote.bind_new_context(rest).await?),
            Operation::BindFor(object, time) => {
                let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
                balanced().await?.bind_for(rest, object, seconds).await?;
            }
            Operation::Unbind => remote.unbind(rest).await?,
            Operation::BindGroup(strategy) => balanced().await?.bind_group(rest, strategy).await?,
            Operation::Join(member, object) => balanced().await?.join(rest, member, object).await?,
            Operation::Leave(member) => balanced().await?.leave(rest, member).await?,
        }
        Ok(None)
    }

    /// Returns a reference to a context of another service that sends the count of hops and has the timeout
    /// for forwarded requests. Fails with `CannotProceed` if the request has been forwarded too often.
    pub(super) fn remote_context(
        &self,
        context: &NamingContextRef,
        rest: &[NameComponent],
    ) -> Result<NamingContextRef, Fault> {
        let hop_count = zorb::try_request()
            .and_then(|request| request.contexts().find(HOPS).map(|hops| hops.to_owned()))
            .and_then(|hops| hops.data.first().copied())
            .unwrap_or(0);
        if hop_count >= MAX_HOPS {
            return Err(Fault::cannot_proceed(context.clone(), rest));
        }
        let reference = context.with_context(HOPS, vec![hop_count + 1]);
        Ok(reference.with_timeout(self.options.remote_timeout))
    }

    /// Like [`remote_context`](Self::remote_context), but requires the interface for groups.
    pub(super) async fn remote_balanced_context(
        &self,
        context: &NamingContextRef,
        rest: &[NameComponent],
    ) -> Result<BalancedContextRef, Fault> {
        let remote = self.remote_context(context, rest)?;
        remote.narrow().await.map_err(|_| Fault::cannot_proceed(context.clone(), rest))
    }
}

/// Returns the failure to report after another service failed: its user exception, or `CannotProceed` in
/// place of a system exception, so that the client may call the other service itself.
pub(super) fn remote_fault(fault: Fault, context: &NamingContextRef, rest: &[NameComponent]) -> Fault {
    match fault {
        Fault::System(error) => {
            tracing::debug!(%error, "a call to another naming service failed");
            Fault::cannot_proceed(context.clone(), rest)
        }
        raised => raised,
    }
}

/// Encodes a reference for the store. A nil reference has no bytes.
fn encode_reference(object: Option<&ObjectRef>) -> zorb::Bytes {
    object.map(|object| object.ior().to_encapsulation()).unwrap_or_default()
}

/// Returns the failure for a stored reference that cannot be decoded.
#[cold]
pub(super) fn unreadable_reference() -> Fault {
    SystemException::persist_store().with_reason("the stored reference cannot be decoded").into()
}

fn stored_strategy(strategy: zorb_naming::Strategy) -> Strategy {
    match strategy {
        zorb_naming::Strategy::RoundRobin => Strategy::RoundRobin,
        zorb_naming::Strategy::LeastLoaded => Strategy::LeastLoaded,
        zorb_naming::Strategy::ByClient => Strategy::ByClient,
    }
}
