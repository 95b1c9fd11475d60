//! The server of the baseline: one thread per connection.

use std::io;
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use socket2::{Domain, SockRef, Socket, Type};

use super::conn::{CALL, Header, Incoming, call, kind, send, tune};
use super::{RawServerArgs, series};
use crate::reference::ready;
use crate::series::ArrivalLog;
use crate::test_loops::{self, Tally};

/// Maximum size of gathered replies to pings, bytes.
const GATHERED: usize = 16_384;

/// Serves until killed. Prints `READY HOST:PORT` when it is ready for calls.
///
/// # Errors
/// The port is not available, or accepting fails.
pub fn server(args: &RawServerArgs) -> anyhow::Result<()> {
    args.lifeline.watch()?;
    let address = SocketAddrV4::new(args.host, args.port);
    let listener = listen(address, args.sockbuf).with_context(|| format!("cannot listen on {address}"))?;
    ready(listener.local_addr()?)?;
    // Called through pointers, like a skeleton's operations.
    let operations = Arc::new(operations());
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(e) => return Err(e).context("cannot accept"),
        };
        stream.set_nodelay(true)?;
        let (operations, batch, check) = (operations.clone(), args.batch, args.check);
        thread::Builder::new().name("connection".into()).spawn(move || {
            if let Err(e) = serve(&stream, &operations, batch, check) {
                eprintln!("raw-server: {e}");
            }
        })?;
    }
}

/// The operations by the kinds of their messages.
type Operations = Vec<Option<fn(&mut Tally)>>;

fn operations() -> Operations {
    let mut all: Operations = Vec::new();
    for (operations, oneway) in [(100, false), (100, true), (1_000, false), (1_000, true)] {
        let kinds = kind::wide(operations, oneway);
        all.resize(kinds.start as usize, None);
        all.resize(kinds.end as usize - 1, Some(other));
        all.push(Some(last));
    }
    all
}

fn last(tally: &mut Tally) {
    tally.last += 1;
}

fn other(tally: &mut Tally) {
    tally.others += 1;
}

fn listen(address: SocketAddrV4, sockbuf: Option<u64>) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    // Before listen: accepted sockets inherit the sizes, and the window scale follows from them.
    tune(SockRef::from(&socket), sockbuf)?;
    socket.bind(&address.into())?;
    socket.listen(64)?;
    Ok(socket.into())
}

fn serve(stream: &TcpStream, operations: &Operations, batch: bool, check: bool) -> io::Result<()> {
    let mut incoming = Incoming::new(stream);
    let mut held = Vec::with_capacity(GATHERED);
    let mut notes = ArrivalLog::default();
    let (mut count, mut tally) = (0u64, Tally::default());
    let operation = |kind: u32| operations.get(kind as usize).copied().flatten();
    let none = |kind: u32| io::Error::new(io::ErrorKind::InvalidData, format!("message kind {kind}"));
    while let Some(header) = incoming.header()? {
        let len = header.len as usize;
        if header.kind == kind::ONEWAY {
            let payload = incoming.fresh(len)?;
            if check {
                demand(&payload);
            }
            count += payload.len() as u64;
            continue;
        }
        if header.kind == kind::SEND {
            series::note(&mut notes, &incoming.fresh(len)?)?;
            continue;
        }
        if kind::is_oneway(header.kind) {
            incoming.fresh(len)?;
            operation(header.kind).ok_or_else(|| none(header.kind))?(&mut tally);
            continue;
        }
        let id = incoming.id()?;
        let payload = incoming.fresh(len)?;
        match header.kind {
            kind::SYNC => {
                let count = std::mem::take(&mut count).to_ne_bytes();
                send(stream, &call(Header { len: count.len() as u32, ..header }, id), &count)?;
            }
            kind::PING if batch => {
                held.extend_from_slice(&call(header, id));
                if incoming.is_drained() || held.len() + CALL > GATHERED {
                    send(stream, &held, &[])?;
                    held.clear();
                }
            }
            kind::BEGIN | kind::CALL | kind::ARRIVALS => {
                let reply = series::reply(header.kind, &mut notes, &payload)?;
                send(stream, &call(Header { len: reply.len() as u32, ..header }, id), &reply)?;
            }
            kind::PING | kind::ECHO => send(stream, &call(header, id), &payload)?,
            kind::TALLY => {
                let Tally { last, others } = std::mem::take(&mut tally);
                let counts = [last.to_ne_bytes(), others.to_ne_bytes()].concat();
                send(stream, &call(Header { len: counts.len() as u32, ..header }, id), &counts)?;
            }
            number => {
                operation(number).ok_or_else(|| none(number))?(&mut tally);
                send(stream, &call(header, id), &payload)?;
            }
        }
    }
    Ok(())
}

/// Ends the process if a byte differs from what was sent. The client then fails.
fn demand(payload: &[u8]) {
    let wrong = payload.iter().enumerate().find(|(i, octet)| **octet != test_loops::pattern(*i));
    if let Some((i, _)) = wrong {
        eprintln!("raw-server: {}", test_loops::format_mismatch("octet", i, payload.len()));
        std::process::exit(test_loops::EXIT_MISMATCH);
    }
}
