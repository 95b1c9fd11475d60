//! The client of plain sockets, which are the baseline. It has one thread with one connection, except in the
//! test `clients`.

use std::cell::RefCell;
use std::future::ready;
use std::io;
use std::net::{SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use socket2::{Domain, SockRef, Socket, Type};

use super::RawClientArgs;
use super::conn::{
    CALL_HEADER_BYTES, HEADER_BYTES, Header, Incoming, call_header, kind, send, set_buffer_sizes,
};
use super::series::Series;
use crate::blocking::complete;
use crate::many_clients::{self, ClientSlot};
use crate::report::{Line, Report};
use crate::test_loops::{self, Tally};
use crate::work::Test;

const NAME: &str = "raw";

/// Runs the test against the server at `args.host` and `args.port`.
///
/// # Errors
/// The connection cannot be opened or is lost, or a reply does not match its request.
pub fn client(args: &RawClientArgs) -> anyhow::Result<Report> {
    let work = &args.work;
    work.check()?;
    let address = SocketAddrV4::new(args.host, args.port);
    let sockbuf = work.sockbuf;
    match work.test {
        Test::Clients => {
            return many_clients::clients(NAME, work, move |slot| run_slot(slot, address, sockbuf));
        }
        Test::Objects => bail!("sockets have no objects"),
        _ => {}
    }
    let stream = connect(address, sockbuf)?;
    let payload: Vec<u8> = (0..work.payload_bytes() as usize).map(test_loops::pattern).collect();
    let client = Client { stream: &stream, incoming: RefCell::new(Incoming::new(&stream)) };
    match work.test {
        Test::Ttcp => {
            let header = Header { kind: kind::ONEWAY, len: payload.len() as u32 }.to_bytes();
            let flood = || ready(send(&stream, &header, &payload));
            complete(test_loops::ttcp(NAME, work, flood, || ready(client.sync())))
        }
        Test::Ping => {
            complete(test_loops::latency(NAME, work, || ready(client.call(kind::PING, &[], &mut []))))
        }
        Test::Demux => {
            let last = kind::operations(100, false).end - 1;
            complete(test_loops::latency(NAME, work, || ready(client.call(last, &[], &mut []))))
        }
        Test::Last => {
            let last = kind::operations(work.operations, work.oneway).end - 1;
            if work.oneway {
                let header = Header { kind: last, len: 0 }.to_bytes();
                let call = || ready(send(&stream, &header, &[]));
                return complete(test_loops::last(NAME, work, call, || ready(client.tally())));
            }
            let call = || ready(client.call(last, &[], &mut []));
            complete(test_loops::last(NAME, work, call, || ready(client.tally())))
        }
        Test::Echo => {
            let mut echoed = vec![0; payload.len()];
            let echo = || ready(client.call(kind::ECHO, &payload, &mut echoed));
            let report = complete(test_loops::latency(NAME, work, echo))?;
            ensure!(echoed == payload, "the echo differs from what was sent");
            Ok(report)
        }
        Test::Pipeline => {
            client.pipeline(work.depth, work.calls() / 10, args.batch)?;
            let time = client.pipeline(work.depth, work.calls(), args.batch)?;
            Ok(Report::pipeline(NAME, work, Some(args.batch), time))
        }
        Test::Series => {
            let series = Series::new(&client, work.series)?;
            Ok(Report(Line::Series(complete(crate::series::run(NAME, work, &series))?)))
        }
        Test::Objects | Test::Clients => bail!("the test '{}' cannot run over one connection", work.test),
    }
}

fn connect(address: SocketAddrV4, sockbuf: Option<u64>) -> anyhow::Result<TcpStream> {
    let connected = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_tcp_nodelay(true)?;
        set_buffer_sizes(SockRef::from(&socket), sockbuf)?;
        socket.connect(&address.into())?;
        io::Result::Ok(socket.into())
    };
    connected().with_context(|| format!("cannot connect to {address}"))
}

/// Sends bytes over a connection without pending requests, and returns the echo.
pub(crate) fn echo(stream: &TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
    Client { stream, incoming: RefCell::new(Incoming::new(stream)) }.echo(bytes)
}

fn run_slot(slot: ClientSlot, address: SocketAddrV4, sockbuf: Option<u64>) -> anyhow::Result<Vec<Duration>> {
    let stream = connect(address, sockbuf)?;
    let client = Client { stream: &stream, incoming: RefCell::new(Incoming::new(&stream)) };
    let echo = |bytes: Vec<u8>| ready(client.echo(&bytes));
    complete(slot.run(echo, || ready(client.call(kind::PING, &[], &mut []))))
}

pub(super) struct Client<'s> {
    pub(super) stream: &'s TcpStream,
    incoming: RefCell<Incoming<'s>>,
}

impl Client<'_> {
    /// Sends a request, and fills `result` with the payload of its reply, which must have the same length.
    pub(super) fn call(&self, kind: u32, payload: &[u8], result: &mut [u8]) -> io::Result<()> {
        let mut incoming = self.incoming.borrow_mut();
        let len = self.request(&mut incoming, kind, payload)?;
        if len as usize != result.len() {
            return Err(invalid(format!("the reply has {len} bytes instead of {}", result.len())));
        }
        incoming.fill(result)
    }

    fn echo(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut echoed = vec![0; bytes.len()];
        self.call(kind::ECHO, bytes, &mut echoed)?;
        Ok(echoed)
    }

    /// Sends a request without payload, and returns the payload of its reply.
    pub(super) fn query(&self, kind: u32) -> io::Result<Vec<u8>> {
        let mut incoming = self.incoming.borrow_mut();
        let len = self.request(&mut incoming, kind, &[])?;
        incoming.read_new_buffer(len as usize)
    }

    /// Sends a request and reads the header of its reply. Returns the length of the reply's payload.
    fn request(&self, incoming: &mut Incoming<'_>, kind: u32, payload: &[u8]) -> io::Result<u32> {
        const ID: u32 = 1;
        send(self.stream, &call_header(Header { kind, len: payload.len() as u32 }, ID), payload)?;
        read_reply_header(incoming, kind, ID)
    }

    /// Returns how many bytes of floods the server has received since the previous query.
    fn sync(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        self.call(kind::SYNC, &[], &mut count)?;
        Ok(u64::from_ne_bytes(count))
    }

    fn tally(&self) -> io::Result<Tally> {
        let mut counts = [0; 16];
        self.call(kind::TALLY, &[], &mut counts)?;
        let [last, others] = counts.as_chunks::<8>().0 else { return Ok(Tally::default()) };
        Ok(Tally { last: u64::from_ne_bytes(*last), others: u64::from_ne_bytes(*others) })
    }

    /// Makes `calls` pings with `depth` of them outstanding, and returns the time. With `batches_requests`,
    /// requests are delayed while further replies are already buffered, so that they are sent together.
    fn pipeline(&self, depth: u32, calls: u32, batches_requests: bool) -> io::Result<Duration> {
        let mut incoming = self.incoming.borrow_mut();
        let ping = |id| call_header(Header { kind: kind::PING, len: 0 }, id);
        let mut requests = Vec::with_capacity(depth as usize * CALL_HEADER_BYTES);
        let start = Instant::now();
        let mut sent = depth.min(calls);
        requests.extend((0..sent).flat_map(ping));
        send(self.stream, &requests, &[])?;
        requests.clear();
        for done in 0..calls {
            read_reply_header(&mut incoming, kind::PING, done)?;
            if sent < calls {
                requests.extend_from_slice(&ping(sent));
                sent += 1;
            }
            let is_full = requests.len() == depth as usize * CALL_HEADER_BYTES;
            if !requests.is_empty() && (!batches_requests || incoming.is_drained() || is_full) {
                send(self.stream, &requests, &[])?;
                requests.clear();
            }
        }
        Ok(start.elapsed())
    }
}

/// Reads the header of the reply to a request, and returns the length of the reply's payload.
fn read_reply_header(incoming: &mut Incoming<'_>, kind: u32, id: u32) -> io::Result<u32> {
    let mut bytes = [0; CALL_HEADER_BYTES];
    incoming.fill(&mut bytes)?;
    let (header, number) = bytes.split_at(HEADER_BYTES);
    let len = header.get(4..).and_then(|l| l.try_into().ok()).map_or(0, u32::from_ne_bytes);
    if header.get(..4) != Some(&kind.to_ne_bytes()) || number != id.to_ne_bytes() {
        return Err(invalid(format!("the reply does not belong to request {id} of kind {kind}")));
    }
    Ok(len)
}

pub(super) fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
