//! Binding: finds or opens the connection for a reference.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::code_set::{CodeSetComponent, CodeSetComponentInfo, CodeSetContext, negotiate};
use giop_codec::exception::{SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{BlockList, ContextId, ObjectKey, ServiceContext};
use giop_codec::ior::{ComponentTag, IiopProfile, RebindMode, TaggedComponent};

use crate::client::dial;
use crate::connection::exclusive::{Lease, Target};
use crate::connection::{AddressingMode, Binding, SharedConnection};
use crate::endpoint::{Endpoint, Route};
use crate::reference::{ObjectRef, RequiredForm};
use crate::servant::etherealizing_in_caller;

/// A binding with a connection that no other call uses.
pub(crate) struct ExclusiveBinding {
    pub(crate) binding: Arc<Binding>,
    pub(crate) lease: Lease,
}

/// A binding with its connection.
pub(crate) struct Bound {
    pub(crate) binding: Arc<Binding>,
    pub(crate) link: Arc<SharedConnection>,
}

/// A shared or exclusive connection.
enum Found {
    Shared(Arc<SharedConnection>),
    ExclusiveBinding(Lease),
}

impl Found {
    fn link(&self) -> &Arc<SharedConnection> {
        match self {
            Self::Shared(link) => link,
            Self::ExclusiveBinding(lease) => lease.link(),
        }
    }
}

impl ObjectRef {
    /// Returns the connection to call over: that of the last call, or else a shared or a new one.
    ///
    /// The deadline is evaluated only if a connection must be opened. That part is boxed, so that futures of
    /// calls, which are moved before they are polled, stay small.
    #[inline]
    pub(crate) async fn bound(
        &self,
        deadline: impl Fn() -> Option<Instant>,
    ) -> Result<Bound, SystemException> {
        if let Some(key) = self.own_key() {
            self.does_not_wait_for_itself(key)?;
        }
        if let Some(binding) = self.binding()
            && let Some(link) = binding.link.upgrade()
            && tokio::runtime::Handle::try_current().is_ok_and(|runtime| runtime.id() == binding.runtime)
            && !self.orb().refuses_calls()
        {
            return Ok(Bound { binding, link });
        }
        Box::pin(self.rebind(deadline())).await
    }

    /// Returns an error for a message to an object whose etherealization waits for the current request. The
    /// message would wait for the etherealization, and therefore deadlock.
    #[cold]
    fn does_not_wait_for_itself(&self, key: &[u8]) -> Result<(), SystemException> {
        if etherealizing_in_caller(self.orb(), key).is_none() {
            return Ok(());
        }
        Err(SystemException::bad_inv_order().with_minor(minor::BAD_INV_ORDER_WOULD_DEADLOCK)
            .with_reason("the object is deactivated, and ends behind the request that calls it: call it through its typed reference, or later"))
    }

    /// Returns a connection that is used for one call only.
    #[cold]
    pub(crate) async fn bound_alone(
        &self,
        deadline: Option<Instant>,
    ) -> Result<ExclusiveBinding, SystemException> {
        let (binding, found) = self.search(deadline, true).await?;
        match found {
            Found::ExclusiveBinding(lease) => Ok(ExclusiveBinding { binding, lease }),
            Found::Shared(_) => Err(self.nowhere_to_go()),
        }
    }

    #[cold]
    async fn rebind(&self, deadline: Option<Instant>) -> Result<Bound, SystemException> {
        if self.options().rebind == RebindMode::NoReconnect && self.was_bound() {
            return Err(crate::client::failure::no_rebind(
                "the connection is lost, and NO_RECONNECT forbids another",
            ));
        }
        let (binding, found) = self.search(deadline, false).await?;
        self.bind(Arc::clone(&binding));
        Ok(Bound { binding, link: Arc::clone(found.link()) })
    }

    /// Tries the profiles in order, with all addresses of each: see [`dial`].
    ///
    /// The remaining time is divided among the remaining profiles, so that a server that does not answer
    /// leaves time for the others.
    async fn search(
        &self,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        if self.orb().refuses_calls() {
            return Err(crate::errors::closed());
        }
        if let Some(key) = self.unforwarded_own_key() {
            return self.bind_itself(key, deadline, alone).await;
        }
        let profiles = self.profiles();
        let forbidden = profiles.iter().find_map(|profile| self.orb().reason_to_forbid(profile));
        let routes = self.orb().routes(profiles);
        let mut last = forbidden.filter(|_| routes.is_empty()).map(no_permission);
        for (tried, route) in routes.iter().enumerate() {
            let left = routes.len() - tried;
            match self.bind_at(route, dial::share(left, deadline), alone).await {
                Ok(found) => return Ok(found),
                Err(error) if left == 1 && error.kind == SystemExceptionKind::Timeout => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        if self.drop_forward_once(&last) {
            return Box::pin(self.search(deadline, alone)).await;
        }
        Err(last.unwrap_or_else(|| self.nowhere_to_go()))
    }

    /// Drops a forward that failed, so that the reference's own addresses are tried. Returns `false` if there
    /// was none.
    fn drop_forward_once(&self, failure: &Option<SystemException>) -> bool {
        failure.is_some() && self.drop_forward()
    }

    async fn bind_at(
        &self,
        route: &Route,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        let Route { profile, ways } = route;
        if !alone && let Some(link) = self.orb().way_back(route)? {
            self.check_form(Version::V1_2, link.code_sets())?;
            return self.bind_back(profile, link);
        }
        let version = self.version_for(profile.version)?;
        let offered = crate::quirks::usable_code_sets(profile);
        let (code_sets, context) = self.negotiated(offered.as_ref(), version)?;
        let mut announce = Vec::new();
        if offered.is_some()
            && version >= Version::V1_1
            && let Some(context) = context
        {
            announce.push(context.to_service_context()?);
        }
        // Do not ask over an exclusive connection: a server that was asked answers with a forward, and not
        // every payload can be sent again.
        let asks = !alone && self.must_fetch_reference() && offered.is_none();
        if asks {
            announce.push(ask());
        }
        let blocks = version >= Version::V1_2
            && profile.component(ComponentTag::ZORB_BLOCKS).is_some_and(TaggedComponent::is_zorb_blocks);
        #[cfg(feature = "experiments")]
        let blocks = blocks && self.orb().config.connection.deposit;
        if blocks {
            announce.push(BlockList::empty_context());
        }
        let target = |endpoint| Target { endpoint, version, code_sets };
        let targets: Vec<Target> = ways.iter().cloned().map(target).collect();
        let found = match alone {
            true => Found::ExclusiveBinding(self.orb().connect_any_alone(&targets, deadline).await?),
            false => Found::Shared(self.orb().connect_any(&targets, deadline).await?),
        };
        // Check this for each binding: a shared connection may be older than the first object that can be
        // called back.
        if found.link().takes_calls() {
            // Insert it first: TAO reads only the first service context that it knows.
            announce.insert(0, self.orb().offer()?);
        }
        let takes = crate::quirks::max_message_size(profile);
        if let Some(size) = takes.into_iter().chain(self.options().fragment_size).min() {
            found.link().cut_at(size);
        }
        let always = self.context_of_caller(profile, found.link())?;
        let binding = Binding {
            link: Arc::downgrade(found.link()),
            loss: found.link().loss(),
            loss_reported: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current().id(),
            version,
            key: profile.object_key.clone(),
            profile: profile.clone(),
            code_sets,
            announce,
            always,
            blocks,
            ends_bases: crate::quirks::END_TAG_FOR_EACH_BASE.applies_to(profile),
            addressing: AddressingMode::default(),
            asks,
        };
        Ok((Arc::new(binding), found))
    }

    /// Returns the version for calls to a server that supports versions up to `newest`.
    fn version_for(&self, newest: Version) -> Result<Version, SystemException> {
        let newest = newest.min(self.orb().config.connection.max_version);
        match self.required_form() {
            Some(demand) if demand.version > newest => Err(incompatible_form(
                SystemExceptionKind::InvObjref,
                "the server does not take the GIOP version that the request came in",
            )),
            Some(demand) => Ok(demand.version),
            None => Ok(newest),
        }
    }

    /// Returns the code sets for calls to a server that offers those, and the service context that announces
    /// them.
    fn negotiated(
        &self,
        offered: Option<&CodeSetComponentInfo>,
        version: Version,
    ) -> Result<(CodeSets, Option<CodeSetContext>), SystemException> {
        let Some(RequiredForm { code_sets, .. }) = self.required_form() else {
            let mut negotiated = negotiate(&self.orb().config.connection.code_sets, offered, version);
            if offered.is_none() {
                negotiated.sets = self.orb().config.unannounced(version);
            }
            return Ok((negotiated.sets, Some(negotiated.context)));
        };
        let context = CodeSetContext::from(code_sets);
        let own = CodeSetComponentInfo {
            for_char: CodeSetComponent::new(context.char_data, &[]),
            for_wchar: CodeSetComponent::new(context.wchar_data, &[]),
        };
        let negotiated = negotiate(&own, offered, version);
        match negotiated.sets == code_sets {
            true => Ok((code_sets, Some(negotiated.context))),
            // The default code sets apply if no context is sent, which is what the original client did.
            _ if code_sets == CodeSets::default_for(version) => Ok((code_sets, None)),
            _ => Err(no_such_code_sets()),
        }
    }

    /// Checks whether requests through this reference can be sent with that version and those code sets.
    fn check_form(&self, version: Version, code_sets: CodeSets) -> Result<(), SystemException> {
        match self.required_form() {
            Some(demand) if demand.code_sets != code_sets => Err(no_such_code_sets()),
            Some(_) => self.version_for(version).and_then(|taken| match taken == version {
                true => Ok(()),
                false => Err(incompatible_form(
                    SystemExceptionKind::InvObjref,
                    "the client's connection has another GIOP version than the request came in",
                )),
            }),
            None => Ok(()),
        }
    }

    /// Binds to an object of this process that has no active servant, by messages to the ORB itself.
    /// Incarnation, servant look-up and forwards then work as for remote calls.
    #[cold]
    async fn bind_itself(
        &self,
        key: ObjectKey,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Err(self.nowhere_to_go()) };
        let orb = self.orb();
        let version = self.version_for(Version::V1_2)?;
        let (code_sets, context) = self.negotiated(Some(&orb.config.connection.code_sets), version)?;
        let mut announce = Vec::new();
        if self.required_form().is_some()
            && version >= Version::V1_1
            && let Some(context) = context
        {
            announce.push(context.to_service_context()?);
        }
        let target = Target { endpoint: Endpoint::Itself, version, code_sets };
        let found = match alone {
            true => Found::ExclusiveBinding(orb.connect_any_alone(&[target], deadline).await?),
            false => Found::Shared(orb.connect(&target, deadline).await?),
        };
        let binding = Binding {
            link: Arc::downgrade(found.link()),
            loss: found.link().loss(),
            loss_reported: AtomicBool::new(false),
            runtime: runtime.id(),
            version,
            profile: IiopProfile::new("", 0, key.clone()),
            key,
            code_sets,
            announce,
            always: Vec::new(),
            blocks: false,
            ends_bases: false,
            addressing: AddressingMode::default(),
            asks: false,
        };
        Ok((Arc::new(binding), found))
    }

    /// Binds to an object of a client, over the connection that the client opened, with the code sets that
    /// the client negotiated.
    #[cold]
    fn bind_back(
        &self,
        profile: &IiopProfile,
        link: Arc<SharedConnection>,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        let always = self.context_of_caller(profile, &link)?;
        let binding = Binding {
            link: Arc::downgrade(&link),
            loss: link.loss(),
            loss_reported: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current().id(),
            version: Version::V1_2,
            key: profile.object_key.clone(),
            profile: profile.clone(),
            code_sets: link.code_sets(),
            announce: Vec::new(),
            always,
            blocks: false,
            ends_bases: crate::quirks::END_TAG_FOR_EACH_BASE.applies_to(profile),
            addressing: AddressingMode::default(),
            asks: false,
        };
        Ok((Arc::new(binding), Found::Shared(link)))
    }

    /// Returns the service contexts that identify the caller in each request to the profile's server.
    #[cfg(feature = "csi")]
    fn context_of_caller(
        &self,
        profile: &IiopProfile,
        link: &SharedConnection,
    ) -> Result<Vec<ServiceContext>, SystemException> {
        let context = self.orb().security().context_for(self.credentials(), profile, link)?;
        Ok(context.into_iter().collect())
    }

    /// Returns none: the feature `csi` is disabled.
    #[cfg(not(feature = "csi"))]
    fn context_of_caller(
        &self,
        _: &IiopProfile,
        _: &SharedConnection,
    ) -> Result<Vec<ServiceContext>, SystemException> {
        Ok(Vec::new())
    }

    #[cold]
    fn nowhere_to_go(&self) -> SystemException {
        let (kind, minor, text) = match self.own_key() {
            Some(_) => (
                SystemExceptionKind::ObjectNotExist,
                minor::OBJECT_NOT_EXIST_NO_OBJECT,
                "no object is active under the key".to_owned(),
            ),
            None => (
                SystemExceptionKind::Transient,
                minor::TRANSIENT_NO_USABLE_PROFILE,
                "the reference has no IIOP address".to_owned(),
            ),
        };
        SystemException::from(kind).with_minor(minor).with_reason(text)
    }
}

/// Returns the service context that asks the server for the reference of the object.
fn ask() -> ServiceContext {
    ServiceContext { id: ContextId::ZORB_REFERENCE, data: Bytes::from_static(&[0]) }
}

/// Returns the exception for a profile whose addresses are forbidden, because of TLS or its absence.
#[cold]
fn no_permission(text: &'static str) -> SystemException {
    SystemException::no_permission().with_reason(text)
}

/// The server does not accept a request in its given form.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unlike(&'static str);

/// Creates an exception with COMPLETED_NO: the request cannot be sent in its given form.
#[cold]
pub(crate) fn incompatible_form(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::from(kind).with_source(Unlike(text))
}

#[cold]
fn no_such_code_sets() -> SystemException {
    incompatible_form(
        SystemExceptionKind::CodesetIncompatible,
        "the server does not take text in the code sets that the request came in",
    )
}

/// Returns whether an exception was created by [`incompatible_form`].
#[cold]
pub(crate) fn is_incompatible_form(exception: &SystemException) -> bool {
    std::error::Error::source(exception).is_some_and(|source| source.is::<Unlike>())
}
