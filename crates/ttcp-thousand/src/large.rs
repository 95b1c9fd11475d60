//! The interfaces and their servants.

use std::sync::Arc;

use zorb::__private::v1::OpTable;
use zorb::prelude::*;
use zorb::{OperationDemux, Servant};

pub use idl::{ThousandOnewayRef, ThousandRef};
use idl::{ThousandOnewayServant, ThousandServant};

use crate::Calls;

include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// What `idl!` makes of the contract.
#[allow(missing_docs)]
pub mod idl {
    zorb::idl!("../ttcp-bench/idl/thousand.idl", include = ["../ttcp-bench/idl"]);
}

/// A servant of `Thousand`, or of `ThousandOneway`, that counts its calls there.
pub fn servant(oneway: bool, calls: &Arc<Calls>) -> Servant {
    let counted = Counted(calls.clone());
    if oneway { Servant::of::<ThousandOnewayRef, _>(counted) } else { Servant::of::<ThousandRef, _>(counted) }
}

/// The number of the operation of that name, found in that way.
pub fn find(way: OperationDemux, name: &[u8]) -> Option<usize> {
    thousand!(table).find_by(way, name)
}

struct Counted(Arc<Calls>);

macro_rules! count {
    ($servant:ident $($other:ident)*; $last:ident) => {
        impl $servant for Counted {
            $(async fn $other(&self) -> Result<(), SystemException> {
                self.0.count(false);
                Ok(())
            })*

            async fn $last(&self) -> Result<(), SystemException> {
                self.0.count(true);
                Ok(())
            }
        }
    };
}
use count;

thousand!(count ThousandServant);
thousand!(count ThousandOnewayServant);

macro_rules! table {
    ($($other:ident)*; $last:ident) => {{
        static TABLE: OpTable<1000, 2048> = OpTable::new([$(stringify!($other),)* stringify!($last)]);
        &TABLE
    }};
}
use table;
