//! A large message has its buffer to itself, although the same read also received the start of the next
//! message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::util::messages::Ask;
use giop_proto::{BufferPool, Config, Connection, Event, IncomingRequest, Limits, Role};

struct Server {
    conn: Connection,
    pool: Arc<BufferPool>,
    now: Instant,
    requests: VecDeque<IncomingRequest>,
}

impl Server {
    fn new() -> Self {
        let (pool, now) = (Arc::new(BufferPool::new(16 << 20)), Instant::now());
        let config = Config::new(Role::Server, Limits::default().into(), Arc::clone(&pool));
        Self { conn: Connection::new(config, now), pool, now, requests: VecDeque::new() }
    }

    /// Reads as often as necessary for all of `octets`. Returns the number of bytes of the last read.
    fn read(&mut self, octets: &[u8]) -> usize {
        let (mut at, mut last) = (0, 0);
        while at < octets.len() {
            let mut buf = self.conn.take_read_buf();
            last = 0;
            for mut slice in buf.io_slices() {
                let len = slice.len().min(octets.len() - at);
                slice[..len].copy_from_slice(&octets[at..at + len]);
                (at, last) = (at + len, last + len);
            }
            assert!(last > 0, "more is waited for than was sent");
            self.conn.handle_read(buf, last, self.now);
            while let Some(event) = self.conn.poll_event() {
                let Event::Request(request) = event else { panic!("{event:?}") };
                self.conn.request(request.token()).finish();
                self.requests.push_back(request);
            }
        }
        last
    }
}

fn ask(len: usize) -> Vec<u8> {
    Ask { body: (0..len).map(|i| (i * 7 + i / 253) as u8).collect(), ..Ask::default() }.octets()
}

#[test]
fn the_start_of_another_message_behind_it_pins_no_buffer() {
    for len in [100_000, 200_000, 1_000_000] {
        // A message of the same size and a header are expected next. With a smaller message, the read gets
        // more than that.
        for smaller in [0, 4, 16, 100, 3_000] {
            let (first, second, third) = (ask(len), ask(len - smaller), ask(5_000));
            for behind in [0, 5, 12, 12 + smaller] {
                let mut server = Server::new();
                server.read(&first);
                assert!(server.requests.pop_front().is_some_and(|request| request.message() == &first));
                let both = [&second, &third[..behind]].concat();
                assert_eq!(server.read(&both), both.len(), "{len}, {smaller}, {behind}: by one read");
                let request = server.requests.pop_front().unwrap();
                let mut message = request.message().clone();
                drop(request);
                assert!(message == second);
                let pool = Arc::clone(&server.pool);
                assert!(pool.write_to(&mut message, |octets| octets.fill(0)), "{len}, {smaller}, {behind}");
                server.read(&third[behind..]);
                assert!(
                    server.requests.pop_front().is_some_and(|request| request.message() == &third),
                    "{len}, {smaller}, {behind}"
                );
            }
        }
    }
}
