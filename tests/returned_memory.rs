//! Memory of large messages is returned to the system. The allocator's state belongs to the process, so this
//! test has a process of its own.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zorb::prelude::*;

zorb::idl! {
    typedef sequence<octet> Octets;
    interface Store {
        void put(in Octets octets);
        Octets all();
    };
}

/// All its replies share this result.
struct Shelf(Bytes);

impl StoreServant for Shelf {
    async fn put(&self, _: Bytes) -> Result<(), SystemException> {
        Ok(())
    }

    async fn all(&self) -> Result<Bytes, SystemException> {
        Ok(self.0.clone())
    }
}

const MESSAGE: usize = 15 << 20;

/// More than exist at a time.
const CONNECTIONS: usize = 16;

/// Memory that remains for threads, windows and small buffers.
const STAYS: usize = 48 << 20;

/// Returns the resident bytes of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Returns a request of GIOP 1.0 for the object `store`.
fn request(operation: &str, arguments: &[u8]) -> Vec<u8> {
    let mut body =
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x05store\x00\x00\x00".to_vec();
    body.extend((operation.len() as u32 + 1).to_be_bytes());
    body.extend(operation.as_bytes());
    body.resize((body.len() + 1).next_multiple_of(4), 0);
    body.extend([0; 4]);
    body.extend(arguments);
    let header = MessageHeader::new(Version::V1_0, ByteOrder::Big, MessageType::Request);
    [&MessageHeader { size: body.len() as u32, ..header }.encode()[..], &body].concat()
}

/// Makes a call over a separate connection, and discards the reply as it arrives, so that it takes no memory
/// here.
async fn call(address: String, request: Bytes) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&request).await.unwrap();
    let mut buffer = [0; 16 << 10];
    stream.read_exact(&mut buffer[..12]).await.unwrap();
    assert_eq!(&buffer[..4], b"GIOP");
    let size = u32::from_ne_bytes(buffer[8..12].try_into().unwrap()) as usize;
    let mut left = size;
    while left > 0 {
        let some = left.min(buffer.len());
        left -= stream.read(&mut buffer[..some]).await.unwrap();
    }
    size
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_large_messages_goes_back_to_the_system() {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let shelf = Shelf(vec![7; MESSAGE].into());
    let _store: StoreRef = orb.activate_named("store", shelf).unwrap();
    let address = orb.endpoints()[0].clone();
    let mut octets = (MESSAGE as u32).to_be_bytes().to_vec();
    octets.resize(4 + MESSAGE, 7);
    let put = Bytes::from(request("put", &octets));
    drop(octets);
    let all = Bytes::from(request("all", &[]));
    // From now on the allocator takes buffers of this size from its arenas, as in any process that has freed
    // one.
    drop(vec![7_u8; 31 << 20]);
    let before = resident();
    for (request, reply) in [(put, 0), (all, MESSAGE)] {
        let calls: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(call(address.clone(), request.clone()))).collect();
        for call in calls {
            assert!(call.await.unwrap() >= reply);
        }
    }
    let mut stays = resident().saturating_sub(before);
    for _ in 0..600 {
        if stays < STAYS {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        stays = resident().saturating_sub(before);
    }
    eprintln!("{} MiB stay; the pool holds {} KiB", stays >> 20, orb.pool_stats().held >> 10);
    assert!(stays < STAYS, "{} MiB stay", stays >> 20);
    orb.shutdown().await;
}
