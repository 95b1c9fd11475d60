//! Eviction of connections at a full endpoint.

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use test_support::transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::floods::until;
use super::*;

const PLACES: usize = 6;

/// A full endpoint with a given number of slots, in all or per address; its reference, and clients that have
/// called it.
struct Full {
    orb: Orb,
    reference: String,
    client: Orb,
    desk: DeskRef,
}

impl Full {
    async fn new(places: (usize, usize), silence: Duration) -> Full {
        let orb = transport::builder().listen("iiop://127.0.0.1:0").max_connections(places.0, places.1);
        let orb = orb.evict_idle_after(silence).build().await.unwrap();
        let here: DeskRef = orb.activate_named("desk", Servant::default()).unwrap();
        let (client, desk) = calls(&here.to_string()).await;
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        Full { orb, reference: here.to_string(), client, desk }
    }

    async fn stranger(&self, says: &[u8]) -> TcpStream {
        let before = self.orb.stats().bytes_in;
        let mut stream = TcpStream::connect(&self.orb.endpoints()[0]).await.unwrap();
        stream.write_all(says).await.unwrap();
        // Waits until the server has received it, so that strangers arrive one after the other.
        until(|| self.orb.stats().bytes_in >= before + says.len() as u64).await;
        stream
    }

    fn displaced(&self) -> u32 {
        self.orb.stats().limit_hits.of(Limit::Evicted)
    }

    async fn end(self) {
        assert_eq!(self.desk.add(3, 4).await.unwrap(), 7, "who has called before was not disturbed");
        assert_eq!(self.client.stats().limit_hits.of(Limit::Evicted), 0);
        self.client.shutdown().await;
        self.orb.shutdown().await;
    }
}

/// Returns a separate client.
async fn calls(reference: &str) -> (Orb, DeskRef) {
    let client = transport::builder().build().await.unwrap();
    let desk = client.resolve_unchecked(reference).await.unwrap();
    (client, desk)
}

/// Returns what is received until the end of the stream.
async fn told(mut stream: TcpStream) -> Vec<u8> {
    let mut came = Vec::new();
    let _ =
        tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut came)).await.expect("it ends");
    came
}

#[tokio::test]
async fn full_endpoint_evicts_the_longest_idle_connection() {
    for (places, limit) in
        [((PLACES, 100), Limit::Connections), ((100, PLACES), Limit::ConnectionsPerAddress)]
    {
        let full = Full::new(places, Duration::ZERO).await;
        let mut silent = std::collections::VecDeque::new();
        for _ in 1..PLACES {
            silent.push_back(full.stranger(b"GIOP\x01\x02").await);
        }
        let mut newcomers = Vec::new();
        for round in 1..PLACES as u32 {
            let (client, desk) = calls(&full.reference).await;
            assert_eq!(desk.add(1, 1).await.unwrap(), 2);
            newcomers.push((client, desk));
            assert_eq!(full.displaced(), round);
            // The oldest one, which is notified that none of its requests was executed.
            let came = told(silent.pop_front().unwrap()).await;
            assert!(came.len() == 12 && came.starts_with(b"GIOP") && came[7] == 5, "{came:?}");
        }
        // All of them have made calls, so none is evicted.
        let (late, desk) = calls(&full.reference).await;
        desk.add(1, 1).await.unwrap_err();
        assert!(full.orb.stats().limit_hits.of(limit) > 0);
        assert_eq!(full.displaced(), PLACES as u32 - 1);
        for (client, desk) in newcomers {
            assert_eq!(desk.add(2, 2).await.unwrap(), 4);
            assert_eq!(client.open_connections(), 1);
            client.shutdown().await;
        }
        late.shutdown().await;
        full.end().await;
    }
}

#[tokio::test]
async fn connection_that_sends_its_first_message_is_not_evicted() {
    let full = Full::new((3, 100), Duration::ZERO).await;
    // Far more than the minimum rate requires during a test, and far from complete.
    let header = MessageHeader::new(Version::V1_2, ByteOrder::Big, MessageType::Request);
    let mut octets = MessageHeader { size: 15 << 20, ..header }.encode().to_vec();
    octets.resize(14 << 20, 0);
    let sends = full.stranger(&octets).await;
    let silent = full.stranger(b"GIOP").await;
    let (client, desk) = calls(&full.reference).await;
    assert_eq!(desk.add(1, 1).await.unwrap(), 2);
    assert!(!told(silent).await.is_empty(), "he came later, and has said less");
    assert_eq!(full.displaced(), 1);
    until(|| full.orb.open_connections() == 3).await;
    drop(sends);
    client.shutdown().await;
    full.end().await;
}

#[tokio::test]
async fn new_connection_is_not_evicted_before_the_idle_minimum() {
    let full = Full::new((2, 100), Duration::from_secs(3600)).await;
    let silent = full.stranger(b"GIOP").await;
    let (client, desk) = calls(&full.reference).await;
    desk.add(1, 1).await.unwrap_err();
    assert!(full.orb.stats().limit_hits.of(Limit::Connections) > 0);
    assert_eq!((full.displaced(), full.orb.open_connections()), (0, 2));
    drop(silent);
    client.shutdown().await;
    full.end().await;
}
