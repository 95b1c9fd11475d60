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

const MAX_RESPONSE_BYTES: usize = 16 << 20;

pub(super) struct Endpoint {
    pub(super) address: String,
    timeout: Duration,
}

impl Endpoint {
    pub(super) fn parse(text: &str, timeout: Duration) -> anyhow::Result<Self> {
        ensure!(!text.starts_with("https:"), "an admin endpoint uses http, not https");
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address = address.split('/').next().unwrap_or_default();
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        ensure!(port.is_some(), "expected HOST:PORT or http://HOST:PORT/ instead of `{text}`");
        Ok(Self { address: address.to_owned(), timeout })
    }

    pub(super) async fn fetch_status(&self) -> anyhow::Result<Status> {
        let response = tokio::time::timeout(self.timeout, self.get()).await;
        let bytes = response
            .with_context(|| format!("{}: no response within {:?}", self.address, self.timeout))??;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("the response of {} is not that of a zorb admin endpoint", self.address))
    }

    async fn get(&self) -> anyhow::Result<Vec<u8>> {
        let address = &self.address;
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::get("/status.json")
            .header(header::HOST, address)
            .body(String::new())
            .context("cannot create the request")?;
        let response = async {
            let response =
                sender.send_request(request).await.with_context(|| format!("no response from {address}"))?;
            let status = response.status();
            let mut body = response.into_body();
            let mut bytes = Vec::new();
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if let Ok(data) = frame?.into_data() {
                    bytes.extend_from_slice(&data);
                }
                ensure!(bytes.len() <= MAX_RESPONSE_BYTES, "the response of {address} is too long");
            }
            if !status.is_success() {
                bail!(
                    "{address} answered {status}: {}",
                    Printable::new(String::from_utf8_lossy(&bytes).trim_end())
                );
            }
            Ok(bytes)
        };
        tokio::pin!(response);
        tokio::select! {
            biased;
            response = &mut response => response,
            // If the connection ends first, the response contains its error.
            _ = connection => response.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_parsed_from_addresses_and_urls() {
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
