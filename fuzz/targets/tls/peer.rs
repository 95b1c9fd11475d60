//! The other end of a session: rustls alone, with a socket and deliberate misbehaviour.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, ServerConfig, ServerConnection,
    SignatureScheme, SupportedProtocolVersion,
};
use tokio::net::UnixStream;

use crate::story::Dice;
use crate::{CLIENT, NAME, SERVER, Side};

/// How many times the other side is polled before it is assumed to wait for more data.
const PATIENCE: usize = 8;

/// The configuration of a peer.
pub struct Manner {
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// The certificate that it presents; `None`: none.
    pub certificate: Option<CertificateDer<'static>>,
    /// The server name that a client requests.
    pub name: ServerName<'static>,
}

/// A change to its output: the flight, the position in it, and the change of the byte there.
pub struct Edit {
    pub flight: u8,
    pub place: u16,
    /// The bits that are flipped; 0: the rest of the flight is omitted.
    pub bits: u8,
}

pub struct Peer {
    stream: UnixStream,
    tls: Connection,
    dice: Dice,
    pub got: Vec<u8>,
    /// The other side sends no more, or sends invalid data.
    ended: bool,
}

impl Manner {
    pub fn honest(of: Side) -> Self {
        Self {
            versions: vec![&TLS12, &TLS13],
            certificate: Some(certificate(of)),
            name: ServerName::try_from(NAME).expect("a name"),
        }
    }
}

/// Returns the certificate of the peer of that side.
pub fn certificate(of: Side) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem(of).as_bytes()).expect("it is one")
}

fn pem(of: Side) -> &'static str {
    match of {
        Side::Acceptor => CLIENT,
        Side::Connector => SERVER,
    }
}

impl Peer {
    /// Returns the peer of that side.
    pub fn new(of: Side, stream: UnixStream, manner: Manner, dice: Dice) -> Self {
        let provider = Arc::new(default_provider());
        let key = PrivateKeyDer::from_pem_slice(pem(of).as_bytes()).expect("it is one");
        let key = any_supported_type(&key).expect("a key for ring");
        let shown = manner.certificate.map(|shown| Arc::new(CertifiedKey::new(vec![shown], key)));
        let shows = Arc::new(Shows(shown));
        let mut tls: Connection = match of {
            Side::Acceptor => {
                let config = ClientConfig::builder_with_provider(provider)
                    .with_protocol_versions(&manner.versions)
                    .expect("there are some")
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(TrustsAll));
                let config = config.with_client_cert_resolver(shows);
                ClientConnection::new(Arc::new(config), manner.name).expect("it can begin").into()
            }
            Side::Connector => {
                let config = ServerConfig::builder_with_provider(provider)
                    .with_protocol_versions(&manner.versions)
                    .expect("there are some")
                    .with_no_client_auth()
                    .with_cert_resolver(shows);
                ServerConnection::new(Arc::new(config)).expect("it can begin").into()
            }
        };
        tls.set_buffer_limit(None);
        Self { stream, tls, dice, got: Vec::new(), ended: false }
    }

    /// Performs the handshake, and changes its output. Gives up if the other side waits for something else.
    pub async fn shake_hands(&mut self, edits: &[Edit]) {
        let (mut flight, mut changed) = (0, false);
        loop {
            let mut octets = self.records();
            if !octets.is_empty() {
                for edit in edits.iter().filter(|edit| edit.flight == flight) {
                    changed = true;
                    let place = usize::from(edit.place) % octets.len().max(1);
                    match (edit.bits, octets.get_mut(place)) {
                        (0, _) => octets.truncate(place),
                        (bits, Some(octet)) => *octet ^= bits,
                        (_, None) => {}
                    }
                }
                flight += 1;
                self.send(&octets).await;
                continue;
            }
            if !self.tls.is_handshaking() || self.ended {
                return;
            }
            if !changed {
                let _ = self.stream.readable().await;
                self.take();
                continue;
            }
            let mut silence = 0;
            while !self.take() && !self.ended {
                silence += 1;
                if silence > PATIENCE {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Sends the plaintext in records of various lengths.
    pub async fn say(&mut self, mut plaintext: &[u8]) {
        while !plaintext.is_empty() && !self.ended {
            let length = self.dice.length();
            let (piece, rest) = plaintext.split_at(length.min(plaintext.len()));
            self.tls.writer().write_all(piece).expect("there is room");
            plaintext = rest;
            match length % 8 {
                // Several records are sent together.
                0..3 => continue,
                3 => drop(self.tls.refresh_traffic_keys()),
                _ => {}
            }
            let octets = self.records();
            self.send(&octets).await;
        }
        let octets = self.records();
        self.send(&octets).await;
    }

    /// Sends bytes unchanged, in pieces.
    pub async fn send(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() && !self.ended {
            self.take();
            let length = self.dice.length();
            match self.stream.try_write(&octets[..length.min(octets.len())]) {
                Ok(n) => octets = &octets[n..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    tokio::select! {
                        _ = self.stream.writable() => {}
                        _ = self.stream.readable() => {}
                    }
                }
                Err(_) => self.ended = true,
            }
            if length.is_multiple_of(2) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Announces the end, in TLS too or by the stream alone.
    pub async fn end(&mut self) {
        if self.dice.length().is_multiple_of(2) && !self.tls.is_handshaking() {
            self.tls.send_close_notify();
            let octets = self.records();
            self.send(&octets).await;
        }
        end(&self.stream);
    }

    /// Reads to the end.
    pub async fn listen(&mut self) {
        while !self.ended {
            let _ = self.stream.readable().await;
            self.take();
        }
    }

    fn records(&mut self) -> Vec<u8> {
        let mut octets = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut octets).expect("memory takes all");
        }
        octets
    }

    /// Reads the available data; returns whether there was any.
    fn take(&mut self) -> bool {
        let (mut octets, mut some) = ([0; 4096], false);
        while !self.ended {
            let n = match self.stream.try_read(&mut octets) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => 0,
            };
            some |= n > 0;
            self.ended = n == 0;
            let mut rest = &octets[..n];
            while !rest.is_empty() {
                let taken = self.tls.read_tls(&mut rest);
                if taken.is_err() || self.tls.process_new_packets().is_err() {
                    // The resulting alert is not sent: the other side has already failed.
                    self.ended = true;
                    break;
                }
                let _ = self.tls.reader().read_to_end(&mut self.got);
                if taken.is_ok_and(|taken| taken == 0) {
                    break;
                }
            }
        }
        some
    }
}

/// Shuts down the sending direction. Tokio's own method needs a mutable socket.
pub fn end(stream: &UnixStream) {
    let stream = stream.as_fd().try_clone_to_owned().map(std::os::unix::net::UnixStream::from);
    let _ = stream.expect("a descriptor").shutdown(Shutdown::Write);
}

/// Presents a certificate regardless of the request.
#[derive(Debug)]
struct Shows(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

impl ResolvesServerCert for Shows {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

/// Does not verify the server's certificate.
#[derive(Debug)]
struct TrustsAll;

impl ServerCertVerifier for TrustsAll {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
    }
}
