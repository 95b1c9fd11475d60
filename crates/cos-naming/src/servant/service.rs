//! The state and the operations of a naming service, which its servants share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zorb::cos_naming::{Binding, BindingIteratorRef, NameComponent, NamingContextExtRef, NamingContextRef};
use zorb::poa::{Poa, PoaError};
use zorb::wire::Ior;
use zorb::{Bytes, ObjectRef, Reference, SystemException, SystemExceptionKind};

use super::balance::{Balancer, MemberLoad};
use super::contexts::{context_of, id_of};
use super::fault::{Fault, system_exception};
use super::iterators::Iterators;
use super::walk::{NameEnd, remote_fault, unreadable_reference};
use crate::store::{
    Change, ContextId, DecodedReferences, Group, Key, Lookup, Page, PageLimit, Store, StoredBinding, Target,
};
use crate::zorb_naming::Member;
use crate::zorb_naming::balanced_context::{NoGroup, NoMember};

#[derive(Debug, Clone)]
pub(crate) struct ServiceOptions {
    pub(crate) max_page_bindings: usize,
    /// This is an approximate limit.
    pub(crate) max_page_bytes: usize,
    pub(crate) max_iterators: usize,
    pub(crate) iterator_timeout: Duration,
    pub(crate) remote_timeout: Duration,
    pub(crate) load_report_timeout: Duration,
    pub(crate) max_decoded_references: usize,
}

pub(crate) struct Service<S> {
    pub(crate) store: S,
    pub(super) options: ServiceOptions,
    pub(super) balancer: Balancer,
    pub(crate) iterators: Iterators,
    /// Set when all objects have been activated.
    objects: OnceLock<ServedObjects>,
    /// The number of references that are kept decoded.
    decoded_count: Arc<AtomicUsize>,
}

pub(crate) struct ServedObjects {
    pub(crate) contexts: Poa,
    pub(crate) iterators: Poa,
    pub(crate) root: ObjectRef,
}

impl<S: Store> Service<S> {
    pub(crate) fn new(store: S, options: ServiceOptions) -> Self {
        let balancer = Balancer::new(options.load_report_timeout);
        let iterators = Iterators::new(options.max_iterators, options.iterator_timeout);
        Self { store, options, balancer, iterators, objects: OnceLock::new(), decoded_count: Arc::default() }
    }

    pub(crate) fn set_served_objects(&self, objects: ServedObjects) {
        let _ = self.objects.set(objects);
    }

    pub(crate) fn served_objects(&self) -> Option<&ServedObjects> {
        self.objects.get()
    }

    /// Returns the objects, or TRANSIENT if they have not all been activated.
    fn require_served_objects(&self) -> Result<&ServedObjects, Fault> {
        let starting =
            || system_exception(SystemExceptionKind::Transient, "the naming service is still starting");
        self.objects.get().ok_or_else(|| starting().into())
    }

    pub(crate) fn context_ref<R: Reference>(&self, context: ContextId) -> Result<R, Fault> {
        if context == ContextId::ROOT {
            return Ok(R::from_object(self.require_served_objects()?.root.clone()));
        }
        // All clients know this type id. Those that use groups learn from `_is_a` that contexts support them.
        let contexts = &self.require_served_objects()?.contexts;
        let reference = contexts.create_reference_with_id::<NamingContextExtRef>(id_of(context));
        Ok(R::from_object(reference.map_err(reference_fault)?.to_object()))
    }

    /// Returns the context to which the reference refers, if it belongs to this service.
    pub(super) fn own_context(&self, reference: &NamingContextRef) -> Option<ContextId> {
        let objects = self.objects.get()?;
        if reference.as_object().is_equivalent(&objects.root) {
            return Some(ContextId::ROOT);
        }
        context_of(objects.contexts.reference_to_id(reference).ok()?.as_slice())
    }

    /// Returns the object to which a name is bound. For a group, this is the member for the current caller.
    pub(crate) async fn resolve(
        &self,
        context: ContextId,
        n: &[NameComponent],
    ) -> Result<Option<ObjectRef>, Fault> {
        match self.follow_name(context, n).await? {
            NameEnd::Local { context, key, last, is_compound_name } => {
                match self.store.lookup(context, &key).await? {
                    Lookup::Bound(bound) => self.resolve_binding(context, &key, &bound, last),
                    Lookup::NotBound => Err(Fault::missing(last)),
                    Lookup::NoContext => Err(self.no_context(context, last, is_compound_name)),
                }
            }
            NameEnd::Remote { context, rest } => {
                let found = self.remote_context(&context, rest)?.resolve(rest).await;
                found.map_err(|error| remote_fault(error.into(), &context, rest))
            }
        }
    }

    /// Returns the object of a binding. For a group, this is the member for the current caller.
    fn resolve_binding(
        &self,
        context: ContextId,
        key: &Key,
        bound: &StoredBinding,
        last: &[NameComponent],
    ) -> Result<Option<ObjectRef>, Fault> {
        match &bound.target {
            Target::Context(id) => self.context_ref(*id).map(Some),
            Target::Object(_) | Target::RemoteContext(_) => self.single_reference(bound),
            Target::Group(group) => {
                let picked = self.balancer.pick((context, key), group);
                let picked = picked.ok_or_else(|| Fault::missing(last))?;
                self.reference(bound, picked)
            }
        }
    }

    /// Returns the reference of a target that is not a group.
    pub(super) fn single_reference(&self, bound: &StoredBinding) -> Result<Option<ObjectRef>, Fault> {
        self.reference(bound, 0)
    }

    /// Returns the reference of the member with this index in a group. For other targets, `index` must be 0.
    /// Decodes references at first use, and keeps them if the limit permits it.
    fn reference(&self, bound: &StoredBinding, index: usize) -> Result<Option<ObjectRef>, Fault> {
        if let Some(decoded) = bound.decoded.get() {
            return Ok(decoded.references.get(index).cloned().flatten());
        }
        let single: [&Bytes; 1];
        let of_members: Vec<&Bytes>;
        let encoded: &[&Bytes] = match &bound.target {
            Target::Object(reference) | Target::RemoteContext(reference) => {
                single = [reference];
                &single
            }
            Target::Group(group) => {
                of_members = group.members.iter().map(|member| &member.object).collect();
                &of_members
            }
            Target::Context(_) => &[],
        };
        let max = self.options.max_decoded_references;
        let add = |count: usize| count.checked_add(encoded.len()).filter(|count| *count <= max);
        if self.decoded_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return encoded.get(index).map_or(Ok(None), |reference| self.decode(reference));
        }
        // If another thread is faster, this value is dropped, and its references are no longer counted.
        let mut decoded = DecodedReferences {
            references: vec![None; encoded.len()].into(),
            total_count: Arc::clone(&self.decoded_count),
        };
        for (reference, encoded) in decoded.references.iter_mut().zip(encoded) {
            *reference = self.decode(encoded)?;
        }
        let decoded = bound.decoded.get_or_init(|| decoded);
        Ok(decoded.references.get(index).cloned().flatten())
    }

    /// Decodes the reference of a stored target. An empty encoding is a nil reference.
    fn decode(&self, encoded: &Bytes) -> Result<Option<ObjectRef>, Fault> {
        if encoded.is_empty() {
            return Ok(None);
        }
        let ior = Ior::from_encapsulation(encoded).map_err(|_| unreadable_reference())?;
        Ok(zorb::request().orb().object_from_ior(ior))
    }

    pub(crate) async fn new_context(&self) -> Result<NamingContextRef, Fault> {
        match self.store.change(Change::NewContext).await {
            Ok(Some(created)) => self.context_ref(created),
            Ok(None) => Err(no_new_context()),
            Err(error) => Err(self.change_fault(error, ContextId::ROOT, &[], false)),
        }
    }

    pub(crate) async fn destroy(&self, context: ContextId) -> Result<(), Fault> {
        let destroyed = self.store.change(Change::Destroy { context }).await;
        destroyed.map(drop).map_err(|error| self.change_fault(error, context, &[], false))
    }

    pub(crate) async fn list(
        &self,
        context: ContextId,
        how_many: u32,
    ) -> Result<(Vec<Binding>, Option<BindingIteratorRef>), Fault> {
        let page = self.store.page(context, None, self.page_limit(how_many)).await?;
        let Page { bindings, has_more } = page.ok_or_else(Fault::destroyed)?;
        let iterator = has_more.then(|| {
            let id = self.iterators.create(context, bindings.last().map(|(key, _)| key.clone()));
            let reference = self.require_served_objects()?.iterators.create_reference_with_id(id);
            reference.map_err(reference_fault)
        });
        let iterator = iterator.transpose()?;
        Ok((bindings.iter().map(wire_binding).collect(), iterator))
    }

    /// Returns the limit of a reply for a client that requests `how_many` bindings.
    pub(super) fn page_limit(&self, how_many: u32) -> PageLimit {
        let bindings = usize::try_from(how_many).unwrap_or(usize::MAX).min(self.options.max_page_bindings);
        PageLimit { bindings, bytes: self.options.max_page_bytes }
    }

    pub(crate) async fn report_load(
        &self,
        context: ContextId,
        n: &[NameComponent],
        member: &str,
        load: f64,
        step: f64,
    ) -> Result<(), Fault> {
        match self.follow_name(context, n).await? {
            NameEnd::Local { context, key, last, is_compound_name } => {
                self.with_group(context, &key, last, is_compound_name, |_, group| {
                    if !group.members.iter().any(|other| other.name == member) {
                        return Err(Fault::NoMember(NoMember));
                    }
                    self.balancer.report((context, &key), member, load, step);
                    Ok(())
                })
                .await
            }
            NameEnd::Remote { context, rest } => {
                let remote = self.remote_balanced_context(&context, rest).await?;
                let reported = remote.report_load(rest, member, load, step).await;
                reported.map_err(|error| remote_fault(error.into(), &context, rest))
            }
        }
    }

    pub(crate) async fn members(
        &self,
        context: ContextId,
        n: &[NameComponent],
    ) -> Result<Vec<Member>, Fault> {
        match self.follow_name(context, n).await? {
            NameEnd::Local { context, key, last, is_compound_name } => {
                self.with_group(context, &key, last, is_compound_name, |bound, group| {
                    let loads = self.balancer.loads((context, &key), group);
                    let members = group.members.iter().zip(loads).enumerate();
                    members
                        .map(|(index, (member, MemberLoad { load, is_valid }))| {
                            let target = self.reference(bound, index)?;
                            Ok(Member { name: member.name.clone(), target, load, reporting: is_valid })
                        })
                        .collect()
                })
                .await
            }
            NameEnd::Remote { context, rest } => {
                let remote = self.remote_balanced_context(&context, rest).await?;
                remote.members(rest).await.map_err(|error| remote_fault(error.into(), &context, rest))
            }
        }
    }

    async fn with_group<T>(
        &self,
        context: ContextId,
        key: &Key,
        last: &[NameComponent],
        is_compound_name: bool,
        f: impl FnOnce(&StoredBinding, &Group) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        use zorb::cos_naming::naming_context::NotFoundReason::NotObject;
        match self.store.lookup(context, key).await? {
            Lookup::NotBound => Err(Fault::missing(last)),
            Lookup::NoContext => Err(self.no_context(context, last, is_compound_name)),
            Lookup::Bound(bound) => match &bound.target {
                Target::Group(group) => f(&bound, group),
                Target::Object(_) => Err(Fault::NoGroup(NoGroup)),
                Target::Context(_) | Target::RemoteContext(_) => Err(Fault::not_found(NotObject, last)),
            },
        }
    }
}

pub(super) fn wire_binding((key, binding_type): &(Key, zorb::cos_naming::BindingType)) -> Binding {
    Binding { binding_name: vec![key.component()], binding_type: *binding_type }
}

#[cold]
fn no_new_context() -> Fault {
    SystemException::persist_store().with_reason("the store did not return the new context").into()
}

#[cold]
fn reference_fault(error: PoaError) -> Fault {
    system_exception(SystemExceptionKind::ObjAdapter, "cannot create a reference to the context or iterator")
        .with_source(error)
        .into()
}
