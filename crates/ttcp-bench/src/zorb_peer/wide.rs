//! The test `last`, which calls the last of a hundred or a thousand operations. It uses further objects,
//! which report how many calls the server counter, and how long its look-ups take.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use zorb::__private::v1::OpTable;
use zorb::prelude::*;
use zorb::{OperationDemux, Servant};

use super::NAME;
use super::call_counts::CallCounts;
use super::idl::demux::{
    LookupsRef, LookupsServant, TallyRef, TallyServant, WideOnewayRef, WideOnewayServant,
};
use super::idl::{WideRef, WideServant};
#[cfg(all(feature = "thousand", not(debug_assertions)))]
use super::thousand;
use crate::reference::{Address, Object};
use crate::report::{Line, Report};
use crate::test_loops;
use crate::work::Work;

/// Whether this build has the interfaces of a thousand operations.
pub const HAS_THOUSAND_OPERATIONS: bool = cfg!(all(feature = "thousand", not(debug_assertions)));

/// Returns the objects of the test `last` that this build has.
pub(super) fn objects() -> impl Iterator<Item = Object> {
    let large = [Object::Thousand, Object::ThousandOneway].into_iter().filter(|_| HAS_THOUSAND_OPERATIONS);
    [Object::Wide, Object::WideOneway, Object::Tally, Object::Lookups].into_iter().chain(large)
}

/// Returns the servant of one of [`objects`]; `None` for others. `calls` counts calls of large interfaces.
pub(super) fn servant(object: Object, calls: &Arc<CallCounts>, strategy: OperationDemux) -> Option<Servant> {
    let counter = CallCounter(calls.clone());
    Some(match object {
        Object::Wide => Servant::of::<WideRef, _>(counter),
        Object::WideOneway => Servant::of::<WideOnewayRef, _>(counter),
        #[cfg(all(feature = "thousand", not(debug_assertions)))]
        Object::Thousand | Object::ThousandOneway => {
            thousand::servant(object == Object::ThousandOneway, calls)
        }
        Object::Tally => Servant::of::<TallyRef, _>(counter),
        Object::Lookups => Servant::of::<LookupsRef, _>(Lookups(strategy)),
        _ => return None,
    })
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

macro_rules! hundred {
    ($with:ident $($given:tt)*) => {
        $with! { $($given)*
            m000 m001 m002 m003 m004 m005 m006 m007 m008 m009
            m010 m011 m012 m013 m014 m015 m016 m017 m018 m019
            m020 m021 m022 m023 m024 m025 m026 m027 m028 m029
            m030 m031 m032 m033 m034 m035 m036 m037 m038 m039
            m040 m041 m042 m043 m044 m045 m046 m047 m048 m049
            m050 m051 m052 m053 m054 m055 m056 m057 m058 m059
            m060 m061 m062 m063 m064 m065 m066 m067 m068 m069
            m070 m071 m072 m073 m074 m075 m076 m077 m078 m079
            m080 m081 m082 m083 m084 m085 m086 m087 m088 m089
            m090 m091 m092 m093 m094 m095 m096 m097 m098; m099
        }
    };
}

hundred!(count WideServant);
hundred!(count WideOnewayServant);

impl TallyServant for CallCounter {
    async fn take(&self) -> Result<(u64, u64), SystemException> {
        Ok(self.0.take())
    }
}

/// A servant that measures how long it takes to look up an operation with the strategy of the server.
struct Lookups(OperationDemux);

macro_rules! table {
    ($($other:ident)*; $last:ident) => {{
        static TABLE: OpTable<100, 256> = OpTable::new([$(stringify!($other),)* stringify!($last)]);
        &TABLE
    }};
}

/// Looks up an operation by its name in the interface with `operations` operations, and returns its index.
fn find(operations: u32, strategy: OperationDemux, name: &[u8]) -> Option<usize> {
    match operations {
        100 => hundred!(table).find_by(strategy, name),
        #[cfg(all(feature = "thousand", not(debug_assertions)))]
        1_000 => thousand::find(strategy, name),
        _ => None,
    }
}

impl LookupsServant for Lookups {
    async fn operation(&self, operations: u32, times: u32) -> Result<f64, SystemException> {
        let last = operations.saturating_sub(1);
        let name = match self.0 {
            OperationDemux::Numeric => last.to_string(),
            _ => format!("m{last:03}"),
        };
        let find = || find(black_box(operations), black_box(self.0), black_box(name.as_bytes()));
        // The first look-up is not measured, because it may trigger lazy initialization.
        if find() != usize::try_from(last).ok() || times == 0 {
            return Err(SystemException::bad_param());
        }
        let start = Instant::now();
        for _ in 0..times {
            black_box(find());
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(times))
    }
}

const MEASURED_LOOKUPS: u32 = 10_000;

/// Runs the test `last` against the server with this address.
pub(super) async fn last(orb: &Orb, work: &Work, address: &Address) -> anyhow::Result<Report> {
    let tally: TallyRef = orb.resolve(&address.url(Object::Tally)?).await?;
    let counts = || async {
        let (last, others) = tally.take().await?;
        Ok(test_loops::Tally { last, others })
    };
    let url = address.url(work.object())?;
    macro_rules! call {
        ($reference:ty, $operation:ident) => {{
            let object: $reference = orb.resolve(&url).await?;
            test_loops::last(NAME, work, || object.$operation(), counts).await?
        }};
    }
    let mut report = match work.object() {
        Object::WideOneway => call!(WideOnewayRef, m099),
        #[cfg(all(feature = "thousand", not(debug_assertions)))]
        Object::Thousand | Object::ThousandOneway => {
            let operation = thousand::LastOperation::resolve(orb, &url, work.oneway).await?;
            test_loops::last(NAME, work, || operation.call(), counts).await?
        }
        #[cfg(not(all(feature = "thousand", not(debug_assertions))))]
        Object::Thousand | Object::ThousandOneway => {
            anyhow::bail!(
                "this build has no interface of 1,000 operations: use cargo run --profile bench-lto --features thousand"
            )
        }
        _ => call!(WideRef, m099),
    };
    // Only zorb servers have the object `Lookups`, so the time is measured only on request.
    if work.measures_lookup
        && let Report(Line::Last(line)) = &mut report
    {
        let lookups: LookupsRef = orb.resolve(&address.url(Object::Lookups)?).await?;
        line.lookup_ns = Some(lookups.operation(work.operations, MEASURED_LOOKUPS).await?);
    }
    Ok(report)
}
