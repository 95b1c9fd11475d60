//! Handshakes with strangers.

use std::io::ErrorKind;

use orb_runtime::inside::TlsEnd;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use tokio::net::UnixStream;

use crate::peer::{Edit, Manner, Peer, certificate};
use crate::story::Dice;
use crate::{NAME, Side, sockets};

/// The stranger sends the bytes, regardless of the answers.
pub async fn octets(side: Side, octets: &[u8]) {
    let (near, far) = sockets();
    let sends = send(far, octets, Dice::new(octets));
    let (outcome, _far) = tokio::join!(side.shake_hands(near), sends);
    assert!(outcome.is_err(), "{side:?}: a session without a key");
}

/// Sends in pieces. The socket stays open, so that answers can be written.
async fn send(far: UnixStream, mut octets: &[u8], mut dice: Dice) -> UnixStream {
    while !octets.is_empty() {
        let length = dice.length();
        match far.try_write(&octets[..length.min(octets.len())]) {
            Ok(n) => octets = &octets[n..],
            // The other side no longer reads.
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => break,
        }
        if length.is_multiple_of(2) {
            tokio::task::yield_now().await;
        }
    }
    crate::peer::end(&far);
    far
}

/// The stranger performs a TLS handshake with a name and a certificate of its own, and with changed bytes.
pub async fn changed(side: Side, how: u8, tape: &[u8]) {
    let mut tape = Tape(tape);
    let versions = match how & 3 {
        0 => vec![&TLS12],
        1 => vec![&TLS13],
        _ => vec![&TLS12, &TLS13],
    };
    let own = certificate(side);
    let shown = match how >> 2 & 3 {
        0 => Some(own.clone()),
        1 => None,
        2 => {
            let mut octets = own.to_vec();
            for _ in 0..=tape.octet() % 4 {
                let place = usize::from(tape.word()) % octets.len();
                octets[place] ^= tape.octet();
            }
            Some(CertificateDer::from(octets))
        }
        _ => {
            let length = usize::from(tape.word() % 2048);
            Some(CertificateDer::from(tape.take(length).to_vec()))
        }
    };
    let length = if how >> 4 & 1 == 0 { 0 } else { usize::from(tape.octet()) };
    let name = std::str::from_utf8(tape.take(length)).unwrap_or_default().to_owned();
    let name = ServerName::try_from(name).unwrap_or_else(|_| NAME.try_into().expect("a name"));
    let is_own = shown.as_ref() == Some(&own);
    // A client without a certificate is accepted, without an identity.
    let mut is_good = is_own || (shown.is_none() && side == Side::Acceptor);
    let mut edits = Vec::new();
    while !tape.0.is_empty() && edits.len() < 16 {
        edits.push(Edit { flight: tape.octet() % 4, place: tape.word(), bits: tape.octet() });
        is_good = false;
    }

    let (near, far) = sockets();
    let manner = Manner { versions, certificate: shown, name };
    let mut peer = Peer::new(side, far, manner, Dice::new(tape.0));
    let speaks = async {
        peer.shake_hands(&edits).await;
        peer.end().await;
    };
    let (outcome, ()) = tokio::join!(side.shake_hands(near), speaks);
    assert!(outcome.is_ok() || !is_good, "{side:?}: {outcome:?}");
    if let Ok(end) = outcome {
        let session = end.session().expect("it has one");
        let _ = (session.subject(), session.fingerprint(), format!("{session:?}"));
        match session.certificates().next() {
            Some(proved) => assert!(is_own && proved == &*own, "{side:?}: it is not who it says"),
            None => assert_eq!(side, Side::Acceptor, "a server without a certificate"),
        }
        to_the_end(&end).await;
    }
}

/// Nothing is received over the session except its end.
async fn to_the_end(end: &TlsEnd) {
    let mut machine = crate::story::End::new(giop_proto::Role::Server, std::time::Instant::now());
    let mut buf = machine.conn.take_read_buf();
    loop {
        std::future::poll_fn(|cx| end.poll_read_ready(cx)).await.expect("a socket");
        match end.try_read(&mut buf) {
            Ok(None) => {}
            Ok(Some(0)) | Err(_) => return,
            Ok(Some(n)) => panic!("{n} octets that nobody sent"),
        }
    }
}

/// The rest of the input. Zeros follow its end.
struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn octet(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.octet(), self.octet()])
    }
}
