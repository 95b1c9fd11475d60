//! GIOP inside of a session, compared with the same bytes without a session.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use giop_proto::Role;
use giop_proto::outbox::Transmit;
use orb_runtime::inside::TlsEnd;

use crate::peer::{Manner, Peer};
use crate::story::{Dice, End, Way, converse};
use crate::{Side, sockets};

/// Both ends perform a correct handshake; then the peer sends `data`, in arbitrary records.
pub async fn run(data: &[u8]) {
    let mut dice = Dice::new(data);
    let (side, role) = match dice.length() % 2 {
        0 => (Side::Acceptor, Role::Server),
        _ => (Side::Connector, Role::Client),
    };
    let (near, far) = sockets();
    let mut peer = Peer::new(side, far, Manner::honest(side), dice);
    let (end, ()) = tokio::join!(side.shake_hands(near), peer.shake_hands(&[]));
    let end = end.expect("nothing stands in the way of a session");

    let story = tokio::select! {
        story = take(&end, role) => story,
        () = async {
            peer.say(data).await;
            peer.end().await;
            peer.listen().await;
            std::future::pending().await
        } => unreachable!("it waits"),
    };
    end.shut_down_write();
    peer.listen().await;
    let (plain, sent) = converse(role, data, None);
    assert_eq!(story, plain, "{role:?}: TLS tells another story");
    // Data that is unsent when the peer closes is dropped, and in pieces more is sent before that.
    assert!(peer.got.starts_with(&sent), "{role:?}: TLS has other answers");
}

/// Returns the machine's story of the data from the session.
async fn take(end: &TlsEnd, role: Role) -> Vec<String> {
    let (start, mut way) = (Instant::now(), Over(end));
    let mut machine = End::new(role, start);
    if role == Role::Client {
        machine.call();
    }
    let mut ended = false;
    loop {
        let reads = machine.turn(&mut way, start) && !ended;
        if !reads && !machine.blocked {
            break;
        }
        let blocked = machine.blocked;
        let may_read = poll_fn(|cx| {
            if reads && end.poll_read_ready(cx).is_ready() {
                Poll::Ready(true)
            } else if blocked && end.poll_write_ready(cx).is_ready() {
                Poll::Ready(false)
            } else {
                Poll::Pending
            }
        });
        if !may_read.await {
            continue;
        }
        let mut buf = machine.conn.take_read_buf();
        let came = end.try_read(&mut buf).expect("the peer breaks no rule of TLS");
        machine.conn.handle_read(buf, came.unwrap_or(0), start);
        ended = came == Some(0);
    }
    machine.finish(&mut way, start);
    machine.story
}

/// The session as the way to the peer.
struct Over<'a>(&'a TlsEnd);

impl Way for Over<'_> {
    fn write(&mut self, transmit: &mut Transmit) -> bool {
        self.0.try_write(transmit).expect("the peer listens to the end")
    }
}
