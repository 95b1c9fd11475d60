//! Large results for a peer that does not read: no more results are created than the backlog may hold.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use futures_util::future::join_all;
use zorb::prelude::*;

zorb::idl! {
    interface Source {
        typedef sequence<octet> Octets;
        Octets large();
    };
}

const LARGE: usize = 4 << 20;

#[derive(Default)]
struct Servant {
    served: AtomicUsize,
}

impl SourceServant for Servant {
    async fn large(&self) -> Result<Bytes, SystemException> {
        self.served.fetch_add(1, Ordering::Relaxed);
        Ok(vec![7; LARGE].into())
    }
}

/// Forwards in both directions, except while a direction is stopped.
fn relay(server: u16, stopped: &Arc<[AtomicBool; 2]>) -> u16 {
    let stopped = [Arc::clone(stopped), Arc::clone(stopped)];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let client = listener.accept().unwrap().0;
        let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let [requests, replies] = stopped;
        thread::spawn(move || forward(from, to, &requests[0]));
        forward(server, client, &replies[1]);
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream, stopped: &AtomicBool) {
    let mut octets = vec![0; 1 << 16];
    while let Ok(mut n @ 1..) = from.read(&mut octets) {
        if stopped.load(Ordering::Relaxed) {
            while stopped.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            // Everything that arrived in the meantime is forwarded together.
            from.set_nonblocking(true).unwrap();
            while let Ok(more @ 1..) = from.read(&mut octets[n..]) {
                n += more;
            }
            from.set_nonblocking(false).unwrap();
        }
        if to.write_all(&octets[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[tokio::test]
async fn what_a_peer_does_not_read_is_not_made() {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Servant::default());
    let _published: SourceRef = server.activate_named("source", Arc::clone(&servant)).unwrap();
    let port = server.endpoints()[0].rsplit(':').next().unwrap().parse().unwrap();
    let stopped = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let client = Orb::builder().build().await.unwrap();
    let port = relay(port, &stopped);
    let source: SourceRef =
        client.resolve(&format!("corbaloc:iiop:1.0@127.0.0.1:{port}/source")).await.unwrap();
    stopped.iter().for_each(|stopped| stopped.store(true, Ordering::Relaxed));
    let calls = tokio::spawn(async move { join_all((0..40).map(|_| source.large())).await });
    // From here on they arrive together.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(servant.served.load(Ordering::Relaxed), 0);
    stopped[0].store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The sockets in between hold a few.
    let served = servant.served.load(Ordering::Relaxed);
    assert!((1..16).contains(&served), "{served}");
    stopped[1].store(false, Ordering::Relaxed);
    for large in calls.await.unwrap() {
        assert_eq!(large.unwrap().len(), LARGE);
    }
    assert_eq!(servant.served.load(Ordering::Relaxed), 40);
}
