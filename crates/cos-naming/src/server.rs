//! [`Server`], which serves the names of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zorb::cos_naming::{BindingIteratorRef, NamingContextExtRef};
use zorb::poa::PoaError;
use zorb::{ActivateError, Orb, Reference, Servant};

use crate::servant::{
    BOOTSTRAP_KEY, BootstrapServant, ContextLocator, ContextServant, IteratorServant, ServedObjects, Service,
    ServiceOptions,
};
use crate::store::Store;
use crate::stubs::bootstrap::InitialReferencesRef;
use crate::zorb_naming::BalancedContextRef;

/// The default object key of the root context, and the name of its initial reference.
pub const DEFAULT_KEY: &str = "NameService";

/// The standard TCP port of naming services.
pub const PORT: u16 = 2809;

/// A running naming service. Dropping this value ends it.
///
/// ```no_run
/// use cos_naming::Server;
/// use cos_naming::store::DiskStore;
/// use zorb::prelude::*;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = DiskStore::open("names.redb")?;
/// let orb = Orb::builder().listen("iiop://127.0.0.1:2809").start_paused().build().await?;
/// let names = Server::builder(store).serve(&orb)?;
/// println!("{}", names.root());
/// orb.run_until(zorb::signal::shutdown()).await?;
/// # Ok(()) }
/// ```
///
/// References to the contexts of the service stay valid after a restart if the ORB listens at the same
/// address and the service has the same store and key.
///
/// By default, a reply has at most 10,000 bindings and about 1 MiB. There are at most 1024 iterators. An
/// iterator that is not used for five minutes is dropped. Names have up to 256 components of up to 16 KiB.
///
/// A component of a name may be bound to a context of another service. This service then calls the other one
/// for the rest of the name, with a timeout of ten seconds. A name may lead through up to 16 other services.
#[must_use = "the service ends when this is dropped"]
pub struct Server<S: Store> {
    service: Arc<Service<S>>,
    orb: Orb,
    root: NamingContextExtRef,
    bootstrap: Option<InitialReferencesRef>,
}

/// The configuration of a naming service, created by [`Server::builder`].
#[derive(Debug)]
#[must_use = "the service starts with `serve`"]
pub struct ServerBuilder<S> {
    store: S,
    key: String,
    bootstrap: bool,
    options: ServiceOptions,
}

/// The reason why a naming service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another naming service of the ORB has the same key, or the ORB has been shut down.
    #[error("cannot create the object adapter of the naming service: {0}")]
    Poa(#[from] PoaError),
    /// Another object has the key of the root context or the key `INIT`, or the ORB has been shut down.
    #[error("cannot activate the root context or the bootstrap object of the naming service: {0}")]
    Key(#[from] ActivateError),
}

impl<S: Store> Server<S> {
    /// Creates the configuration of a service for the contents of a store.
    pub fn builder(store: S) -> ServerBuilder<S> {
        let options = ServiceOptions {
            max_page_bindings: 10_000,
            max_page_bytes: 1024 * 1024,
            max_iterators: 1024,
            iterator_timeout: Duration::from_secs(300),
            remote_timeout: Duration::from_secs(10),
            load_report_timeout: Duration::from_secs(60),
            max_decoded_references: 100_000,
        };
        ServerBuilder { store, key: DEFAULT_KEY.to_owned(), bootstrap: false, options }
    }

    /// Returns the root context. Its URL is `corbaloc::HOST:PORT/NameService` by default.
    #[must_use]
    pub fn root(&self) -> &NamingContextExtRef {
        &self.root
    }

    /// Returns the store that is served.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.service.store
    }

    /// Returns the number of iterators that exist now.
    #[must_use]
    pub fn iterator_count(&self) -> usize {
        self.service.iterators.count()
    }
}

impl<S: Store> ServerBuilder<S> {
    /// Sets the object key of the root context, `NameService` by default. All naming services of an ORB must
    /// have different keys. References to all contexts contain the key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets whether the service also supports Sun's bootstrap protocol, `false` by default.
    ///
    /// Java programs with `-ORBInitialHost` and `-ORBInitialPort`, and JNDI addresses such as
    /// `iiop://HOST:PORT`, find the root context by this protocol. It defines an object with the key `INIT`,
    /// which returns references by name: the root context under the name [`key`](Self::key), and the initial
    /// references of the ORB. It returns nil for unknown names.
    pub fn bootstrap(mut self, is_enabled: bool) -> Self {
        self.bootstrap = is_enabled;
        self
    }

    /// Sets the maximum number of bindings in a reply, 10,000 by default. An iterator returns further ones.
    pub fn max_page_bindings(mut self, bindings: usize) -> Self {
        self.options.max_page_bindings = bindings.max(1);
        self
    }

    /// Sets the approximate maximum size, in bytes, of a reply with bindings. The default is 1 MiB.
    pub fn max_page_bytes(mut self, bytes: usize) -> Self {
        self.options.max_page_bytes = bytes;
        self
    }

    /// Sets the maximum number of iterators, 1024 by default. A further one replaces the least recently used.
    pub fn max_iterators(mut self, iterators: usize) -> Self {
        self.options.max_iterators = iterators;
        self
    }

    /// Sets the time after which an unused iterator is dropped, five minutes by default. Later calls to the
    /// iterator raise OBJECT_NOT_EXIST.
    pub fn iterator_timeout(mut self, timeout: Duration) -> Self {
        self.options.iterator_timeout = timeout;
        self
    }

    /// Sets the timeout of calls to another naming service for the rest of a name, ten seconds by default.
    /// After this time, the client receives `CannotProceed` with the context of the other service.
    pub fn remote_timeout(mut self, timeout: Duration) -> Self {
        self.options.remote_timeout = timeout;
        self
    }

    /// Sets for how long the load that a group's member has reported is valid. The default is one minute.
    pub fn load_report_timeout(mut self, timeout: Duration) -> Self {
        self.options.load_report_timeout = timeout;
        self
    }

    /// Sets the maximum number of references that stay decoded in memory after they have been resolved. The
    /// default is 100,000. Each takes about 600 bytes. Further references are decoded for each call.
    pub fn max_decoded_references(mut self, references: usize) -> Self {
        self.options.max_decoded_references = references;
        self
    }

    /// Starts the service.
    ///
    /// # Errors
    /// [`ServeError`] if the ORB already uses the key, or has been shut down.
    pub fn serve(self, orb: &Orb) -> Result<Server<S>, ServeError> {
        let Self { store, key, bootstrap, options } = self;
        let service = Arc::new(Service::new(store, options));
        let weak = Arc::downgrade(&service);
        let contexts_poa = orb.root_poa().child(format!("{key}-contexts")).user_ids().persistent();
        let servant = Servant::of::<BalancedContextRef, _>(ContextServant::all_contexts(&weak));
        let contexts = contexts_poa.servant_locator(ContextLocator::new(&weak, servant)).create()?;
        let clean_up = |error: ServeError| {
            // The POA is destroyed even if the future is not awaited.
            let _ = contexts.destroy(false);
            error
        };
        let servant = Servant::of::<BindingIteratorRef, _>(IteratorServant::new(&weak));
        let iterators =
            contexts.child("iterators").user_ids().default_servant(servant).without_map().create();
        let iterators = iterators.map_err(|error| clean_up(error.into()))?;
        let servant = ContextServant::root_context(&weak);
        let root = orb.activation().named(&key).activate::<BalancedContextRef, _>(servant);
        let root = with_standard_type(orb, &root.map_err(|error| clean_up(error.into()))?);
        let bootstrap = bootstrap.then(|| {
            let servant = BootstrapServant { root_name: key, root: root.to_object() };
            orb.activation().named(BOOTSTRAP_KEY).activate::<InitialReferencesRef, _>(servant)
        });
        let bootstrap = bootstrap.transpose().map_err(|error| {
            orb.deactivate(&root);
            clean_up(error.into())
        })?;
        let objects = ServedObjects { contexts, iterators, root: root.to_object() };
        service.set_served_objects(objects);
        Ok(Server { service, orb: orb.clone(), root, bootstrap })
    }
}

/// Returns the reference with the OMG's type id, so that clients need not ask the service for its interfaces.
fn with_standard_type(orb: &Orb, root: &BalancedContextRef) -> NamingContextExtRef {
    let mut ior = root.ior().clone();
    ior.type_id = NamingContextExtRef::REPOSITORY_ID.to_owned();
    // If the ORB has no address, the new reference is not equivalent, and the original one is returned.
    let object = orb.object_from_ior(ior).filter(|object| object.is_equivalent(root));
    NamingContextExtRef::from_object(object.unwrap_or_else(|| root.to_object()))
}

impl<S: Store> Drop for Server<S> {
    fn drop(&mut self) {
        self.orb.deactivate(&self.root);
        if let Some(bootstrap) = &self.bootstrap {
            self.orb.deactivate(bootstrap);
        }
        if let Some(objects) = self.service.served_objects() {
            // The POA is destroyed even if the future is not awaited.
            let _ = objects.contexts.destroy(false);
        }
    }
}

impl<S: Store> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("root", &self.root).finish_non_exhaustive()
    }
}
