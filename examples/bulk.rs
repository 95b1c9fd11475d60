//! Bulk data: bytes and doubles are transferred at the speed of the socket, because they are not copied.
//!
//! `sequence<octet>` is `Bytes` and `sequence<double>` is `Seq<f64>`: reference-counted buffers. The sender
//! passes the buffer itself to the socket. The receiver's servant gets a view of the buffer into which the
//! socket was read. Passing a clone increments a counter, without a copy.
//!
//! ```text
//! cargo run --release --example bulk             # 256 MiB of each kind
//! cargo run --release --example bulk -- 2048     # 2 GiB
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zorb::prelude::*;

zorb::idl! {
    typedef sequence<octet> Octets;
    typedef sequence<double> Samples;

    interface Sink {
        oneway void octets(in Octets data);
        oneway void samples(in Samples data);
        /// Returns the number of bytes received since the previous call, after all oneways before it.
        unsigned long long received();
    };
}

#[derive(Default)]
struct Counter {
    received: AtomicU64,
}

impl SinkServant for Counter {
    async fn octets(&self, data: Bytes) -> Result<(), SystemException> {
        self.received.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn samples(&self, data: Seq<f64>) -> Result<(), SystemException> {
        // `data` derefs to `[f64]`. Keeping it, or a clone, keeps the receive buffer; the next message gets
        // another.
        self.received.fetch_add(size_of_val::<[f64]>(&data) as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn received(&self) -> Result<u64, SystemException> {
        Ok(self.received.swap(0, Ordering::Relaxed))
    }
}

fn main() -> Result<(), BoxError> {
    let mebibytes: u64 = match std::env::args().nth(1) {
        Some(argument) => {
            argument.parse().map_err(|_| format!("`{argument}` is no number of MiB; usage: bulk [MIB]"))?
        }
        None => 256,
    };

    // The server has a thread and a runtime of its own, so that both sides work at the same time.
    let (ready, reference) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || -> Result<(), BoxError> {
        runtime()?.block_on(async {
            let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
            let sink: SinkRef = orb.activate(Counter::default())?;
            ready.send(sink.to_string())?;
            // Also completes when the client has ended.
            let _ = ended.await;
            orb.shutdown().await;
            println!("receiver: {:?}", orb.pool_stats());
            Ok(())
        })
    });

    let reference = reference.recv()?;
    runtime()?.block_on(async {
        let orb = Orb::builder().build().await?;
        let sink: SinkRef = orb.resolve(&reference).await?;
        sending_again_is_free();
        for size in [64 << 10, 1 << 20] {
            let octets = Bytes::from(vec![0x5a; size]);
            // `octets.clone()` only increments a counter.
            let sent = flood(&sink, mebibytes, size, || sink.octets(octets.clone())).await?;
            println!("octets,  {:>4} KiB a message: {sent}", size >> 10);
        }
        for size in [64 << 10, 1 << 20] {
            let samples: Seq<f64> = (0..size / 8).map(|i| i as f64).collect();
            let sent = flood(&sink, mebibytes, size, || sink.samples(samples.clone())).await?;
            println!("doubles, {:>4} KiB a message: {sent}", size >> 10);
        }
        orb.shutdown().await;
        Ok::<_, BoxError>(())
    })?;
    drop(end);
    server.join().map_err(|_| "the server panicked")??;
    Ok(())
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// A clone of `Bytes` or `Seq` shares the memory, and so does the result of `From<Vec<_>>`.
fn sending_again_is_free() {
    let numbers = vec![1.0; 1 << 20];
    let at = numbers.as_ptr();
    let seq: Seq<f64> = numbers.into();
    let clone = seq.clone();
    println!("Vec -> Seq -> clone: the same 8 MiB in memory: {}", at == seq.as_ptr() && at == clone.as_ptr());

    let octets = Bytes::from(vec![0; 64 << 20]);
    let start = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(octets.clone());
    }
    println!("a clone of 64 MiB of Bytes takes {:?}", start.elapsed() / 1000);
}

/// Sends that many MiB in messages of `size` bytes, waits until the servant has received all, and returns the
/// throughput.
async fn flood<F>(
    sink: &SinkRef,
    mebibytes: u64,
    size: usize,
    mut send: impl FnMut() -> F,
) -> Result<String, BoxError>
where
    F: Future<Output = Result<(), SystemException>>,
{
    let messages = (mebibytes << 20).div_ceil(size as u64);
    // The first messages find cold buffers.
    for _ in 0..messages / 10 {
        send().await?;
    }
    sink.received().await?;

    let start = Instant::now();
    for _ in 0..messages {
        // The queue is bounded: a sender that is faster than the socket waits here.
        send().await?;
    }
    let received = sink.received().await?;
    let seconds = start.elapsed().as_secs_f64();
    if received != messages * size as u64 {
        return Err(format!("{received} octets arrived of {}", messages * size as u64).into());
    }
    Ok(format!("{:6.1} Gbit/s", received as f64 * 8.0 / seconds / 1e9))
}
