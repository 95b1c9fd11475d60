//! From a reference to a connection.

use std::sync::Arc;
use std::time::Instant;

use giop_codec::Version;
use giop_codec::code_set::negotiate;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{BlockList, ObjectKey};
use giop_codec::ior::{ComponentTag, IiopProfile, RebindMode, TaggedComponent};

use crate::link::Link;
use crate::orb::dial;
use crate::orb::{Endpoint, Lease, Target};
use crate::reference::{AskedFor, Binding, ObjectRef};

/// A binding with a connection that nobody else uses.
pub(crate) struct Alone {
    pub(crate) binding: Arc<Binding>,
    pub(crate) lease: Lease,
}

/// A binding with its connection.
pub(crate) struct Bound {
    pub(crate) binding: Arc<Binding>,
    pub(crate) link: Arc<Link>,
}

/// A connection that was found.
enum Found {
    Shared(Arc<Link>),
    Alone(Lease),
}

impl Found {
    fn link(&self) -> &Arc<Link> {
        match self {
            Self::Shared(link) => link,
            Self::Alone(lease) => lease.link(),
        }
    }
}

impl ObjectRef {
    /// The connection to call over: the one of the last call, else a shared or a new one.
    ///
    /// The deadline is only asked for where a connection must be made. That is boxed: futures of calls, which are moved before
    /// they are polled, stay small.
    #[inline]
    pub(crate) async fn bound(
        &self,
        deadline: impl Fn() -> Option<Instant>,
    ) -> Result<Bound, SystemException> {
        if let Some(binding) = self.binding()
            && let Some(link) = binding.link.upgrade()
            && tokio::runtime::Handle::try_current().is_ok_and(|runtime| runtime.id() == binding.runtime)
        {
            return Ok(Bound { binding, link });
        }
        Box::pin(self.rebind(deadline())).await
    }

    /// A connection for one call alone.
    #[cold]
    pub(crate) async fn bound_alone(&self, deadline: Option<Instant>) -> Result<Alone, SystemException> {
        let (binding, found) = self.search(deadline, true).await?;
        match found {
            Found::Alone(lease) => Ok(Alone { binding, lease }),
            Found::Shared(_) => Err(self.nowhere_to_go()),
        }
    }

    #[cold]
    async fn rebind(&self, deadline: Option<Instant>) -> Result<Bound, SystemException> {
        if self.options().rebind == RebindMode::NoReconnect && self.was_bound() {
            return Err(super::no_rebind("the connection is lost, and NO_RECONNECT forbids another"));
        }
        let (binding, found) = self.search(deadline, false).await?;
        self.bind(Arc::clone(&binding));
        Ok(Bound { binding, link: Arc::clone(found.link()) })
    }

    /// Tries the profiles in their order; of each all addresses, see [`dial`].
    ///
    /// A profile whose server does not answer takes only its share of the time from those behind it.
    async fn search(
        &self,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        if self.orb().is_closing() {
            return Err(crate::orb::closed());
        }
        if let Some(key) = self.called_here() {
            return self.bind_itself(key, deadline, alone).await;
        }
        let mut profiles = self.profiles();
        profiles.retain(|profile| !self.orb().ways(profile).is_empty());
        let mut last = None;
        for (tried, profile) in profiles.iter().enumerate() {
            let left = profiles.len() - tried;
            match self.bind_at(profile, dial::share(left, deadline), alone).await {
                Ok(found) => return Ok(found),
                Err(error) if left == 1 && error.kind == SystemExceptionKind::Timeout => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        if self.go_home_once(&last) {
            return Box::pin(self.search(deadline, alone)).await;
        }
        Err(last.unwrap_or_else(|| self.nowhere_to_go()))
    }

    /// After a forwarded place failed, the reference's own addresses get their chance.
    fn go_home_once(&self, failure: &Option<SystemException>) -> bool {
        failure.is_some() && self.go_home()
    }

    async fn bind_at(
        &self,
        profile: &IiopProfile,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        if !alone && let Some(link) = self.orb().way_back(profile)? {
            return Ok(self.bind_back(profile, link));
        }
        let version = profile.version.min(self.orb().config.max_version);
        let offered = crate::quirks::code_sets_of(profile);
        let negotiated = negotiate(&self.orb().config.code_sets, offered.as_ref(), version)?;
        let code_sets = negotiated.sets;
        let mut announce = Vec::new();
        if offered.is_some() && version >= Version::V1_1 {
            announce.push(negotiated.context.to_service_context()?);
        }
        let blocks = version >= Version::V1_2
            && self.orb().config.deposit
            && profile.component(ComponentTag::ZORB_BLOCKS).is_some_and(TaggedComponent::is_zorb_blocks);
        if blocks {
            announce.push(BlockList::empty_context());
        }
        if !alone && self.orb().offers_ways_back(version) {
            announce.push(self.orb().offer()?);
        }
        let target = |endpoint| Target { endpoint, version, code_sets };
        let targets: Vec<Target> = self.orb().ways(profile).into_iter().map(target).collect();
        let found = match alone {
            true => Found::Alone(self.orb().connect_any_alone(&targets, deadline).await?),
            false => Found::Shared(self.orb().connect_any(&targets, deadline).await?),
        };
        let binding = Binding {
            link: Arc::downgrade(found.link()),
            runtime: tokio::runtime::Handle::current().id(),
            version,
            key: profile.object_key.clone(),
            profile: profile.clone(),
            code_sets,
            announce,
            blocks,
            addressing: AskedFor::default(),
        };
        Ok((Arc::new(binding), found))
    }

    /// Calls what no servant of this process stands for yet by messages to the ORB itself: what makes it, finds it, or sends the caller
    /// elsewhere is then the same as for calls from afar.
    #[cold]
    async fn bind_itself(
        &self,
        key: ObjectKey,
        deadline: Option<Instant>,
        alone: bool,
    ) -> Result<(Arc<Binding>, Found), SystemException> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Err(self.nowhere_to_go()) };
        let orb = self.orb();
        let version = Version::V1_2.min(orb.config.max_version);
        let code_sets = negotiate(&orb.config.code_sets, Some(&orb.config.code_sets), version)?.sets;
        let target = Target { endpoint: Endpoint::Itself, version, code_sets };
        let found = match alone {
            true => Found::Alone(orb.connect_any_alone(&[target], deadline).await?),
            false => Found::Shared(orb.connect(&target, deadline).await?),
        };
        let binding = Binding {
            link: Arc::downgrade(found.link()),
            runtime: runtime.id(),
            version,
            profile: IiopProfile::new("", 0, key.clone()),
            key,
            code_sets,
            announce: Vec::new(),
            blocks: false,
            addressing: AskedFor::default(),
        };
        Ok((Arc::new(binding), found))
    }

    /// Calls over a connection that the client opened at which the object is: with the code sets that it negotiated.
    #[cold]
    fn bind_back(&self, profile: &IiopProfile, link: Arc<Link>) -> (Arc<Binding>, Found) {
        let binding = Binding {
            link: Arc::downgrade(&link),
            runtime: tokio::runtime::Handle::current().id(),
            version: Version::V1_2,
            key: profile.object_key.clone(),
            profile: profile.clone(),
            code_sets: link.code_sets(),
            announce: Vec::new(),
            blocks: false,
            addressing: AskedFor::default(),
        };
        (Arc::new(binding), Found::Shared(link))
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
        SystemException::new(kind, minor, CompletionStatus::No).because(text)
    }
}
