//! Results need the same memory regardless of their length.

use giop_codec::cdr::CdrEncode as _;
use giop_codec::giop::{MessageHeader, MessageType, ResponseFlags};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::ends::{read, request, stranger};
use super::*;

/// Reads and discards a reply. Returns its numbers of bytes and messages.
async fn skip(stream: &mut TcpStream, memory: &mut [u8]) -> (usize, usize) {
    let (mut octets, mut messages) = (0, 0);
    loop {
        let mut header = [0; 12];
        stream.read_exact(&mut header).await.unwrap();
        let header = MessageHeader::decode(&header).unwrap();
        assert_eq!(header.kind, if messages == 0 { MessageType::Reply } else { MessageType::Fragment });
        let size = header.size as usize;
        assert!(12 + size <= 64 * 1024, "{size} octets in a piece");
        stream.read_exact(&mut memory[..size]).await.unwrap();
        (octets, messages) = (octets + size, messages + 1);
        if !header.more_fragments {
            return (octets, messages);
        }
    }
}

#[test]
fn sixty_four_mebibytes_take_constant_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let over = runtime.block_on(Over::tcp());
    let mut stream = runtime.block_on(stranger(&over));
    let mut memory = vec![0; 64 * 1024];
    let mut ask = |message: Vec<u8>| {
        let (mut octets, mut messages) = (0, 0);
        let info = allocation_counter::measure(|| {
            (octets, messages) = runtime.block_on(async {
                stream.write_all(&message).await.unwrap();
                skip(&mut stream, &mut memory).await
            });
        });
        (info.bytes_max, octets, messages)
    };
    let mut most = Vec::new();
    for mib in [4, 64] {
        let len = mib << 20;
        let (bytes, octets, messages) = ask(read(2, ResponseFlags::Target, len));
        assert!((len..len + 100_000).contains(&(octets as u64)), "{octets}");
        assert!(messages as u64 >= mib * 16, "{messages}");
        most.push(bytes);
    }
    for rows in [10_000, 150_000u32] {
        let message = request(4, ResponseFlags::Target, "rows", |e| {
            rows.encode(e).unwrap();
            false.encode(e).unwrap();
        });
        let (bytes, octets, messages) = ask(message);
        assert!(octets > 150 * rows as usize && messages > octets / 70_000, "{octets} {messages}");
        most.push(bytes);
    }
    assert!(most.iter().all(|most| *most < 1 << 20), "{most:?}");
    assert_eq!(over.alive(), 0);
}
