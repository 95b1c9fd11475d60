//! A server with a streamed operation.

use std::sync::Arc;

use giop_proto::{BufferPool, Config, Limits, Role, Streams};

use super::{Cut, Pair};

/// Streams `ping` of the object `streamed`.
#[derive(Debug)]
pub struct Table;

impl Streams for Table {
    fn any(&self) -> bool {
        true
    }

    fn streams(&self, key: &[u8], operation: &[u8]) -> bool {
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
