//! Binds references: finds or opens the connection for their calls.

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
use crate::client::dialer::unreachable;
use crate::connection::exclusive::{ConnectionTarget, Lease};
use crate::connection::{AddressingMode, Binding, SharedConnection};
use crate::endpoint::{Endpoint, Route};
use crate::reference::{ObjectRef, RequiredEncoding};
use crate::servant::find_object_etherealized_after_callers;

pub(crate) struct SharedBinding {
    pub(crate) binding: Arc<Binding>,
    pub(crate) link: Arc<SharedConnection>,
}

pub(crate) struct ExclusiveBinding {
    pub(crate) binding: Arc<Binding>,
    pub(crate) lease: Lease,
}

enum FoundConnection {
    Shared(Arc<SharedConnection>),
    Exclusive(Lease),
}

type FoundBinding = Result<(Arc<Binding>, FoundConnection), SystemException>;

impl FoundConnection {
    fn link(&self) -> &Arc<SharedConnection> {
        match self {
            Self::Shared(link) => link,
            Self::Exclusive(lease) => lease.link(),
        }
    }
}

impl ObjectRef {
    /// Returns the connection of the last call if it still exists, or else another shared connection or a new
    /// one. The latter cases evaluate `deadline`. Their future is boxed, because the futures of calls are
    /// moved before they are polled and should therefore be small.
    #[inline]
    pub(crate) async fn bind_shared(
        &self,
        deadline: impl Fn() -> Option<Instant>,
    ) -> Result<SharedBinding, SystemException> {
        if let Some(key) = self.own_key() {
            self.check_for_deadlock(key)?;
        }
        if let Some(binding) = self.binding()
            && let Some(link) = binding.link.upgrade()
            && tokio::runtime::Handle::try_current().is_ok_and(|runtime| runtime.id() == binding.runtime)
            && !self.orb().refuses_calls()
        {
            return Ok(SharedBinding { binding, link });
        }
        Box::pin(self.rebind(deadline())).await
    }

    /// Fails if the etherealization of the object waits for the current request. A message to the object
    /// would wait for the etherealization, so both would wait forever.
    #[cold]
    fn check_for_deadlock(&self, key: &[u8]) -> Result<(), SystemException> {
        if find_object_etherealized_after_callers(self.orb(), key).is_none() {
            return Ok(());
        }
        Err(SystemException::bad_inv_order().with_minor(minor::BAD_INV_ORDER_WOULD_DEADLOCK).with_reason(
            "the object is being deactivated, which waits for the request that makes this call; call the object through its typed reference, or after the request",
        ))
    }

    /// Returns a connection that no other call uses until its lease is dropped.
    #[cold]
    pub(crate) async fn bind_exclusive(
        &self,
        deadline: Option<Instant>,
    ) -> Result<ExclusiveBinding, SystemException> {
        let (binding, found) = self.find_connection(deadline, true).await?;
        match found {
            FoundConnection::Exclusive(lease) => Ok(ExclusiveBinding { binding, lease }),
            FoundConnection::Shared(_) => Err(self.no_usable_address()),
        }
    }

    #[cold]
    async fn rebind(&self, deadline: Option<Instant>) -> Result<SharedBinding, SystemException> {
        if self.options().rebind == RebindMode::NoReconnect && self.was_bound() {
            return Err(crate::client::failure::rebind_forbidden(
                "the connection is lost, and NO_RECONNECT forbids a new one",
            ));
        }
        let (binding, found) = self.find_connection(deadline, false).await?;
        self.bind(Arc::clone(&binding));
        Ok(SharedBinding { binding, link: Arc::clone(found.link()) })
    }

    /// Tries the profiles in their order, each with all of its addresses: see [`dial`]. The remaining time is
    /// divided equally among the remaining profiles.
    async fn find_connection(&self, deadline: Option<Instant>, exclusive: bool) -> FoundBinding {
        if self.orb().refuses_calls() {
            return Err(crate::errors::orb_shut_down());
        }
        if let Some(key) = self.unforwarded_own_key() {
            return self.bind_to_self(key, deadline, exclusive).await;
        }
        let profiles = self.profiles();
        let forbidden = profiles.iter().find_map(|profile| self.orb().reason_to_forbid(profile));
        let routes = self.orb().routes(profiles);
        let no_permission = |text| SystemException::no_permission().with_reason(text);
        let mut last = forbidden.filter(|_| routes.is_empty()).map(no_permission);
        for (tried, route) in routes.iter().enumerate() {
            let left = routes.len() - tried;
            match self.bind_by_route(route, dial::deadline_share(left, deadline), exclusive).await {
                Ok(found) => return Ok(found),
                Err(error) if left == 1 && error.kind == SystemExceptionKind::Timeout => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        // If a forward failed, try the reference's own addresses.
        if last.is_some() && self.drop_forward() {
            return Box::pin(self.find_connection(deadline, exclusive)).await;
        }
        Err(last.unwrap_or_else(|| self.no_usable_address()))
    }

    async fn bind_by_route(&self, route: &Route, deadline: Option<Instant>, exclusive: bool) -> FoundBinding {
        let Route { profile, endpoints } = route;
        if !exclusive && let Some(link) = self.orb().callback_connection(route)? {
            self.check_encoding(Version::V1_2, link.code_sets())?;
            return self.bind_to_client(profile, link);
        }
        let version = self.version_for(profile.version)?;
        let offered = crate::quirks::usable_code_sets(profile);
        let (code_sets, context) = self.negotiate_code_sets(offered.as_ref(), version)?;
        let context = context.filter(|_| offered.is_some() && version >= Version::V1_1);
        let mut initial_contexts =
            Vec::from_iter(context.map(|context| context.to_service_context()).transpose()?);
        // Do not request the reference over an exclusive connection: the server would answer with a forward,
        // and not every payload can be sent again.
        let requests_reference = !exclusive && self.must_fetch_reference() && offered.is_none();
        if requests_reference {
            initial_contexts
                .push(ServiceContext { id: ContextId::ZORB_REFERENCE, data: Bytes::from_static(&[0]) });
        }
        let sends_block_lists = version >= Version::V1_2
            && profile.component(ComponentTag::ZORB_BLOCKS).is_some_and(TaggedComponent::is_zorb_blocks);
        #[cfg(feature = "experiments")]
        let sends_block_lists = sends_block_lists && self.orb().config.connection.deposits_enabled;
        if sends_block_lists {
            initial_contexts.push(BlockList::empty_context());
        }
        let target = |endpoint| ConnectionTarget { endpoint, version, code_sets };
        let targets: Vec<ConnectionTarget> = endpoints.iter().cloned().map(target).collect();
        let found = match exclusive {
            true => FoundConnection::Exclusive(self.orb().connect_any_exclusive(&targets, deadline).await?),
            false => FoundConnection::Shared(self.orb().connect_any(&targets, deadline).await?),
        };
        // Ask the connection. If it was opened before the first POA for callbacks, it accepts no callbacks.
        if found.link().accepts_requests() {
            // Insert the offer first, because TAO reads only the first service context that it knows.
            initial_contexts.insert(0, self.orb().bidirectional_context()?);
        }
        let server_limit = crate::quirks::fragment_size(profile);
        if let Some(size) = server_limit.into_iter().chain(self.options().fragment_size).min() {
            found.link().set_fragment_size(size);
        }
        let caller_contexts = self.caller_contexts(profile, found.link())?;
        let binding = Binding {
            initial_contexts,
            caller_contexts,
            sends_block_lists,
            requests_reference,
            ..new_binding(found.link(), profile.clone(), version, code_sets)
        };
        Ok((Arc::new(binding), found))
    }

    /// Returns the GIOP version for calls to a server that supports versions up to `newest`.
    fn version_for(&self, newest: Version) -> Result<Version, SystemException> {
        let newest = newest.min(self.orb().config.connection.max_version);
        match self.required_encoding() {
            Some(demand) if demand.version > newest => Err(incompatible_encoding(
                SystemExceptionKind::InvObjref,
                "the server does not support the GIOP version in which the request was received",
            )),
            Some(demand) => Ok(demand.version),
            None => Ok(newest),
        }
    }

    /// Returns the code sets for calls to a server that offers `offered`, and the context that announces
    /// them.
    fn negotiate_code_sets(
        &self,
        offered: Option<&CodeSetComponentInfo>,
        version: Version,
    ) -> Result<(CodeSets, Option<CodeSetContext>), SystemException> {
        let Some(RequiredEncoding { code_sets, .. }) = self.required_encoding() else {
            let mut negotiated = negotiate(&self.orb().config.connection.code_sets, offered, version);
            if offered.is_none() {
                negotiated.sets = self.orb().config.assumed_code_sets(version);
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
            // The client of the forwarded request announced no code sets, so the default ones apply.
            _ if code_sets == CodeSets::default_for(version) => Ok((code_sets, None)),
            _ => Err(no_such_code_sets()),
        }
    }

    /// Checks whether requests through this reference can be sent with this version and these code sets.
    fn check_encoding(&self, version: Version, code_sets: CodeSets) -> Result<(), SystemException> {
        match self.required_encoding() {
            Some(demand) if demand.code_sets != code_sets => Err(no_such_code_sets()),
            Some(_) if self.version_for(version)? != version => Err(incompatible_encoding(
                SystemExceptionKind::InvObjref,
                "the request was received in another GIOP version than that of the client's connection",
            )),
            _ => Ok(()),
        }
    }

    /// Binds to an object of this ORB whose servant is not called directly, for example because none is
    /// active. The ORB sends the requests to itself, so incarnation and forwards work as for remote calls.
    #[cold]
    async fn bind_to_self(&self, key: ObjectKey, deadline: Option<Instant>, exclusive: bool) -> FoundBinding {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(self.no_usable_address());
        }
        let orb = self.orb();
        let version = self.version_for(Version::V1_2)?;
        let (code_sets, context) =
            self.negotiate_code_sets(Some(&orb.config.connection.code_sets), version)?;
        let context = context.filter(|_| self.required_encoding().is_some() && version >= Version::V1_1);
        let initial_contexts =
            Vec::from_iter(context.map(|context| context.to_service_context()).transpose()?);
        let target = ConnectionTarget { endpoint: Endpoint::ThisOrb, version, code_sets };
        let found = match exclusive {
            true => FoundConnection::Exclusive(orb.connect_any_exclusive(&[target], deadline).await?),
            false => FoundConnection::Shared(orb.connect(&target, deadline).await?),
        };
        let profile = IiopProfile::new("", 0, key);
        let binding = Binding { initial_contexts, ..new_binding(found.link(), profile, version, code_sets) };
        Ok((Arc::new(binding), found))
    }

    /// Binds to an object of a client, over the client's connection and with its code sets.
    #[cold]
    fn bind_to_client(&self, profile: &IiopProfile, link: Arc<SharedConnection>) -> FoundBinding {
        let caller_contexts = self.caller_contexts(profile, &link)?;
        let binding = new_binding(&link, profile.clone(), Version::V1_2, link.code_sets());
        let binding = Binding { caller_contexts, ..binding };
        Ok((Arc::new(binding), FoundConnection::Shared(link)))
    }

    /// Returns the service contexts that identify the caller in each request to the profile's server.
    fn caller_contexts(
        &self,
        profile: &IiopProfile,
        link: &SharedConnection,
    ) -> Result<Vec<ServiceContext>, SystemException> {
        #[cfg(feature = "csi")]
        let context = self.orb().security().context_for(self.credentials(), profile, link)?;
        #[cfg(not(feature = "csi"))]
        let context = {
            let _ = (profile, link);
            None
        };
        Ok(Vec::from_iter(context))
    }

    #[cold]
    fn no_usable_address(&self) -> SystemException {
        match self.own_key() {
            Some(_) => SystemException::object_not_exist()
                .with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT)
                .with_reason("no object is active under the key"),
            None => unreachable("the reference has no IIOP address".to_owned()),
        }
    }
}

/// Returns a binding to the connection. It announces nothing and does not identify the caller.
fn new_binding(
    link: &Arc<SharedConnection>,
    profile: IiopProfile,
    version: Version,
    code_sets: CodeSets,
) -> Binding {
    Binding {
        link: Arc::downgrade(link),
        oneways_lost: link.oneway_loss_flag(),
        is_loss_reported: AtomicBool::new(false),
        runtime: tokio::runtime::Handle::current().id(),
        version,
        key: profile.object_key.clone(),
        writes_base_end_tags: crate::quirks::END_TAG_FOR_EACH_BASE.applies_to(&profile),
        profile,
        code_sets,
        initial_contexts: Vec::new(),
        caller_contexts: Vec::new(),
        sends_block_lists: false,
        addressing: AddressingMode::default(),
        requests_reference: false,
    }
}

/// The server does not support the GIOP version or the code sets of a request that is forwarded as bytes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct IncompatibleEncoding(&'static str);

/// Creates a COMPLETED_NO exception with [`IncompatibleEncoding`] as its source.
#[cold]
pub(crate) fn incompatible_encoding(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::from(kind).with_source(IncompatibleEncoding(text))
}

#[cold]
fn no_such_code_sets() -> SystemException {
    incompatible_encoding(
        SystemExceptionKind::CodesetIncompatible,
        "the server does not support the code sets in which the request was received",
    )
}

#[cold]
pub(crate) fn is_incompatible_encoding(exception: &SystemException) -> bool {
    std::error::Error::source(exception).is_some_and(|source| source.is::<IncompatibleEncoding>())
}
