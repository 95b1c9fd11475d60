//! TLS as listeners and callers have it, over sockets in memory: handshakes with strangers, and GIOP inside of a session.
//!
//! Octets that begin with a `G` are GIOP: they go through an established session, cut into records and pieces of records at will, and
//! the connection machine behind it must make the same of them, and answer the same, as without TLS. The first octet of
//! others says what a stranger does: he sends octets as they stand, or goes through the handshake with a name and a
//! certificate from the tape, and with octets changed. A session with somebody who showed a certificate is then one with
//! whom that certificate belongs to.
#![no_main]

mod handshake;
mod peer;
mod session;
#[path = "../story.rs"]
mod story;

use std::cell::LazyCell;
use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use orb_runtime::inside::TlsEnd;
use orb_runtime::tls::{ClientCertificates, Identity, Tls, Trust};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};

/// The CA of both, and certificates with their keys that hold for some thousand years.
pub const CA: &str = include_str!("ca.pem");
pub const SERVER: &str = include_str!("server.pem");
pub const CLIENT: &str = include_str!("client.pem");
/// A name in the certificate of the server.
pub const NAME: &str = "server.test";

/// Far more than anything takes, and less than libFuzzer waits.
const HANGS: Duration = Duration::from_secs(8);

static ACCEPTS: LazyLock<Tls> = LazyLock::new(|| {
    let tls = Tls::builder().identity(Identity::pem(SERVER, SERVER)).trust(Trust::pem(CA));
    tls.client_certificates(ClientCertificates::Wanted).build().expect("all of it is good")
});
static CONNECTS: LazyLock<Tls> = LazyLock::new(|| {
    let tls = Tls::builder().identity(Identity::pem(CLIENT, CLIENT)).trust(Trust::pem(CA));
    tls.build().expect("all of it is good")
});

thread_local! {
    static RUNTIME: LazyCell<Runtime> =
        LazyCell::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    let input = async {
        match kind {
            b'G' => session::run(data).await,
            kind if kind & 1 == 0 => handshake::octets(Side::of(kind >> 1), rest).await,
            kind => handshake::changed(Side::of(kind >> 1), kind >> 2, rest).await,
        }
    };
    RUNTIME.with(|runtime| {
        runtime.block_on(async { tokio::time::timeout(HANGS, input).await.expect("it comes to an end") });
    });
});

/// The side that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Acceptor,
    Connector,
}

impl Side {
    pub fn of(kind: u8) -> Side {
        if kind & 1 == 0 { Side::Acceptor } else { Side::Connector }
    }

    /// Its handshake.
    pub async fn shake_hands(self, stream: TcpStream) -> Result<TlsEnd, String> {
        match self {
            Side::Acceptor => TlsEnd::accept(&ACCEPTS, stream).await,
            Side::Connector => TlsEnd::connect(&CONNECTS, stream, NAME).await,
        }
    }
}

/// The socket of the side that is looked at, and that of its peer. The library has Unix sockets in streams of TCP as well.
pub fn sockets() -> (TcpStream, UnixStream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let near = std::net::TcpStream::from(std::os::fd::OwnedFd::from(near));
    near.set_nonblocking(true).and_then(|()| far.set_nonblocking(true)).expect("they are sockets");
    let near = TcpStream::from_std(near).expect("the runtime takes it");
    (near, UnixStream::from_std(far).expect("the runtime takes it"))
}
