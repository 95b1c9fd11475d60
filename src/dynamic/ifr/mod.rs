//! The Interface Repository: a server that tells foreign programs which interfaces there are, and a client of such servers.

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
use orb_runtime::{
    ActivateError, CompletionStatus, MinorCode, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind,
};

use super::Idl;

use self::answer::Question;
use self::kind::Kind;
use self::object::{Object, POA};
use self::store::Store;

/// The key under which the repository is found: `corbaloc::HOST:PORT/InterfaceRepository`.
pub(crate) const KEY: &str = "InterfaceRepository";

/// The IDL of the repository's own objects. A test reads it, so that it is whole.
static OWN: LazyLock<Option<Idl>> =
    LazyLock::new(|| Idl::options().text("ifr.idl", "#include <ir.idl>").ok());

fn own_interface(name: &str) -> Result<Arc<Interface>, SystemException> {
    let found = OWN.as_ref().and_then(|idl| idl.interface(&format!("CORBA::{name}")));
    found.ok_or_else(|| refused(SystemExceptionKind::IntfRepos, "the repository's own IDL is not whole"))
}

/// A type of the repository's own IDL.
fn own_type(name: &str) -> Result<TypeCode, SystemException> {
    let found = OWN.as_ref().and_then(|idl| idl.type_code(&format!("CORBA::{name}")));
    found.ok_or_else(|| refused(SystemExceptionKind::IntfRepos, "the repository's own IDL is not whole"))
}

#[cold]
fn refused(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).because(text)
}

/// An Interface Repository: it tells programs that were not compiled with the IDL what the interfaces of this one have.
///
/// It holds interfaces of generated types, and whole IDL files, is read-only, and says what it was given. `create_string` and its like
/// give objects of types without a name; an answer of more than 8 MiB is IMP_LIMIT; what would change the repository is NO_IMPLEMENT. Of value types that operations of generated
/// interfaces name it knows what type codes say: no operations, initializers, abstract bases or supported interfaces.
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

/// Why a repository is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is a POA `InterfaceRepository` below the root POA, or the ORB has shut down.
    #[error("the interface repository has no POA")]
    Poa(#[from] PoaError),
    /// The key `InterfaceRepository` is in use.
    #[error("the interface repository has no key")]
    Key(#[from] ActivateError),
    /// The repository's own IDL is not what it should be.
    #[error("the interface repository does not know itself")]
    Own(#[from] SystemException),
}

impl InterfaceRepository {
    /// One that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that knows the interfaces of generated types, those that they are derived from, and the types that they name. One line makes an ORB answer
    /// `_interface`:
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

    /// The same with all that is in that IDL. Definitions whose repository ids it has already stay as they are.
    #[must_use]
    pub fn idl(mut self, idl: &Idl) -> Self {
        self.store.add_idl(idl);
        self
    }

    /// The same with the interface of a generated type, those that it is derived from, and the types that they name.
    #[must_use]
    pub fn interface<R: Described>(self) -> Self {
        self.described(&Interface::of_desc((R::INTERFACE)()))
    }

    /// The same with an interface, those that it is derived from, and the types that they name.
    #[must_use]
    pub fn described(mut self, interface: &Arc<Interface>) -> Self {
        self.store.add_interface(interface);
        self
    }

    /// Serves it, under the key `InterfaceRepository`, until the ORB shuts down, and gives the reference to it. From then on the ORB's objects
    /// answer `_interface` with what the repository has of them.
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
            // It goes on by itself.
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
