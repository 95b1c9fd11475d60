//! Requests to an admin endpoint.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use giop_codec::Printable;
use hyper::body::Body;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::view::Status;

/// Maximum size of an answer in bytes.
const LONGEST: usize = 16 << 20;

/// An admin endpoint.
pub(super) struct Endpoint {
    address: String,
    timeout: Duration,
}

impl Endpoint {
    /// Parses `HOST:PORT`, or a URL of it.
    ///
    /// # Errors
    /// The text is neither.
    pub(super) fn parse(text: &str, timeout: Duration) -> anyhow::Result<Self> {
        ensure!(!text.starts_with("https:"), "an admin endpoint speaks http");
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address = address.split('/').next().unwrap_or_default();
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        ensure!(port.is_some(), "`{text}` is no address: HOST:PORT is expected, or http://HOST:PORT/");
        Ok(Self { address: address.to_owned(), timeout })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the current status of the ORB.
    ///
    /// # Errors
    /// There is no answer, or it is not that of such an endpoint.
    pub(super) async fn status(&self) -> anyhow::Result<Status> {
        let asked = tokio::time::timeout(self.timeout, self.ask()).await;
        let octets =
            asked.with_context(|| format!("{}: no answer in {:?}", self.address, self.timeout))??;
        serde_json::from_slice(&octets)
            .with_context(|| format!("{}: that is no admin endpoint of zorb's", self.address))
    }

    async fn ask(&self) -> anyhow::Result<Vec<u8>> {
        let at = &self.address;
        let stream = TcpStream::connect(at).await.with_context(|| format!("cannot connect to {at}"))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::get("/status.json")
            .header(header::HOST, at)
            .body(String::new())
            .context("no request")?;
        let answer = async {
            let answer =
                sender.send_request(request).await.with_context(|| format!("{at} does not answer"))?;
            let status = answer.status();
            let mut body = answer.into_body();
            let mut octets = Vec::new();
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if let Ok(data) = frame?.into_data() {
                    octets.extend_from_slice(&data);
                }
                ensure!(octets.len() <= LONGEST, "{at} answers without end");
            }
            if !status.is_success() {
                bail!(
                    "{at} answers {status}: {}",
                    Printable::new(String::from_utf8_lossy(&octets).trim_end())
                );
            }
            Ok(octets)
        };
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // When the connection has ended, its result is in the answer.
            _ = connection => answer.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_hosts_with_ports_or_urls_of_them() {
        let parsed = |text| Endpoint::parse(text, Duration::from_secs(1)).map(|endpoint| endpoint.address);
        for text in
            ["127.0.0.1:80", "http://127.0.0.1:80", "http://127.0.0.1:80/", "http://127.0.0.1:80/metrics"]
        {
            assert_eq!(parsed(text).unwrap(), "127.0.0.1:80");
        }
        assert_eq!(parsed("[::1]:9").unwrap(), "[::1]:9");
        for wrong in ["", "localhost", "https://localhost:1/", "localhost:x", "http://"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
