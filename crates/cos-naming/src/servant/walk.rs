//! Resolution of names with several components, through the contexts of this service and those of other
//! services.

use std::time::Duration;

use zorb::cos_naming::naming_context::{AlreadyBound, InvalidName, NotEmpty, NotFoundReason};
use zorb::cos_naming::{NameComponent, NamingContextRef};
use zorb::wire::ContextId as ServiceContextId;
use zorb::{CompletionStatus, ObjectRef, Reference, SystemException, SystemExceptionKind};

use super::fault::{Fault, system};
use super::service::Service;
use crate::store::{
    Change, ChangeError, ContextId, Group, Key, Lookup, Member, Over, Refused, Store, Strategy, Target,
};
use crate::zorb_naming::balanced_context::{GroupFull, NoGroup, NoMember};
use crate::zorb_naming::{self, BalancedContextRef};

/// The maximum number of components of a name.
pub(crate) const MAX_COMPONENTS: usize = 256;

/// The maximum number of services that one name may lead through. Each waits for the next.
const MAX_HOPS: u8 = 16;

/// The service context that counts these services, between services of zorb. Other services do not forward
/// it; names end there too, because each service removes a component.
const HOPS: ServiceContextId = ServiceContextId(0x5A4F_5210);

/// The operation at the end of a name.
#[derive(Debug, Clone)]
pub(crate) enum Act<'a> {
    Bind(Option<ObjectRef>, Over),
    BindContext(NamingContextRef, Over),
    BindFor(ObjectRef, Duration),
    BindNewContext,
    Unbind,
    BindGroup(zorb_naming::Strategy),
    Join(&'a str, ObjectRef),
    Leave(&'a str),
}

/// The end of a name.
pub(super) enum End<'n> {
    /// In a context of this service. Holds the last component, and whether others precede it.
    Here { context: ContextId, key: Key, last: &'n [NameComponent], inner: bool },
    /// In a context that belongs to another service, or that leads to one.
    Elsewhere { context: NamingContextRef, rest: &'n [NameComponent] },
}

impl<S: Store> Service<S> {
    /// Follows all components except the last.
    pub(super) async fn walk<'n>(
        &self,
        context: ContextId,
        n: &'n [NameComponent],
    ) -> Result<End<'n>, Fault> {
        if n.is_empty() || n.len() > MAX_COMPONENTS {
            return Err(Fault::InvalidName(InvalidName));
        }
        let mut keys = Vec::with_capacity(n.len());
        for component in n {
            keys.push(Key::new(component).ok_or(Fault::InvalidName(InvalidName))?);
        }
        let mut at = context;
        let mut keys = keys.into_iter().enumerate();
        loop {
            let Some((i, key)) = keys.next() else { return Err(Fault::InvalidName(InvalidName)) };
            let rest = n.get(i..).unwrap_or_default();
            if rest.len() == 1 {
                return Ok(End::Here { context: at, key, last: rest, inner: i > 0 });
            }
            let bound = match self.store.lookup(at, &key).await? {
                Lookup::Bound(bound) => bound,
                Lookup::Free => return Err(Fault::missing(rest)),
                Lookup::NoContext => return Err(self.no_context(at, rest, i > 0)),
            };
            match &bound.target {
                Target::Context(next) => at = *next,
                Target::Foreign(_) => {
                    let behind = rest.get(1..).unwrap_or_default();
                    let context = self.single(&bound)?.ok_or_else(|| Fault::missing(rest))?;
                    return Ok(End::Elsewhere {
                        context: NamingContextRef::from_object(context),
                        rest: behind,
                    });
                }
                Target::Object(_) | Target::Group(_) => {
                    return Err(Fault::not_found(NotFoundReason::NotContext, rest));
                }
            }
        }
    }

    /// Returns the failure for a destroyed context: either the one that is called, or one that a name leads
    /// to.
    pub(super) fn no_context(&self, context: ContextId, rest: &[NameComponent], inner: bool) -> Fault {
        match self.context_ref::<NamingContextRef>(context) {
            Ok(reference) if inner => Fault::cannot_proceed(reference, rest),
            _ => Fault::gone(),
        }
    }

    /// Changes the binding that a name leads to. Returns the new context, if one was created.
    pub(crate) async fn act(
        &self,
        context: ContextId,
        n: &[NameComponent],
        act: Act<'_>,
    ) -> Result<Option<NamingContextRef>, Fault> {
        let (context, key, last, inner) = match self.walk(context, n).await? {
            End::Here { context, key, last, inner } => (context, key, last, inner),
            End::Elsewhere { context, rest } => return self.act_elsewhere(&context, rest, act).await,
        };
        let forget = (context, key.clone());
        let change = match act {
            Act::Bind(object, over) => {
                let target = Target::Object(octets(object.as_ref()));
                Change::Bind { context, key, target, over }
            }
            Act::BindContext(bound, over) => {
                let target = match self.own_context(&bound) {
                    Some(own) => Target::Context(own),
                    None => Target::Foreign(octets(Some(bound.as_object()))),
                };
                Change::Bind { context, key, target, over }
            }
            Act::BindFor(object, time) => {
                let target = Target::Object(octets(Some(&object)));
                Change::BindFor { context, key, target, time }
            }
            Act::BindNewContext => Change::BindNewContext { context, key },
            Act::Unbind => Change::Unbind { context, key },
            Act::BindGroup(by) => {
                let target = Target::Group(Group::new(kept(by)));
                Change::Bind { context, key, target, over: Over::Nothing }
            }
            Act::Join(member, object) => {
                let member = Member { name: member.to_owned(), object: octets(Some(&object)) };
                Change::Join { context, key, member }
            }
            Act::Leave(member) => Change::Leave { context, key, member: member.to_owned() },
        };
        let regroups = matches!(change, Change::Join { .. });
        let made = self.store.change(change).await.map_err(|error| match error {
            ChangeError::Refused(refused) => self.refused(refused, context, last, inner),
            ChangeError::Store(error) => error.into(),
        })?;
        if !regroups {
            self.balance.forget(&forget);
        }
        made.map(|made| self.context_ref(made)).transpose()
    }

    pub(super) fn refused(
        &self,
        refused: Refused,
        context: ContextId,
        last: &[NameComponent],
        inner: bool,
    ) -> Fault {
        match refused {
            Refused::NoContext => self.no_context(context, last, inner),
            Refused::AlreadyBound => Fault::AlreadyBound(AlreadyBound),
            Refused::Free => Fault::missing(last),
            Refused::IsContext => Fault::not_found(NotFoundReason::NotObject, last),
            Refused::IsObject => Fault::not_found(NotFoundReason::NotContext, last),
            Refused::NoGroup => Fault::NoGroup(NoGroup),
            Refused::NoMember => Fault::NoMember(NoMember),
            Refused::Full => Fault::GroupFull(GroupFull),
            Refused::NotEmpty => Fault::NotEmpty(NotEmpty),
            Refused::Root => {
                system(SystemExceptionKind::NoPermission, "the first naming context can not be destroyed")
                    .into()
            }
            Refused::NoLeases => {
                let text = "bindings of this naming service do not end by themselves: those in etcd can";
                system(SystemExceptionKind::NoImplement, text).into()
            }
        }
    }

    /// Forwards an operation to another service.
    async fn act_elsewhere(
        &self,
        context: &NamingContextRef,
        rest: &[NameComponent],
        act: Act<'_>,
    ) -> Result<Option<NamingContextRef>, Fault> {
        let there = self.further(context, rest)?;
        let done = match act {
            Act::Bind(object, Over::Nothing) => there.bind(rest, object).await.map_err(Fault::from),
            Act::Bind(object, _) => there.rebind(rest, object).await.map_err(Fault::from),
            Act::BindContext(bound, Over::Nothing) => {
                there.bind_context(rest, bound).await.map_err(Fault::from)
            }
            Act::BindContext(bound, _) => there.rebind_context(rest, bound).await.map_err(Fault::from),
            Act::BindNewContext => {
                let made = there.bind_new_context(rest).await.map_err(Fault::from);
                return made.map_err(|fault| gave_up(fault, context, rest));
            }
            Act::BindFor(object, time) => {
                let there = balanced(&there, context, rest).await?;
                let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
                there.bind_for(rest, object, seconds).await.map_err(Fault::from)
            }
            Act::Unbind => there.unbind(rest).await.map_err(Fault::from),
            Act::BindGroup(by) => {
                let there = balanced(&there, context, rest).await?;
                there.bind_group(rest, by).await.map_err(Fault::from)
            }
            Act::Join(member, object) => {
                let there = balanced(&there, context, rest).await?;
                there.join(rest, member, object).await.map_err(Fault::from)
            }
            Act::Leave(member) => {
                let there = balanced(&there, context, rest).await?;
                there.leave(rest, member).await.map_err(Fault::from)
            }
        };
        done.map(|()| None).map_err(|fault| gave_up(fault, context, rest))
    }

    /// Returns another service's context, to be called on behalf of the caller.
    ///
    /// # Errors
    /// `CannotProceed` if the name has led through too many services.
    pub(super) fn further(
        &self,
        context: &NamingContextRef,
        rest: &[NameComponent],
    ) -> Result<NamingContextRef, Fault> {
        let before = zorb::try_request()
            .and_then(|request| request.contexts().find(HOPS).map(|hops| hops.to_owned()))
            .and_then(|hops| hops.data.first().copied())
            .unwrap_or(0);
        if before >= MAX_HOPS {
            return Err(Fault::cannot_proceed(context.clone(), rest));
        }
        let reference = context.with_context(HOPS, vec![before + 1]);
        Ok(reference.with_timeout(self.options.foreign_timeout))
    }
}

/// Returns the same context with support for groups, if it has that.
pub(super) async fn balanced(
    there: &NamingContextRef,
    context: &NamingContextRef,
    rest: &[NameComponent],
) -> Result<BalancedContextRef, Fault> {
    there.narrow().await.map_err(|_| Fault::cannot_proceed(context.clone(), rest))
}

/// Returns the failure for an error of another service. Exceptions that it raised are raised here too. If it
/// does not answer, `CannotProceed` reports how far the name led.
pub(super) fn gave_up(fault: Fault, context: &NamingContextRef, rest: &[NameComponent]) -> Fault {
    match fault {
        Fault::System(error) => {
            tracing::debug!(%error, "another naming service does not go on");
            Fault::cannot_proceed(context.clone(), rest)
        }
        raised => raised,
    }
}

pub(super) fn octets(object: Option<&ObjectRef>) -> zorb::Bytes {
    object.map(|object| object.ior().to_encapsulation()).unwrap_or_default()
}

/// Returns the failure for a reference that cannot be decoded although its checksum is correct.
#[cold]
pub(super) fn unreadable() -> Fault {
    let kind = SystemExceptionKind::PersistStore;
    let none = zorb::MinorCode::NONE;
    SystemException::new(kind, none, CompletionStatus::No).because("the store has no reference there").into()
}

fn kept(by: zorb_naming::Strategy) -> Strategy {
    match by {
        zorb_naming::Strategy::RoundRobin => Strategy::RoundRobin,
        zorb_naming::Strategy::LeastLoaded => Strategy::LeastLoaded,
        zorb_naming::Strategy::ByClient => Strategy::ByClient,
    }
}
