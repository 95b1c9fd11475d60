//! Floods of omniORB's client whose arguments the servant receives as streams.

use std::path::Path;
use std::process::Command;

use ttcp_bench::zorb_peer::Ttcp;
use ttcp_bench::zorb_peer::idl::TtcpRef;
use zorb::Orb;

use super::{RUN, corbaloc};
use test_support::peers::{Foreign, Process, Scratch};

/// Runs omniORB's client, which must succeed.
async fn flood(program: &Path, words: &[&str], target: &str, scratch: &Scratch) {
    let mut command = Command::new(program);
    command.arg("ttcp").args(words).args(["--ior", target]);
    let mut client = Process::start(command, scratch);
    let client = tokio::task::spawn_blocking(move || (client.end(RUN), client.output()));
    let (status, output) = client.await.expect("the client was waited for");
    assert!(status.is_some_and(|status| status.success()), "{words:?}\n{output}");
}

/// omniORB sends large messages in GIOP 1.2 fragments: they are read to their final place, not copied.
#[tokio::test]
async fn fragments_of_omniorb_are_not_copied() {
    let Some(program) = Foreign::OmniOrb.program("bench-client") else { return };
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.expect("a free port");
    let ttcp: TtcpRef = orb.activate_named("ttcp", Ttcp::default()).expect("the first of its name");
    let scratch = Scratch::new();
    let path = scratch.path("bench.ior");
    std::fs::write(&path, ttcp.to_string()).expect("a file in the scratch directory");
    let (messages, size) = (64, 1 << 20);
    let total = (messages * size).to_string();
    flood(&program, &["--size", &size.to_string(), "--total", &total], path.to_str().unwrap(), &scratch)
        .await;
    let stats = orb.stats();
    assert!(stats.bytes_in > messages * size && stats.messages_in > messages);
    // Copied are two headers per message, a window at the start of a stream, and one within it for each pause
    // of the sender.
    assert!(stats.bytes_copied_in < messages * 64 + 16 * 65_600, "{stats:?}");
}

/// The same interface with its data as a stream, which a client does not notice.
mod streamed {
    use std::sync::atomic::{AtomicU64, Ordering};

    use zorb::ByteStream;
    use zorb::prelude::*;

    zorb::idl! {
        interface Ttcp {
            typedef sequence<octet> OctetSeq;
            oneway void sendOctetSeq(@stream in OctetSeq s);
            unsigned long long sync();
            void ping();
        };
    }

    #[derive(Default)]
    pub struct Aligned {
        octets: AtomicU64,
    }

    impl TtcpServant for Aligned {
        async fn send_octet_seq(&self, s: ByteStream) -> Result<(), SystemException> {
            let page = s.into_aligned(4096, 4 << 20).await?;
            assert_eq!(page.as_ptr().addr() % 4096, 0);
            self.octets.fetch_add(page.len() as u64, Ordering::Relaxed);
            Ok(())
        }
        async fn sync(&self) -> Result<u64, SystemException> {
            Ok(self.octets.swap(0, Ordering::Relaxed))
        }
        async fn ping(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
}

/// If the servant takes the data as a stream, it is read into the pages that it requests.
#[tokio::test]
async fn fragments_of_omniorb_land_in_pages() {
    let Some(program) = Foreign::OmniOrb.program("bench-client") else { return };
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.expect("a free port");
    let servant = streamed::Aligned::default();
    let ttcp: streamed::TtcpRef = orb.activate_named("ttcp", servant).expect("the first of its name");
    let scratch = Scratch::new();
    let path = scratch.path("bench.ior");
    std::fs::write(&path, ttcp.to_string()).expect("a file in the scratch directory");
    let (messages, size) = (64, 1 << 20);
    let total = (messages * size).to_string();
    flood(&program, &["--size", &size.to_string(), "--total", &total], path.to_str().unwrap(), &scratch)
        .await;
    let stats = orb.stats();
    assert!(stats.bytes_in > messages * size && stats.messages_in > messages);
    // Of each message, only the part that identifies the stream is copied; of the first one a window.
    assert!(stats.bytes_copied_in < (stats.bytes_in / size + 4) * (17 << 10) + (64 << 10), "{stats:?}");
    assert!(orb.pool_stats().held < 4 << 20);
}

/// The same interface with its numbers as streams.
mod numbers {
    use std::sync::atomic::{AtomicU64, Ordering};

    use zorb::prelude::*;
    use zorb::{Char, Element, SeqStream};

    zorb::idl! {
        interface Ttcp {
            typedef sequence<char> CharSeq;
            typedef sequence<short> ShortSeq;
            typedef sequence<long> LongSeq;
            typedef sequence<double> DoubleSeq;
            oneway void sendCharSeq(@stream in CharSeq s);
            oneway void sendShortSeq(@stream in ShortSeq s);
            oneway void sendLongSeq(@stream in LongSeq s);
            oneway void sendDoubleSeq(@stream in DoubleSeq s);
            unsigned long long sync();
            void ping();
        };
    }

    #[derive(Default)]
    pub struct Streams {
        octets: AtomicU64,
    }

    impl Streams {
        /// The clients send `'a' + i % 26`.
        async fn take<T: Element>(
            &self,
            mut data: SeqStream<T>,
            wanted: impl Fn(u8) -> T,
        ) -> Result<(), SystemException> {
            let wanted: Vec<Vec<u8>> =
                (b'a'..=b'z').map(|letter| Seq::from([wanted(letter)]).as_bytes().to_vec()).collect();
            let mut at = 0;
            while let Some(chunk) = data.next().await {
                let chunk = chunk?;
                for item in chunk.as_bytes().chunks(size_of::<T>()) {
                    assert_eq!(item, wanted[at % 26], "element {at}");
                    at += 1;
                }
                self.octets.fetch_add(chunk.as_bytes().len() as u64, Ordering::Relaxed);
            }
            Ok(())
        }
    }

    impl TtcpServant for Streams {
        async fn send_char_seq(&self, s: SeqStream<Char>) -> Result<(), SystemException> {
            self.take(s, Char).await
        }
        async fn send_short_seq(&self, s: SeqStream<i16>) -> Result<(), SystemException> {
            self.take(s, i16::from).await
        }
        async fn send_long_seq(&self, s: SeqStream<i32>) -> Result<(), SystemException> {
            self.take(s, i32::from).await
        }
        async fn send_double_seq(&self, s: SeqStream<f64>) -> Result<(), SystemException> {
            self.take(s, f64::from).await
        }
        async fn sync(&self) -> Result<u64, SystemException> {
            Ok(self.octets.swap(0, Ordering::Relaxed))
        }
        async fn ping(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
}

/// Numbers of omniORB's client, in whole messages and in fragments, are received as streams.
#[tokio::test]
async fn numbers_of_omniorb_are_taken_as_streams() {
    let Some(program) = Foreign::OmniOrb.program("bench-client") else { return };
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.expect("a free port");
    let ttcp: numbers::TtcpRef =
        orb.activate_named("ttcp", numbers::Streams::default()).expect("the first of its name");
    let scratch = Scratch::new();
    let path = scratch.path("bench.ior");
    std::fs::write(&path, ttcp.to_string()).expect("a file in the scratch directory");
    for version in ["1.0", "1.1", "1.2"] {
        for element in ["char", "short", "long", "double"] {
            for size in [1 << 10, 100_000, 1 << 20] {
                let (size, total) = (size.to_string(), (4 * size).to_string());
                let words = ["--type", element, "--size", &size, "--total", &total];
                flood(&program, &words, &corbaloc(version, &path), &scratch).await;
            }
        }
    }
}
