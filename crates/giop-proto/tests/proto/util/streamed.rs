//! A server with a streamed operation.

use std::sync::Arc;
use std::time::Duration;

use giop_codec::giop::RequestId;
use giop_proto::receive::MAX_CHUNK_SIZE;
use giop_proto::{
    BufferPool, Chunk, Config, IncomingRequest, Limits, Loan, LoanReturn, Role, StreamSelector,
};

use super::messages::Ask;
use super::{Cut, Pair};

/// StreamSelector `ping` of the object `streamed`.
#[derive(Debug)]
pub struct Table;

impl StreamSelector for Table {
    fn any_streamed(&self) -> bool {
        true
    }

    fn is_streamed(&self, key: &[u8], operation: &[u8]) -> bool {
        key == b"streamed" && operation == b"ping"
    }
}

pub fn pair_of(cut: Cut, limits: Limits) -> Pair {
    let pool = Arc::new(BufferPool::new(64 << 20));
    let config = |role| Config::new(role, Arc::new(limits.clone()), Arc::clone(&pool));
    let mut server = config(Role::Server);
    server.streams = Some(Arc::new(Table));
    Pair::with_configs(cut, config(Role::Client), server)
}

pub fn pair(cut: Cut) -> Pair {
    pair_of(cut, Limits::default())
}

pub fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

pub fn ask(id: u32, len: usize) -> Ask {
    Ask { id, key: b"streamed".to_vec(), body: body(len), ..Ask::default() }
}

/// Sends the next request, `ping` without arguments, and serves it.
pub fn next(pair: &mut Pair, id: u32) {
    pair.server.inject(&Ask { id, ..Ask::default() }.octets());
    pair.drive();
    let request = pair.request();
    assert_eq!((request.id(), request.stream_len()), (RequestId(id), 0));
    pair.server.conn.request(request.token()).finish();
}

/// Returns memory for `len` bytes.
pub fn loan(len: usize) -> Box<Loan> {
    Loan::new(Box::new(vec![0u8; len]), 0, len as u64).map_err(|(_, error)| error).unwrap()
}

/// Lends memory in blocks while bytes are received into it. Returns the received bytes, and the end of the
/// stream.
pub fn place(pair: &mut Pair, request: &IncomingRequest, block: usize, left: usize) -> (Vec<u8>, Chunk) {
    let (token, mut come) = (request.token(), Vec::new());
    loop {
        match pair.server.conn.stream(token).take_ready_chunk() {
            Chunk::Bytes(octets) => {
                assert!(!octets.is_empty() && octets.len() <= MAX_CHUNK_SIZE);
                come.extend_from_slice(&octets);
                continue;
            }
            Chunk::Pending => {}
            end => return (come, end),
        }
        let left = left - come.len();
        if left == 0 {
            assert!(pair.server.conn.stream(token).abandon().is_none());
            return (come, Chunk::End);
        }
        let loan = loan(block.min(left));
        pair.server.conn.stream(token).lend(loan, pair.now).unwrap();
        loop {
            let before = pair.server.read;
            match pair.server.conn.input_mut().take_loan() {
                LoanReturn::Loan(loan) => {
                    let (octets, filled, failed) = loan.end::<Vec<u8>>().unwrap();
                    assert!(failed.is_none());
                    come.extend_from_slice(&octets[..filled]);
                    break;
                }
                LoanReturn::Pending => {
                    pair.wait(Duration::from_millis(1));
                    if pair.server.read == before && !pair.server.conn.input().has_chunk() {
                        return (come, Chunk::Pending);
                    }
                }
                LoanReturn::Nothing => panic!("it is lost"),
            }
        }
    }
}

/// Takes the whole payload of the request in blocks.
pub fn placed(pair: &mut Pair, request: &IncomingRequest, block: usize, len: usize) -> Vec<u8> {
    let mut octets = request.arguments().rest().to_vec();
    let left = len - octets.len();
    pair.server.conn.input_mut().open_stream(request.token(), left as u64);
    let (rest, end) = place(pair, request, block, left);
    assert_eq!(end, Chunk::End);
    octets.extend(rest);
    octets
}
