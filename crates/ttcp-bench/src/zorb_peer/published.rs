//! The servants of the interfaces of the published experiments, so that the original clients of these
//! experiments can be run against this server.
//!
//! These clients send sequences between calls of `start_timer` and `stop_timer`. The server measures the
//! throughput, and prints it as a line on stderr.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use zorb::Servant;
use zorb::prelude::*;

use super::idl::published::{
    BinStruct, TtcpSequenceRef, TtcpSequenceServant, TtcpThroughputRef, TtcpThroughputServant,
};

/// Returns the keys of the objects, and their servants. The original clients use the last key.
pub(super) fn servants() -> [(&'static str, Servant); 3] {
    [
        ("ttcp_sequence", Servant::of::<TtcpSequenceRef, _>(FloodTimer::default())),
        ("ttcp_throughput", Servant::of::<TtcpThroughputRef, _>(FloodTimer::default())),
        ("TTCP_IIOP_test", Servant::of::<TtcpSequenceRef, _>(FloodTimer::default())),
    ]
}

/// The sequences that were received since the timer was started.
struct Flood {
    started: Instant,
    bytes: u64,
    calls: u64,
}

impl Default for Flood {
    fn default() -> Self {
        Flood { started: Instant::now(), bytes: 0, calls: 0 }
    }
}

/// A servant that counts the bytes of sequences, and measures the time in which they arrive.
#[derive(Default)]
struct FloodTimer {
    flood: Mutex<Flood>,
}

impl FloodTimer {
    fn add<T>(&self, items: &[T], item_bytes: usize) -> Result<(), SystemException> {
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        flood.bytes += (items.len() * item_bytes) as u64;
        flood.calls += 1;
        Ok(())
    }
}

fn format_flood(flood: &Flood, seconds: f64) -> String {
    let rate = flood.bytes as f64 * 8.0 / seconds / 1e6;
    format!("ttcp: {} bytes in {seconds:.6} s, {rate:.1} Mbit/s, {} calls", flood.bytes, flood.calls)
}

impl TtcpSequenceServant for FloodTimer {
    async fn send_short_seq(&self, ttcp_seq: Seq<i16>) -> Result<(), SystemException> {
        self.add(&ttcp_seq, 2)
    }

    async fn send_long_seq(&self, ttcp_seq: Seq<i32>) -> Result<(), SystemException> {
        self.add(&ttcp_seq, 4)
    }

    async fn send_double_seq(&self, ttcp_seq: Seq<f64>) -> Result<(), SystemException> {
        self.add(&ttcp_seq, 8)
    }

    async fn send_char_seq(&self, ttcp_seq: Seq<Char>) -> Result<(), SystemException> {
        self.add(&ttcp_seq, 1)
    }

    async fn send_struct_seq(&self, ttcp_seq: &[BinStruct]) -> Result<(), SystemException> {
        self.add(ttcp_seq, 24)
    }

    async fn send_octet_seq(&self, ttcp_seq: Bytes) -> Result<(), SystemException> {
        self.add(&ttcp_seq, 1)
    }

    async fn start_timer(&self) -> Result<(), SystemException> {
        *self.flood.lock().unwrap_or_else(PoisonError::into_inner) = Flood::default();
        Ok(())
    }

    async fn stop_timer(&self) -> Result<(), SystemException> {
        let flood = std::mem::take(&mut *self.flood.lock().unwrap_or_else(PoisonError::into_inner));
        eprintln!("{}", format_flood(&flood, flood.started.elapsed().as_secs_f64()));
        Ok(())
    }
}

impl TtcpThroughputServant for FloodTimer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_rate_counts_the_bits_of_elements() {
        let flood = Flood { bytes: 64 << 20, calls: 512, ..Flood::default() };
        assert_eq!(format_flood(&flood, 0.5), "ttcp: 67108864 bytes in 0.500000 s, 1073.7 Mbit/s, 512 calls");
    }
}
