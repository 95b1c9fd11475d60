//! The state that the objects of a service share, and their operations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zorb::cos_naming::{Binding, BindingIteratorRef, NameComponent, NamingContextRef};
use zorb::poa::{Poa, PoaError};
use zorb::wire::Ior;
use zorb::{Bytes, ObjectRef, Reference, SystemExceptionKind};

use super::balance::Balance;
use super::contexts::{context_of, id_of};
use super::fault::{Fault, system};
use super::iterators::Iterators;
use super::walk::{End, balanced, gave_up, unreadable};
use crate::store::{
    Bound, Change, ChangeError, ContextId, Decoded, Group, Key, Lookup, Page, PageLimit, Store, Target,
};
use crate::zorb_naming::Member;
use crate::zorb_naming::balanced_context::{NoGroup, NoMember};

/// The settings of a service.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The maximum number of bindings in one answer.
    pub(crate) page: usize,
    /// The approximate maximum number of bytes in one answer.
    pub(crate) page_bytes: usize,
    pub(crate) iterators: usize,
    pub(crate) iterator_timeout: Duration,
    pub(crate) foreign_timeout: Duration,
    pub(crate) report_timeout: Duration,
    /// The maximum number of bindings whose references are kept decoded.
    pub(crate) decoded: usize,
}

/// A naming service.
pub(crate) struct Service<S> {
    pub(super) store: S,
    pub(super) options: Options,
    pub(super) balance: Balance,
    pub(super) iterators: Iterators,
    /// Set when all objects are activated.
    places: OnceLock<Places>,
    decoded: Arc<AtomicUsize>,
}

/// The objects through which a service is reached.
pub(crate) struct Places {
    /// The POA of all contexts except the root context.
    pub(crate) contexts: Poa,
    pub(crate) iterating: Poa,
    pub(crate) root: ObjectRef,
}

impl<S: Store> Service<S> {
    pub(crate) fn new(store: S, options: Options) -> Self {
        let balance = Balance::new(options.report_timeout);
        let iterators = Iterators::new(options.iterators, options.iterator_timeout);
        Self { store, options, balance, iterators, places: OnceLock::new(), decoded: Arc::default() }
    }

    /// Sets the objects through which the service is reached.
    pub(crate) fn serve_at(&self, places: Places) {
        let _ = self.places.set(places);
    }

    pub(crate) fn places_if_served(&self) -> Option<&Places> {
        self.places.get()
    }

    fn places(&self) -> Result<&Places, Fault> {
        let early = || system(SystemExceptionKind::Transient, "the naming service is being made");
        self.places.get().ok_or_else(|| early().into())
    }

    pub(crate) fn iterator_count(&self) -> usize {
        self.iterators.count()
    }

    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// Returns the reference of a context of this service.
    pub(crate) fn context_ref<R: Reference>(&self, context: ContextId) -> Result<R, Fault> {
        if context == ContextId::ROOT {
            return Ok(R::from_object(self.places()?.root.clone()));
        }
        // All clients know the interface of contexts with text, so references have that type. `_is_a` shows
        // that they support groups too.
        let reference = self
            .places()?
            .contexts
            .create_reference_with_id::<zorb::cos_naming::NamingContextExtRef>(id_of(context));
        let reference = reference.map_err(no_reference)?;
        Ok(R::from_object(reference.to_object()))
    }

    /// Returns the context of this service that the reference denotes, if any.
    pub(super) fn own_context(&self, reference: &NamingContextRef) -> Option<ContextId> {
        let places = self.places.get()?;
        if reference.as_object().is_equivalent(&places.root) {
            return Some(ContextId::ROOT);
        }
        context_of(places.contexts.reference_to_id(reference).ok()?.as_slice())
    }

    /// Returns the object that a name leads to.
    pub(crate) async fn resolve(
        &self,
        context: ContextId,
        n: &[NameComponent],
    ) -> Result<Option<ObjectRef>, Fault> {
        match self.walk(context, n).await? {
            End::Here { context, key, last, inner } => match self.store.lookup(context, &key).await? {
                Lookup::Bound(bound) => self.given(context, &key, &bound, last),
                Lookup::Free => Err(Fault::missing(last)),
                Lookup::NoContext => Err(self.no_context(context, last, inner)),
            },
            End::Elsewhere { context, rest } => {
                let found = self.further(&context, rest)?.resolve(rest).await;
                found.map_err(|error| gave_up(error.into(), &context, rest))
            }
        }
    }

    /// Returns the object for the caller.
    fn given(
        &self,
        context: ContextId,
        key: &Key,
        bound: &Bound,
        last: &[NameComponent],
    ) -> Result<Option<ObjectRef>, Fault> {
        match &bound.target {
            Target::Context(id) => self.context_ref(*id).map(Some),
            Target::Object(_) | Target::Foreign(_) => self.single(bound),
            Target::Group(group) => {
                let picked = self.balance.pick((context, key), group);
                let picked = picked.ok_or_else(|| Fault::missing(last))?;
                self.reference(bound, picked)
            }
        }
    }

    /// Returns the reference of a target that has one.
    pub(super) fn single(&self, bound: &Bound) -> Result<Option<ObjectRef>, Fault> {
        self.reference(bound, 0)
    }

    fn reference(&self, bound: &Bound, index: usize) -> Result<Option<ObjectRef>, Fault> {
        if let Some(decoded) = bound.decoded.get() {
            return Ok(decoded.references.get(index).cloned().flatten());
        }
        let one: [&Bytes; 1];
        let all: Vec<&Bytes>;
        let octets: &[&Bytes] = match &bound.target {
            Target::Object(octets) | Target::Foreign(octets) => {
                one = [octets];
                &one
            }
            Target::Group(group) => {
                all = group.members.iter().map(|member| &member.object).collect();
                &all
            }
            Target::Context(_) => &[],
        };
        let room = self.options.decoded;
        let take = |used: usize| used.checked_add(octets.len()).filter(|used| *used <= room);
        if self.decoded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return octets.get(index).map_or(Ok(None), |octets| self.decode(octets));
        }
        // Dropping it returns the capacity, including when another caller was faster.
        let mut decoded =
            Decoded { references: vec![None; octets.len()].into(), room: Arc::clone(&self.decoded) };
        for (reference, octets) in decoded.references.iter_mut().zip(octets) {
            *reference = self.decode(octets)?;
        }
        let decoded = bound.decoded.get_or_init(|| decoded);
        Ok(decoded.references.get(index).cloned().flatten())
    }

    fn decode(&self, octets: &Bytes) -> Result<Option<ObjectRef>, Fault> {
        if octets.is_empty() {
            return Ok(None);
        }
        let ior = Ior::from_encapsulation(octets).map_err(|_| unreadable())?;
        Ok(zorb::request().orb().object_from_ior(ior))
    }

    pub(crate) async fn new_context(&self) -> Result<NamingContextRef, Fault> {
        match self.store.change(Change::NewContext).await {
            Ok(Some(made)) => self.context_ref(made),
            Ok(None) => Err(unreadable()),
            Err(ChangeError::Refused(refused)) => Err(self.refused(refused, ContextId::ROOT, &[], false)),
            Err(ChangeError::Store(error)) => Err(error.into()),
        }
    }

    pub(crate) async fn destroy(&self, context: ContextId) -> Result<(), Fault> {
        match self.store.change(Change::Destroy { context }).await {
            Ok(_) => Ok(()),
            Err(ChangeError::Refused(refused)) => Err(self.refused(refused, context, &[], false)),
            Err(ChangeError::Store(error)) => Err(error.into()),
        }
    }

    pub(crate) async fn list(
        &self,
        context: ContextId,
        how_many: u32,
    ) -> Result<(Vec<Binding>, Option<BindingIteratorRef>), Fault> {
        let page = self.store.page(context, None, self.limit(how_many)).await?;
        let Page { bindings, more } = page.ok_or_else(Fault::gone)?;
        let iterator = more.then(|| {
            let id = self.iterators.begin(context, bindings.last().map(|(key, _)| key.clone()));
            let reference = self.places()?.iterating.create_reference_with_id(id);
            reference.map_err(no_reference)
        });
        let iterator = iterator.transpose()?;
        Ok((bindings.iter().map(binding).collect(), iterator))
    }

    /// Returns the limit of one answer.
    pub(super) fn limit(&self, how_many: u32) -> PageLimit {
        let bindings = usize::try_from(how_many).unwrap_or(usize::MAX).min(self.options.page);
        PageLimit { bindings, bytes: self.options.page_bytes }
    }

    pub(crate) async fn report_load(
        &self,
        context: ContextId,
        n: &[NameComponent],
        member: &str,
        load: f64,
        step: f64,
    ) -> Result<(), Fault> {
        match self.walk(context, n).await? {
            End::Here { context, key, last, inner } => {
                self.with_group(context, &key, last, inner, |_, group| {
                    if !group.members.iter().any(|other| other.name == member) {
                        return Err(Fault::NoMember(NoMember));
                    }
                    self.balance.report((context, &key), member, load, step);
                    Ok(())
                })
                .await
            }
            End::Elsewhere { context, rest } => {
                let there = balanced(&self.further(&context, rest)?, &context, rest).await?;
                let told = there.report_load(rest, member, load, step).await;
                told.map_err(|error| gave_up(error.into(), &context, rest))
            }
        }
    }

    pub(crate) async fn members(
        &self,
        context: ContextId,
        n: &[NameComponent],
    ) -> Result<Vec<Member>, Fault> {
        match self.walk(context, n).await? {
            End::Here { context, key, last, inner } => {
                self.with_group(context, &key, last, inner, |bound, group| {
                    let loads = self.balance.loads((context, &key), group);
                    let members = group.members.iter().zip(loads).enumerate();
                    let member = |(index, (member, (load, reporting))): (
                        usize,
                        (&crate::store::Member, (f64, bool)),
                    )| {
                        let target = self.reference(bound, index)?;
                        Ok(Member { name: member.name.clone(), target, load, reporting })
                    };
                    members.map(member).collect()
                })
                .await
            }
            End::Elsewhere { context, rest } => {
                let there = balanced(&self.further(&context, rest)?, &context, rest).await?;
                there.members(rest).await.map_err(|error| gave_up(error.into(), &context, rest))
            }
        }
    }

    async fn with_group<T>(
        &self,
        context: ContextId,
        key: &Key,
        last: &[NameComponent],
        inner: bool,
        f: impl FnOnce(&Bound, &Group) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        use zorb::cos_naming::naming_context::NotFoundReason::NotObject;
        match self.store.lookup(context, key).await? {
            Lookup::Free => Err(Fault::missing(last)),
            Lookup::NoContext => Err(self.no_context(context, last, inner)),
            Lookup::Bound(bound) => match &bound.target {
                Target::Group(group) => f(&bound, group),
                Target::Object(_) => Err(Fault::NoGroup(NoGroup)),
                Target::Context(_) | Target::Foreign(_) => Err(Fault::not_found(NotObject, last)),
            },
        }
    }
}

/// Returns a binding as clients see it.
pub(super) fn binding((key, binding_type): &(Key, zorb::cos_naming::BindingType)) -> Binding {
    Binding { binding_name: vec![key.component()], binding_type: *binding_type }
}

#[cold]
fn no_reference(error: PoaError) -> Fault {
    system(SystemExceptionKind::ObjAdapter, "no reference can be made").with_source(error).into()
}
