//! The server of plain sockets, which are the baseline. It has one thread per connection.

use std::io;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use socket2::{Domain, SockRef, Socket, Type};

use super::client::invalid;
use super::conn::{CALL_HEADER_BYTES, Header, Incoming, call_header, kind, send, set_buffer_sizes};
use super::{RawServerArgs, series};
use crate::reference::announce_ready;
use crate::series::ArrivalLog;
use crate::test_loops::{self, Tally};

const MAX_BATCH_BYTES: usize = 16_384;

/// Serves until killed. Prints `READY HOST:PORT` when it is ready for calls.
pub fn server(args: &RawServerArgs) -> anyhow::Result<()> {
    args.parent_watch.start()?;
    let address = SocketAddrV4::new(args.host, args.port);
    let listener = listen(address, args.sockbuf).with_context(|| format!("cannot listen on {address}"))?;
    announce_ready(listener.local_addr()?)?;
    // Operations are called through function pointers, because the skeletons of ORBs do so too.
    let operations = Arc::new(operations());
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(e) => return Err(e).context("cannot accept a connection"),
        };
        stream.set_nodelay(true)?;
        let (operations, batches, checks) = (operations.clone(), args.batch, args.check);
        thread::Builder::new().name("connection".into()).spawn(move || {
            if let Err(e) = serve(&stream, &operations, batches, checks) {
                eprintln!("raw-server: {e}");
            }
        })?;
    }
}

/// The operations of the large interfaces. The index of each is its message kind.
type Operations = Vec<Option<fn(&mut Tally)>>;

fn operations() -> Operations {
    let mut all: Operations = Vec::new();
    for (operation_count, oneway) in [(100, false), (100, true), (1_000, false), (1_000, true)] {
        let kinds = kind::operations(operation_count, oneway);
        all.resize(kinds.start as usize, None);
        all.resize(kinds.end as usize - 1, Some(count_other));
        all.push(Some(count_last));
    }
    all
}

fn count_last(tally: &mut Tally) {
    tally.last += 1;
}

fn count_other(tally: &mut Tally) {
    tally.others += 1;
}

fn listen(address: SocketAddrV4, sockbuf: Option<u64>) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    // The sizes are set before `listen`, because they determine the TCP window scale of accepted sockets.
    set_buffer_sizes(SockRef::from(&socket), sockbuf)?;
    socket.bind(&address.into())?;
    socket.listen(64)?;
    Ok(socket.into())
}

fn serve(stream: &TcpStream, operations: &Operations, batches: bool, checks: bool) -> io::Result<()> {
    let mut incoming = Incoming::new(stream);
    let mut delayed_replies = Vec::with_capacity(MAX_BATCH_BYTES);
    let mut log = ArrivalLog::default();
    let (mut byte_count, mut tally) = (0u64, Tally::default());
    let operation = |kind: u32| {
        let operation = operations.get(kind as usize).copied().flatten();
        operation.ok_or_else(|| invalid(format!("unknown message kind {kind}")))
    };
    while let Some(header) = incoming.read_header()? {
        let len = header.len as usize;
        if header.kind == kind::ONEWAY {
            let payload = incoming.read_new_buffer(len)?;
            if checks {
                exit_if_different(&payload);
            }
            byte_count += payload.len() as u64;
            continue;
        }
        if header.kind == kind::SERIES_ONEWAY {
            series::record_message(&mut log, &incoming.read_new_buffer(len)?)?;
            continue;
        }
        if kind::is_oneway(header.kind) {
            incoming.read_new_buffer(len)?;
            operation(header.kind)?(&mut tally);
            continue;
        }
        let id = incoming.read_id()?;
        let payload = incoming.read_new_buffer(len)?;
        let reply = |bytes: &[u8]| {
            send(stream, &call_header(Header { len: bytes.len() as u32, ..header }, id), bytes)
        };
        match header.kind {
            kind::SYNC => reply(&std::mem::take(&mut byte_count).to_ne_bytes())?,
            kind::PING if batches => {
                delayed_replies.extend_from_slice(&call_header(header, id));
                if incoming.is_drained() || delayed_replies.len() + CALL_HEADER_BYTES > MAX_BATCH_BYTES {
                    send(stream, &delayed_replies, &[])?;
                    delayed_replies.clear();
                }
            }
            kind::BEGIN | kind::SERIES_CALL | kind::ARRIVALS => {
                reply(&series::reply(header.kind, &mut log, &payload)?)?;
            }
            kind::PING | kind::ECHO => reply(&payload)?,
            kind::TALLY => {
                let Tally { last, others } = std::mem::take(&mut tally);
                reply(&[last.to_ne_bytes(), others.to_ne_bytes()].concat())?;
            }
            other => {
                operation(other)?(&mut tally);
                reply(&payload)?;
            }
        }
    }
    Ok(())
}

/// Exits if a byte differs from the test pattern. The client then fails too.
fn exit_if_different(payload: &[u8]) {
    let wrong = payload.iter().enumerate().position(|(i, byte)| *byte != test_loops::pattern(i));
    if let Some(i) = wrong {
        eprintln!("raw-server: {}", test_loops::format_mismatch("octet", i, payload.len()));
        std::process::exit(test_loops::EXIT_MISMATCH);
    }
}
