//! TLS as used by listeners and callers, over sockets in memory: handshakes with strangers, and GIOP inside
//! of a session.
//!
//! Input that begins with a `G` is GIOP. It is sent through an established session, cut arbitrarily into
//! records and pieces of records. The connection machine must produce the same events and the same answers as
//! without TLS.
//!
//! The first byte of other input selects what a stranger does. It sends the bytes unchanged, or performs the
//! handshake with a name and a certificate from the tape and with changed bytes. If a session with a
//! certificate results, that certificate must belong to the stranger's identity.
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

/// The CA of both, and certificates with their keys that are valid for some thousand years.
pub const CA: &str = include_str!("ca.pem");
pub const SERVER: &str = include_str!("server.pem");
pub const CLIENT: &str = include_str!("client.pem");
/// A name in the certificate of the server.
pub const NAME: &str = "server.test";

/// Timeout: much longer than any input needs, and shorter than libFuzzer's timeout.
const HANGS: Duration = Duration::from_secs(8);

static ACCEPTS: LazyLock<Tls> = LazyLock::new(|| {
    let tls = Tls::builder().identity(Identity::pem(SERVER, SERVER)).trust(Trust::pem(CA));
    tls.client_certificates(ClientCertificates::Optional).build().expect("all of it is good")
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

/// The side under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Acceptor,
    Connector,
}

impl Side {
    pub fn of(kind: u8) -> Side {
        if kind & 1 == 0 { Side::Acceptor } else { Side::Connector }
    }

    /// Performs its handshake.
    pub async fn shake_hands(self, stream: TcpStream) -> Result<TlsEnd, String> {
        match self {
            Side::Acceptor => TlsEnd::accept(&ACCEPTS, stream).await,
            Side::Connector => TlsEnd::connect(&CONNECTS, stream, NAME).await,
        }
    }
}

/// Returns the socket of the side under test, and that of its peer. The library uses the TCP stream type for
/// Unix sockets as well.
pub fn sockets() -> (TcpStream, UnixStream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let near = std::net::TcpStream::from(std::os::fd::OwnedFd::from(near));
    near.set_nonblocking(true).and_then(|()| far.set_nonblocking(true)).expect("they are sockets");
    let near = TcpStream::from_std(near).expect("the runtime takes it");
    (near, UnixStream::from_std(far).expect("the runtime takes it"))
}
