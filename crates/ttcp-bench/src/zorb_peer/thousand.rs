//! The objects with a thousand operations. Rustc takes minutes to compile their interfaces, so debug builds
//! and builds without the feature `thousand` leave them out.

use std::sync::Arc;

use zorb::__private::v1::OpTable;
use zorb::prelude::*;
use zorb::{OperationDemux, ResolveError, Servant};

use super::call_counts::CallCounts;
use idl::{ThousandOnewayRef, ThousandOnewayServant, ThousandRef, ThousandServant};

include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// The code that `idl!` generates for the interfaces. The module is private, so that the compiler omits
/// unused stubs, which are nearly all of them.
#[allow(unreachable_pub, reason = "generated")]
mod idl {
    zorb::idl!("idl/thousand.idl", include = ["idl"]);
}

/// Returns a servant of `Thousand`, or of `ThousandOneway`, that counts its calls in `calls`.
pub(super) fn servant(oneway: bool, calls: &Arc<CallCounts>) -> Servant {
    let counter = CallCounter(calls.clone());
    if oneway { Servant::of::<ThousandOnewayRef, _>(counter) } else { Servant::of::<ThousandRef, _>(counter) }
}

pub(super) struct LastOperation(ThousandObject);

enum ThousandObject {
    Twoway(ThousandRef),
    Oneway(ThousandOnewayRef),
}

impl LastOperation {
    /// Resolves the object with this URL: `ThousandOneway` if `oneway` is set, else `Thousand`.
    pub(super) async fn resolve(orb: &Orb, url: &str, oneway: bool) -> Result<LastOperation, ResolveError> {
        Ok(LastOperation(if oneway {
            ThousandObject::Oneway(orb.resolve(url).await?)
        } else {
            ThousandObject::Twoway(orb.resolve(url).await?)
        }))
    }

    pub(super) async fn call(&self) -> Result<(), SystemException> {
        match &self.0 {
            ThousandObject::Twoway(object) => object.m999().await,
            ThousandObject::Oneway(object) => object.m999().await,
        }
    }
}

macro_rules! table {
    ($($other:ident)*; $last:ident) => {{
        static TABLE: OpTable<1000, 2048> = OpTable::new([$(stringify!($other),)* stringify!($last)]);
        &TABLE
    }};
}

/// Looks up an operation by its name with the given strategy, and returns its index.
pub(super) fn find(strategy: OperationDemux, name: &[u8]) -> Option<usize> {
    thousand!(table).find_by(strategy, name)
}

struct CallCounter(Arc<CallCounts>);

macro_rules! count {
    ($servant:ident $($other:ident)*; $last:ident) => {
        impl $servant for CallCounter {
            $(async fn $other(&self) -> Result<(), SystemException> {
                self.0.count_other();
                Ok(())
            })*

            async fn $last(&self) -> Result<(), SystemException> {
                self.0.count_last();
                Ok(())
            }
        }
    };
}
thousand!(count ThousandServant);
thousand!(count ThousandOnewayServant);
