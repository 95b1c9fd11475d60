//! Serving names: [`Server`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zorb::cos_naming::{BindingIteratorRef, NamingContextExtRef};
use zorb::poa::PoaError;
use zorb::{ActivateError, Orb, Reference, Servant};

use crate::servant::{
    BOOTSTRAP_KEY, Contexts, InitialReferences, Iterating, Locator, Options, Places, Service,
};
use crate::store::Store;
use crate::stubs::bootstrap::InitialReferencesRef;
use crate::zorb_naming::BalancedContextRef;

/// The plain key and the initial reference of naming services.
pub const KEY: &str = "NameService";

/// The default TCP port at which clients look for a naming service.
pub const PORT: u16 = 2809;

/// A naming service that is served until this value is dropped.
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
/// References to its contexts are valid forever. They are valid in another run too, if that listens at the
/// same address and has the same store. Contexts use no resources while they are not called.
///
/// By default an answer has at most 10,000 bindings and 1 MiB. There are at most 1024 iterators, and those
/// that are not used for five minutes are dropped. Names have up to 256 components of up to 16 KiB each. A
/// name that leads through contexts of other services is followed there, by calls of up to ten seconds
/// through up to 16 services.
#[must_use = "the service ends when this is dropped"]
pub struct Server<S: Store> {
    service: Arc<Service<S>>,
    orb: Orb,
    root: NamingContextExtRef,
    bootstrap: Option<InitialReferencesRef>,
}

/// The configuration of a naming service: see [`Server::builder`].
#[derive(Debug)]
#[must_use = "it does nothing until `serve`"]
pub struct ServerBuilder<S> {
    store: S,
    key: String,
    bootstrap: bool,
    options: Options,
}

/// The reason why names cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another naming service of the ORB has the key, or the ORB has shut down.
    #[error("the naming service has no POA: {0}")]
    Poa(#[from] PoaError),
    /// Another object has the key, or the ORB has shut down.
    #[error("the naming service has no key: {0}")]
    Key(#[from] ActivateError),
}

impl<S: Store> Server<S> {
    /// Configures a service for the contents of a store.
    pub fn builder(store: S) -> ServerBuilder<S> {
        let options = Options {
            page: 10_000,
            page_bytes: 1024 * 1024,
            iterators: 1024,
            iterator_timeout: Duration::from_secs(300),
            foreign_timeout: Duration::from_secs(10),
            report_timeout: Duration::from_secs(60),
            decoded: 100_000,
        };
        ServerBuilder { store, key: KEY.to_owned(), bootstrap: false, options }
    }

    /// Returns the root context: `corbaloc::HOST:PORT/NameService`.
    #[must_use]
    pub fn root(&self) -> &NamingContextExtRef {
        &self.root
    }

    /// Returns the store that is served.
    #[must_use]
    pub fn store(&self) -> &S {
        self.service.store()
    }

    /// Returns the number of iterators.
    #[must_use]
    pub fn iterators(&self) -> usize {
        self.service.iterator_count()
    }
}

impl<S: Store> ServerBuilder<S> {
    /// Sets the plain key of the root context, `NameService` by default. It distinguishes the contexts of two
    /// services of one ORB, or of one store that is served again.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets whether Sun's bootstrap protocol is answered too; `false` by default. Java programs with
    /// `-ORBInitialHost` and `-ORBInitialPort`, and JNDI addresses such as `iiop://HOST:PORT`, find the root
    /// context by it. The object with the plain key `INIT` returns the root context by its key and the
    /// initial references of the ORB by their names. It returns nil for other names.
    pub fn bootstrap(mut self, answers: bool) -> Self {
        self.bootstrap = answers;
        self
    }

    /// Sets the maximum number of bindings of one answer, 10,000 by default. Clients that request more also
    /// get an iterator.
    pub fn max_page(mut self, bindings: usize) -> Self {
        self.options.page = bindings.max(1);
        self
    }

    /// Sets the approximate maximum number of bytes of one answer, 1 MiB by default. A page has at least one
    /// binding, and the iterator returns the rest.
    pub fn max_page_bytes(mut self, bytes: usize) -> Self {
        self.options.page_bytes = bytes;
        self
    }

    /// Sets the maximum number of iterators, 1024 by default. Beyond it the least recently used one is
    /// dropped.
    pub fn max_iterators(mut self, iterators: usize) -> Self {
        self.options.iterators = iterators;
        self
    }

    /// Sets the time after which an unused iterator is dropped, five minutes by default. Calls of it then
    /// raise OBJECT_NOT_EXIST.
    pub fn iterator_timeout(mut self, timeout: Duration) -> Self {
        self.options.iterator_timeout = timeout;
        self
    }

    /// Sets the timeout of calls to other services for the rest of a name, ten seconds by default. After it
    /// the caller receives `CannotProceed` with that service's context.
    pub fn foreign_timeout(mut self, timeout: Duration) -> Self {
        self.options.foreign_timeout = timeout;
        self
    }

    /// Sets the time for which the report of a group's member is valid, one minute by default.
    pub fn report_timeout(mut self, timeout: Duration) -> Self {
        self.options.report_timeout = timeout;
        self
    }

    /// Sets the maximum number of bindings whose references are kept decoded after they were resolved,
    /// 100,000 by default. Each takes about 600 bytes. The references of other bindings are decoded each
    /// time.
    pub fn max_decoded(mut self, references: usize) -> Self {
        self.options.decoded = references;
        self
    }

    /// Serves the names.
    ///
    /// # Errors
    /// [`ServeError`]: the ORB has an object of that key, or has shut down.
    pub fn serve(self, orb: &Orb) -> Result<Server<S>, ServeError> {
        let Self { store, key, bootstrap, options } = self;
        let service = Arc::new(Service::new(store, options));
        let weak = Arc::downgrade(&service);
        let all = orb.root_poa().child(format!("{key}-contexts")).user_ids().persistent();
        let servant = Servant::of::<BalancedContextRef, _>(Contexts::all(&weak));
        let contexts = all.servant_locator(Locator::new(&weak, servant)).create()?;
        let undo = |error| {
            // The destruction completes without being awaited.
            let _ = contexts.destroy(false);
            error
        };
        let iterating = contexts.child("iterators").user_ids();
        let servant = Servant::of::<BindingIteratorRef, _>(Iterating::new(&weak));
        let iterating = iterating
            .default_servant(servant)
            .without_map()
            .create()
            .map_err(ServeError::from)
            .map_err(undo)?;
        let root = orb.activation().named(&key).activate::<BalancedContextRef, _>(Contexts::root(&weak));
        let root = published(orb, &root.map_err(ServeError::from).map_err(undo)?);
        let bootstrap = bootstrap.then(|| {
            let servant = InitialReferences { name: key, root: root.to_object() };
            orb.activation().named(BOOTSTRAP_KEY).activate::<InitialReferencesRef, _>(servant)
        });
        let bootstrap = bootstrap.transpose().map_err(|error| {
            orb.deactivate(&root);
            undo(error.into())
        })?;
        let places = Places { contexts, iterating, root: root.to_object() };
        service.serve_at(places);
        Ok(Server { service, orb: orb.clone(), root, bootstrap })
    }
}

/// Returns the reference with the type of the OMG's interface, which every client knows. With another type,
/// clients would have to ask the object for its interfaces.
fn published(orb: &Orb, root: &BalancedContextRef) -> NamingContextExtRef {
    let mut ior = root.ior().clone();
    ior.type_id = NamingContextExtRef::REPOSITORY_ID.to_owned();
    // A reference without an address is valid in this process only, and is returned unchanged.
    let object = orb.object_from_ior(ior).filter(|object| object.is_equivalent(root));
    NamingContextExtRef::from_object(object.unwrap_or_else(|| root.to_object()))
}

impl<S: Store> Drop for Server<S> {
    fn drop(&mut self) {
        self.orb.deactivate(&self.root);
        if let Some(bootstrap) = &self.bootstrap {
            self.orb.deactivate(bootstrap);
        }
        if let Some(places) = self.service.places_if_served() {
            // The destruction completes without being awaited.
            let _ = places.contexts.destroy(false);
        }
    }
}

impl<S: Store> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("root", &self.root).finish_non_exhaustive()
    }
}
