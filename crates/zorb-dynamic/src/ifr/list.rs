//! Several interfaces of generated types at once.

use orb_runtime::dynamic::Described;

use super::InterfaceRepository;

/// The interfaces of generated types: a tuple of 1 to 16 typed references, `(bank::AccountRef,
/// bank::TellerRef)`.
///
/// Implemented for tuples only.
pub trait InterfaceList {
    /// Returns the repository with all of them added.
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
