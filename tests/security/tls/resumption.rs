//! Each connection checks certificates anew: peers that try to resume an earlier session perform a full
//! handshake.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection, Stream,
    SupportedProtocolVersion,
};
use zorb::Orb;

use crate::tls::{client, server, tls};
use test_support::certificates::Authority;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

fn roots(ca: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap()).unwrap();
    roots
}

fn timed(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A server that stores sessions. For each connection it returns the kind of handshake, and closes the
/// connection after it received data.
fn keeping(
    ca: &Authority,
    version: &'static SupportedProtocolVersion,
    connections: usize,
) -> (u16, std::thread::JoinHandle<Vec<HandshakeKind>>) {
    let (certificate, key) = ca.issue("server");
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let handshake = |_| {
            let mut stream = timed(listener.accept().unwrap().0);
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // When the request arrives, the client has received everything that belongs to the handshake.
            let _ = Stream::new(&mut connection, &mut stream).read(&mut [0; 64]);
            connection.handshake_kind().unwrap()
        };
        (0..connections).map(handshake).collect()
    });
    (port, thread)
}

#[tokio::test]
async fn clients_never_take_a_session_up_again() {
    let ca = Authority::new("ca");
    for version in VERSIONS {
        let (port, handshakes) = keeping(&ca, version, 2);
        let calling = tls(&ca, "client").build().unwrap();
        for _ in 0..2 {
            let (_client, vault) =
                client(calling.clone(), &format!("corbaloc:ssliop:1.2@127.0.0.1:{port}/x")).await;
            // The result is irrelevant.
            let once = zorb::Reference::with_retry(&vault, zorb::Retry::Never);
            once.add(1, 2).await.unwrap_err();
        }
        let handshakes = tokio::task::spawn_blocking(|| handshakes.join().unwrap()).await.unwrap();
        assert_eq!(handshakes, [HandshakeKind::Full; 2]);
    }
}

#[tokio::test]
async fn servers_never_take_a_session_up_again() {
    let ca = Authority::new("ca");
    for version in VERSIONS {
        let (orb, _) = server(tls(&ca, "server").build().unwrap()).await;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let config = Arc::new(config.with_root_certificates(roots(&ca)).with_no_client_auth());
        let address = address(&orb);
        let handshakes = tokio::task::spawn_blocking(move || {
            [(); 2].map(|()| {
                let mut stream = timed(TcpStream::connect(&address).unwrap());
                let host = ServerName::try_from("127.0.0.1").unwrap();
                let mut connection = ClientConnection::new(Arc::clone(&config), host).unwrap();
                let mut stream = Stream::new(&mut connection, &mut stream);
                // Not a request, but it is answered, and tickets would have arrived by then.
                std::io::Write::write_all(&mut stream, b"GIOP\x01\x02\x00\x07\x00\x00\x00\x00").unwrap();
                let _ = stream.read(&mut [0; 64]);
                connection.handshake_kind().unwrap()
            })
        });
        assert_eq!(handshakes.await.unwrap(), [HandshakeKind::Full; 2]);
    }
}

fn address(orb: &Orb) -> String {
    orb.endpoints()[0].trim_start_matches("ssliop://").to_owned()
}
