//! The Interface Repository: a server that describes interfaces, and a client of such servers.

mod answer;
mod describe;
mod fetch;
mod kind;
mod object;
mod store;
mod value;

pub use describe::{
    DefinitionDetails, DescribedDefinition, describe_contents, describe_definition, look_up, look_up_value,
};
pub use fetch::{FetchError, interface_of, look_up_interface};

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

use self::answer::ObjectCall;
use self::kind::Kind;
use self::object::{Object, POA_NAME};
use self::store::Store;

/// The object key of the repository: `corbaloc::HOST:PORT/InterfaceRepository`.
const OBJECT_KEY: &str = "InterfaceRepository";

/// The IDL of the repository's objects. A test ensures that it compiles.
static REPOSITORY_IDL: LazyLock<Option<Idl>> =
    LazyLock::new(|| Idl::options().text("ifr.idl", "#include <ir.idl>").ok());

fn repository_interface(name: &str) -> Result<Arc<Interface>, SystemException> {
    repository_definition(|idl| idl.interface(&format!("CORBA::{name}")))
}

fn repository_type(name: &str) -> Result<TypeCode, SystemException> {
    repository_definition(|idl| idl.type_code(&format!("CORBA::{name}")))
}

fn repository_definition<T>(find: impl FnOnce(&Idl) -> Option<T>) -> Result<T, SystemException> {
    let text = "the repository's own IDL lacks a definition";
    REPOSITORY_IDL.as_ref().and_then(find).ok_or_else(|| exception(SystemExceptionKind::IntfRepos, text))
}

#[cold]
fn exception(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::from(kind).with_reason(text)
}

/// An Interface Repository. It describes this program's interfaces to programs that do not have its IDL.
///
/// It contains interfaces of generated types, and whole IDL files. It is read-only: operations that would
/// change it raise NO_IMPLEMENT. `create_string` and similar operations are supported, because they only
/// return objects of types without a name. If a result would exceed 8 MiB, the operation raises IMP_LIMIT.
///
/// If operations of generated interfaces use value types, these are described from their type codes only. The
/// descriptions lack operations, attributes, initializers, abstract bases and supported interfaces.
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
    /// The root POA already has a child POA `InterfaceRepository`, or the ORB has shut down.
    #[error("the POA of the interface repository cannot be created")]
    Poa(#[from] PoaError),
    /// The object key `InterfaceRepository` cannot be used, for example because another object has it.
    #[error("the object key of the interface repository cannot be used")]
    Key(#[from] ActivateError),
    /// The repository's own IDL is invalid.
    #[error("the IDL of the interface repository is invalid")]
    InvalidIdl(#[from] SystemException),
}

impl InterfaceRepository {
    /// Creates an empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a repository of generated interfaces and the types that they use. For example, a server can
    /// then answer the operation `_interface` of its objects:
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

    /// Adds all definitions of IDL, except those whose repository ids are already present.
    #[must_use]
    pub fn idl(mut self, idl: &Idl) -> Self {
        self.store.add_idl(idl);
        self
    }

    /// Adds the interface of a generated type, its bases, and the types that they use.
    #[must_use]
    pub fn interface<R: Described>(self) -> Self {
        self.described_interface(&Interface::of_desc((R::INTERFACE)()))
    }

    /// Adds an interface, its bases, and the types that they use.
    #[must_use]
    pub fn described_interface(mut self, interface: &Arc<Interface>) -> Self {
        self.store.add_interface(interface);
        self
    }

    /// Serves the repository under the object key `InterfaceRepository` until the ORB shuts down. Returns the
    /// reference to the repository. From now on, the ORB's objects answer `_interface` from the repository.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn serve(self, orb: &Orb) -> Result<ObjectRef, ServeError> {
        let store = Arc::new(self.store);
        let servant = |kind: Kind| -> Result<Servant, SystemException> {
            Ok(Servant::dynamic(
                repository_interface(kind.served_interface())?,
                RepositoryServant { store: Arc::clone(&store) },
            ))
        };
        let own = servant(Kind::Repository)?;
        let parent_poa = orb.root_poa().child(POA_NAME).create()?;
        for kind in Kind::ALL.iter().copied() {
            let poa = parent_poa.child(kind.interface()).user_ids().persistent();
            poa.default_servant(servant(kind)?).without_map().create()?;
        }
        let served = orb.activation().named(OBJECT_KEY).activate_erased(own).inspect_err(|_| {
            // The POAs are destroyed even if the future is dropped.
            let _ = parent_poa.destroy(false);
        })?;
        orb.set_interface_source(Arc::new(RepositoryServant { store }));
        Ok(served)
    }
}

impl fmt::Debug for InterfaceRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterfaceRepository").finish_non_exhaustive()
    }
}

/// The servant of all objects of a repository.
struct RepositoryServant {
    store: Arc<Store>,
}

impl InterfaceSource for RepositoryServant {
    fn interface(&self, orb: &Orb, repository_id: &str) -> Option<Ior> {
        let (index, def) = self.store.find_id(repository_id)?;
        Object::Def(index, def).reference(&self.store, &orb.root_poa()).ok()
    }

    fn metadata(&self, orb: &Orb, repository_id: &str) -> Option<Any> {
        let (index, def) = self.store.find_id(repository_id)?;
        let root_poa = orb.root_poa();
        ObjectCall { store: &self.store, root_poa: &root_poa, object: Object::Def(index, def) }
            .metadata()
            .ok()
            .flatten()
    }
}

impl DynServant for RepositoryServant {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let current = orb_runtime::request();
        let root_poa = current.orb().root_poa();
        let id = current.object_id();
        let object = if id == OBJECT_KEY.as_bytes() {
            Some(Object::Repository)
        } else {
            Object::of_id(&self.store, id)
        };
        let object = object.ok_or_else(|| {
            exception(SystemExceptionKind::ObjectNotExist, "the interface repository has no such definition")
        })?;
        let result = ObjectCall { store: &self.store, root_poa: &root_poa, object }.result(&request)?;
        request.set_result(result);
        Ok(request)
    }
}

/// A list of generated interfaces: a tuple of 1 to 16 types of typed references, such as
/// `(bank::AccountRef, bank::TellerRef)`. Implemented for tuples only.
pub trait InterfaceList {
    /// Returns the repository with all interfaces of the list added.
    #[doc(hidden)]
    fn add_to(repository: InterfaceRepository) -> InterfaceRepository;
}

macro_rules! tuples {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<$first: Described, $($rest: Described),*> InterfaceList for ($first, $($rest,)*) {
            fn add_to(repository: InterfaceRepository) -> InterfaceRepository {
                repository.interface::<$first>()$(.interface::<$rest>())*
            }
        }

        tuples!($($rest)*);
    };
}

tuples!(A B C D E F G H I J K L M N O P);
