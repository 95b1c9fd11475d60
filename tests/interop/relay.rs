//! A relay between two ORBs, which records the traffic and writes it as a capture.

use std::path::Path;
use std::sync::{Arc, Mutex};

use giop_codec::giop::MessageHeader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zorb::Bytes;

/// The port of servers in captures, where the dissector expects GIOP.
pub(crate) const PORT: u16 = 2809;
/// The port of the first client.
const CLIENT_PORT: u16 = 40_000;

/// A piece of data from one side.
struct Piece {
    connection: u16,
    from_client: bool,
    octets: Vec<u8>,
}

/// All traffic of relays, in order.
#[derive(Clone, Default)]
pub(crate) struct Traffic(Arc<Mutex<Vec<Piece>>>);

impl Traffic {
    /// Starts a relay to a port of this host for the lifetime of the test's runtime. Returns the port to
    /// connect to.
    pub(crate) async fn relay(&self, to: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let traffic = self.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let connection = traffic.open();
                let (client_in, client_out) = client.into_split();
                let (server_in, server_out) = server.into_split();
                tokio::spawn(traffic.clone().copy(connection, true, client_in, server_out));
                tokio::spawn(traffic.clone().copy(connection, false, server_in, client_out));
            }
        });
        port
    }

    /// Returns the number of a new connection.
    fn open(&self) -> u16 {
        let mut pieces = self.0.lock().unwrap();
        let connection = pieces.iter().map(|piece| piece.connection + 1).max().unwrap_or(0);
        pieces.push(Piece { connection, from_client: true, octets: Vec::new() });
        connection
    }

    async fn copy(
        self,
        connection: u16,
        from_client: bool,
        mut from: tokio::net::tcp::OwnedReadHalf,
        mut to: tokio::net::tcp::OwnedWriteHalf,
    ) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from.read(&mut buffer).await {
            let octets = buffer[..n].to_vec();
            self.0.lock().unwrap().push(Piece { connection, from_client, octets });
            if to.write_all(&buffer[..n]).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    }

    /// Returns the data that servers sent, by connection.
    #[allow(dead_code, reason = "not every test looks into it")]
    pub(crate) fn of_servers(&self) -> Vec<Bytes> {
        let pieces = self.0.lock().unwrap();
        let mut streams: Vec<Vec<u8>> = Vec::new();
        for piece in pieces.iter() {
            let connection = usize::from(piece.connection);
            streams.resize_with(streams.len().max(connection + 1), Vec::new);
            if !piece.from_client {
                streams[connection].extend(&piece.octets);
            }
        }
        streams.into_iter().map(Bytes::from).collect()
    }

    /// Adds a connection on which a client sends these bytes.
    pub(crate) fn add(&self, octets: &[u8]) {
        let connection = self.open();
        self.0.lock().unwrap().push(Piece { connection, from_client: true, octets: octets.to_vec() });
    }

    /// Returns the messages of each connection and direction, as ports and headers, which the dissector has
    /// to find.
    pub(crate) fn messages(&self) -> Vec<(u16, bool, Vec<MessageHeader>)> {
        let pieces = self.0.lock().unwrap();
        let connections = pieces.iter().map(|piece| piece.connection + 1).max().unwrap_or(0);
        let mut found = Vec::new();
        for (connection, from_client) in (0..connections).flat_map(|c| [(c, true), (c, false)]) {
            let sent = pieces.iter().filter(|p| (p.connection, p.from_client) == (connection, from_client));
            let stream: Vec<u8> = sent.flat_map(|piece| piece.octets.clone()).collect();
            let (mut headers, mut rest) = (Vec::new(), &stream[..]);
            while !rest.is_empty() {
                let header = MessageHeader::decode(rest.first_chunk().unwrap()).unwrap();
                rest = &rest[MessageHeader::LEN + header.size as usize..];
                headers.push(header);
            }
            found.push((CLIENT_PORT + connection, from_client, headers));
        }
        found
    }

    /// Writes a capture of IPv4 packets, one for each piece of up to 1,400 bytes.
    pub(crate) fn write(&self, path: &Path) {
        let pieces = self.0.lock().unwrap();
        let mut file = Vec::new();
        // Magic number, version 2.4, time zone, accuracy, snapshot length, link type: IPv4.
        for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 1 << 16, 228] {
            file.extend(word.to_ne_bytes());
        }
        let mut sent: Vec<[u32; 2]> = Vec::new();
        let mut time = 0_u32;
        for piece in pieces.iter() {
            let connection = usize::from(piece.connection);
            if sent.len() == connection {
                // The handshake: SYN, SYN with ACK, ACK.
                for (from_client, flags, numbers) in
                    [(true, 0x02, [0, 0]), (false, 0x12, [0, 1]), (true, 0x10, [1, 1])]
                {
                    packet(&mut file, &mut time, piece.connection, from_client, flags, numbers, &[]);
                }
                sent.push([1, 1]);
            }
            for octets in piece.octets.chunks(1400) {
                let (mine, other) = if piece.from_client { (0, 1) } else { (1, 0) };
                let numbers = [sent[connection][mine], sent[connection][other]];
                packet(&mut file, &mut time, piece.connection, piece.from_client, 0x18, numbers, octets);
                sent[connection][mine] += octets.len() as u32;
            }
        }
        std::fs::write(path, file).unwrap();
    }
}

fn packet(
    file: &mut Vec<u8>,
    time: &mut u32,
    connection: u16,
    from_client: bool,
    flags: u8,
    [sequence, acknowledged]: [u32; 2],
    octets: &[u8],
) {
    *time += 1;
    let len = 40 + octets.len() as u32;
    for word in [*time / 1_000_000, *time % 1_000_000, len, len] {
        file.extend(word.to_ne_bytes());
    }
    let (client, server) = ((CLIENT_PORT + connection, 1), (PORT, 2));
    let (from, to) = if from_client { (client, server) } else { (server, client) };
    // IPv4 without options and checksum: TCP from 10.0.0.1 to 10.0.0.2, or back.
    file.extend([0x45, 0]);
    file.extend((len as u16).to_be_bytes());
    file.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.1, 10, 0, 0, to.1]);
    // TCP without options and checksum.
    file.extend(from.0.to_be_bytes());
    file.extend(to.0.to_be_bytes());
    file.extend(sequence.to_be_bytes());
    file.extend(acknowledged.to_be_bytes());
    file.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    file.extend(octets);
}
