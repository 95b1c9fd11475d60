//! TLS connections to etcd, with the configured CA certificates and client certificate.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{ConnectError, EtcdConfig};

#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn client(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &config.ca {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| file_error(path, &error))?;
            }
        } else if config.endpoints.iter().any(|endpoint| endpoint.starts_with("https:")) {
            let reason = "https:// requires the certificates of the CAs that etcd's members use";
            return Err(ConnectError::Config(reason.to_owned()));
        }
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::Config(error.to_string()))?
            .with_root_certificates(roots);
        let client = match &config.identity {
            None => client.with_no_client_auth(),
            Some((chain, key)) => {
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| file_error(key, &error))?;
                let client = client.with_client_auth_cert(certificates(chain)?, secret);
                client.map_err(|error| file_error(key, &error))?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(client))))
    }

    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| file_error(path, &error))?;
    if all.is_empty() { Err(file_error(path, &"it contains no certificate")) } else { Ok(all) }
}

fn file_error(path: &Path, error: &dyn std::fmt::Display) -> ConnectError {
    ConnectError::Config(format!("{}: {error}", path.display()))
}
