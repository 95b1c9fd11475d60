//! The Interface Repository: a server that describes interfaces to foreign programs, and a client of such
//! servers.

mod answer;
mod describe;
mod fetch;
mod kind;
mod list;
mod object;
mod store;
mod value;

pub use describe::{
    DefinitionDetails, DescribedDefinition, describe_contents, describe_definition, look_up, look_up_value,
};
pub use fetch::{FetchError, interface_of, look_up_interface};
pub use list::InterfaceList;

use std::fmt;
use std::sync::{Arc, LazyLock};

use orb_runtime::dynamic::{
    Described, DynServant, DynamicException, Interface, InterfaceSource, ServerRequest,
};
use orb_runtime::poa::PoaError;
use orb_runtime::types::{Any, TypeCode};
use orb_runtime::wire::Ior;
use orb_runtime::{ActivateError, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind};

use crate::idl::Idl;

use self::answer::Question;
use self::kind::Kind;
use self::object::{Object, POA};
use self::store::Store;

/// The key of the repository: `corbaloc::HOST:PORT/InterfaceRepository`.
const KEY: &str = "InterfaceRepository";

/// The IDL of the repository's own objects. A test ensures that it compiles.
static OWN: LazyLock<Option<Idl>> =
    LazyLock::new(|| Idl::options().text("ifr.idl", "#include <ir.idl>").ok());

fn own_interface(name: &str) -> Result<Arc<Interface>, SystemException> {
    let found = OWN.as_ref().and_then(|idl| idl.interface(&format!("CORBA::{name}")));
    found.ok_or_else(|| refused(SystemExceptionKind::IntfRepos, "the repository's own IDL is not whole"))
}

/// Returns a type of the repository's own IDL.
fn own_type(name: &str) -> Result<TypeCode, SystemException> {
    let found = OWN.as_ref().and_then(|idl| idl.type_code(&format!("CORBA::{name}")));
    found.ok_or_else(|| refused(SystemExceptionKind::IntfRepos, "the repository's own IDL is not whole"))
}

#[cold]
fn refused(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::from(kind).with_reason(text)
}

/// An Interface Repository. It describes the interfaces of this program to programs that were not compiled
/// with its IDL.
///
/// It holds interfaces of generated types, and whole IDL files. It is read-only. `create_string` and similar
/// operations return objects of types without a name. An answer of more than 8 MiB raises IMP_LIMIT, and an
/// operation that would change the repository raises NO_IMPLEMENT.
///
/// Value types that operations of generated interfaces use are described from their type codes only: without
/// operations, initializers, abstract bases and supported interfaces.
///
/// ```no_run
/// use zorb::dynamic::{Idl, InterfaceRepository};
///
/// # async fn serve(orb: zorb::Orb) -> Result<(), Box<dyn std::error::Error>> {
/// let idl = Idl::options().files(["bank.idl"])?;
/// let repository = InterfaceRepository::new().idl(&idl).serve(&orb)?;
/// println!("{repository}");
/// # Ok(()) }
/// ```
///
/// Source clause: "The Interface Repository".
#[derive(Default)]
#[doc(alias = "CORBA::Repository")]
pub struct InterfaceRepository {
    store: Store,
}

/// The reason why a repository cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A POA `InterfaceRepository` exists below the root POA, or the ORB has shut down.
    #[error("the interface repository has no POA")]
    Poa(#[from] PoaError),
    /// The key `InterfaceRepository` is in use.
    #[error("the interface repository has no key")]
    Key(#[from] ActivateError),
    /// The repository's own IDL is invalid.
    #[error("the interface repository does not know itself")]
    Own(#[from] SystemException),
}

impl InterfaceRepository {
    /// Creates an empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a repository with the interfaces of generated types, their bases, and the types that they use.
    /// One line makes an ORB answer `_interface`:
    ///
    /// ```
    /// use zorb::dynamic::InterfaceRepository;
    /// use zorb::prelude::*;
    ///
    /// zorb::idl! {
    ///     module Bank {
    ///         interface Account { readonly attribute double balance; };
    ///         interface Teller { Account open(); };
    ///     };
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    /// InterfaceRepository::of::<(bank::AccountRef, bank::TellerRef)>().serve(&orb)?;
    /// # Ok(()) }
    /// ```
    pub fn of<L: InterfaceList>() -> Self {
        L::add_to(Self::new())
    }

    /// Adds all definitions of that IDL. Definitions whose repository ids are present already are not
    /// changed.
    #[must_use]
    pub fn idl(mut self, idl: &Idl) -> Self {
        self.store.add_idl(idl);
        self
    }

    /// Adds the interface of a generated type, its bases, and the types that they use.
    #[must_use]
    pub fn interface<R: Described>(self) -> Self {
        self.described(&Interface::of_desc((R::INTERFACE)()))
    }

    /// Adds an interface, its bases, and the types that they use.
    #[must_use]
    pub fn described(mut self, interface: &Arc<Interface>) -> Self {
        self.store.add_interface(interface);
        self
    }

    /// Serves the repository under the key `InterfaceRepository` until the ORB shuts down, and returns the
    /// reference to it. From then on the ORB's objects answer `_interface` from the repository.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn serve(self, orb: &Orb) -> Result<ObjectRef, ServeError> {
        let store = Arc::new(self.store);
        let servant = |kind: Kind| -> Result<Servant, SystemException> {
            Ok(Servant::dynamic(own_interface(kind.served())?, Objects { store: Arc::clone(&store) }))
        };
        let own = servant(Kind::Repository)?;
        let all = orb.root_poa().child(POA).create()?;
        for kind in Kind::EACH {
            let poa = all.child(kind.interface()).user_ids().persistent();
            poa.default_servant(servant(kind)?).without_map().create()?;
        }
        let served = orb.activation().named(KEY).activate_erased(own).inspect_err(|_| {
            // The destruction completes without being awaited.
            let _ = all.destroy(false);
        })?;
        orb.set_interface_source(Arc::new(Objects { store }));
        Ok(served)
    }
}

impl fmt::Debug for InterfaceRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterfaceRepository").finish_non_exhaustive()
    }
}

/// The servant of all objects of a repository.
struct Objects {
    store: Arc<Store>,
}

impl InterfaceSource for Objects {
    fn interface(&self, orb: &Orb, repository_id: &str) -> Option<Ior> {
        let (at, def) = self.store.find_id(repository_id)?;
        Object::Def(at, def).reference(&self.store, &orb.root_poa()).ok()
    }

    fn metadata(&self, orb: &Orb, repository_id: &str) -> Option<Any> {
        let (at, def) = self.store.find_id(repository_id)?;
        let root = orb.root_poa();
        Question { store: &self.store, root: &root, object: Object::Def(at, def) }.metadata().ok().flatten()
    }
}

impl DynServant for Objects {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let current = orb_runtime::request();
        let root = current.orb().root_poa();
        let id = current.object_id();
        let object =
            if id == KEY.as_bytes() { Some(Object::Repository) } else { Object::of_id(&self.store, id) };
        let object = object.ok_or_else(|| {
            refused(SystemExceptionKind::ObjectNotExist, "the interface repository has no such definition")
        })?;
        let result = Question { store: &self.store, root: &root, object }.result(&request)?;
        request.set_result(result);
        Ok(request)
    }
}
