//! The test `series` with zorb, on the client's and on the server's side.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zorb::prelude::*;

use super::idl::{self, AlignedRecord, PaddedRecord, SeriesRef, SeriesServant};
use crate::cli::Runtime;
use crate::series::{self, Arrival, ArrivalLog, Arrivals, SeriesCalls, SeriesLine, now};
use crate::work::{CallMode, MessageKind, Work};

pub(super) async fn run(orb: &Orb, runtime: Runtime, work: &Work, url: &str) -> anyhow::Result<SeriesLine> {
    let series: SeriesRef = orb.resolve(url).await?;
    let n = work.series.elements() as usize;
    macro_rules! run {
        ($elements:expr) => {{
            let client = Client { series, runtime, mode: work.series.mode, elements: $elements };
            series::run(super::NAME, work, &client).await
        }};
    }
    match work.series.kind {
        MessageKind::Octets => anyhow::bail!("only plain sockets support --kind octets"),
        MessageKind::Short => run!((0..n).map(short).collect::<Seq<_>>()),
        MessageKind::Long => run!((0..n).map(long).collect::<Seq<_>>()),
        MessageKind::Float => run!((0..n).map(float).collect::<Seq<_>>()),
        MessageKind::Double => run!((0..n).map(double).collect::<Seq<_>>()),
        MessageKind::Record => run!((0..n).map(aligned).collect::<Vec<_>>()),
        MessageKind::NaRecord => run!((0..n).map(padded).collect::<Vec<_>>()),
        MessageKind::Any => run!(RecordsInAny((0..n).map(aligned).collect())),
    }
}

struct Client<T> {
    series: SeriesRef,
    runtime: Runtime,
    mode: CallMode,
    elements: T,
}

/// The elements of a message, with the operations of their type.
trait Message {
    fn call(
        &self,
        series: &SeriesRef,
        sent: u64,
        number: u32,
    ) -> impl Future<Output = anyhow::Result<u64>> + Send;

    fn send(
        &self,
        series: &SeriesRef,
        sent: u64,
        number: u32,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Records that are sent in an any. The any is created anew for each message, as in a real program.
struct RecordsInAny(Vec<AlignedRecord>);

macro_rules! messages {
    ($($elements:ty: $call:ident $send:ident, |$it:ident| $argument:expr;)*) => {
        $(
            impl Message for $elements {
                async fn call(&self, series: &SeriesRef, sent: u64, number: u32) -> anyhow::Result<u64> {
                    let $it = self;
                    Ok(series.$call(sent, number, $argument).await?)
                }

                async fn send(&self, series: &SeriesRef, sent: u64, number: u32) -> anyhow::Result<()> {
                    let $it = self;
                    Ok(series.$send(sent, number, $argument).await?)
                }
            }
        )*
    };
}

messages! {
    Seq<i16>: call_short send_short, |s| s.clone();
    Seq<i32>: call_long send_long, |s| s.clone();
    Seq<f32>: call_float send_float, |s| s.clone();
    Seq<f64>: call_double send_double, |s| s.clone();
    Vec<AlignedRecord>: call_record send_record, |s| s;
    Vec<PaddedRecord>: call_padded send_padded, |s| s;
    RecordsInAny: call_any send_any, |s| &Any::new(&s.0)?;
}

impl<T: Message + Sync> SeriesCalls for Client<T> {
    async fn begin(&self, elements: u32) -> anyhow::Result<()> {
        Ok(self.series.begin(elements).await?)
    }

    async fn send(&self, sent: u64, number: u32) -> anyhow::Result<Option<u64>> {
        Ok(match self.mode {
            CallMode::Call => Some(self.elements.call(&self.series, sent, number).await?),
            CallMode::Oneway => {
                self.elements.send(&self.series, sent, number).await?;
                None
            }
        })
    }

    async fn arrivals(&self) -> anyhow::Result<Arrivals> {
        let idl::Seen { all, bad } = self.series.arrivals().await?;
        let arrival = |idl::Arrival { sent, arrived, number }| Arrival { sent, arrived, number };
        Ok(Arrivals { all: all.into_iter().map(arrival).collect(), wrong_count: bad })
    }

    async fn wait_until(&self, time: u64) {
        match self.runtime {
            Runtime::Blocking => series::sleep_until(time),
            Runtime::Current | Runtime::Multi => series::wait_in_tokio(time).await,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Series {
    log: Mutex<ArrivalLog>,
}

impl Series {
    /// Records a message, and whether its elements match the pattern. Returns its arrival time.
    fn record<T: PartialEq>(&self, sent: u64, number: u32, s: &[T], pattern: fn(usize) -> T) -> u64 {
        let arrived = now();
        self.log().record(Arrival { sent, arrived, number }, |elements| {
            s.len() == elements && s.iter().enumerate().all(|(i, element)| *element == pattern(i))
        });
        arrived
    }

    fn log(&self) -> MutexGuard<'_, ArrivalLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

macro_rules! servant {
    ($($call:ident $send:ident $sequence:ty, $elements:expr, $pattern:expr;)*) => {
        impl SeriesServant for Series {
            async fn begin(&self, elements: u32) -> Result<(), SystemException> {
                self.log().begin(elements);
                Ok(())
            }

            async fn arrivals(&self) -> Result<idl::Seen, SystemException> {
                let Arrivals { all, wrong_count: bad } = self.log().arrivals();
                let arrival = |Arrival { sent, arrived, number }| idl::Arrival { sent, arrived, number };
                Ok(idl::Seen { all: all.into_iter().map(arrival).collect(), bad })
            }

            $(
                async fn $call(&self, sent: u64, number: u32, s: $sequence) -> Result<u64, SystemException> {
                    Ok(self.record(sent, number, &$elements(s)?, $pattern))
                }

                async fn $send(&self, sent: u64, number: u32, s: $sequence) -> Result<(), SystemException> {
                    self.record(sent, number, &$elements(s)?, $pattern);
                    Ok(())
                }
            )*
        }
    };
}

servant! {
    call_short send_short Seq<i16>, Ok::<_, SystemException>, short;
    call_long send_long Seq<i32>, Ok::<_, SystemException>, long;
    call_float send_float Seq<f32>, Ok::<_, SystemException>, float;
    call_double send_double Seq<f64>, Ok::<_, SystemException>, double;
    call_record send_record &[AlignedRecord], Ok::<_, SystemException>, aligned;
    call_padded send_padded &[PaddedRecord], Ok::<_, SystemException>, padded;
    call_any send_any &Any, Any::get::<Vec<AlignedRecord>>, aligned;
}

// The test pattern: the elements at index `i` of messages. It is the same for the ORBs of all peers.

fn short(i: usize) -> i16 {
    (i * 31 + 7) as i16
}

fn long(i: usize) -> i32 {
    (i * 65_537 + 7) as i32
}

fn float(i: usize) -> f32 {
    i as f32 * 0.5 - 7.0
}

fn double(i: usize) -> f64 {
    i as f64 * 0.25 - 7.0
}

fn aligned(i: usize) -> AlignedRecord {
    AlignedRecord {
        d: double(i),
        e: -double(i),
        l: long(i),
        f: float(i),
        s: short(i),
        t: !short(i),
        m: !long(i),
    }
}

fn padded(i: usize) -> PaddedRecord {
    PaddedRecord { s: short(i), d: double(i), t: !short(i), l: long(i), o: i as u8, f: float(i) }
}
