//! TLS connections to etcd: the trusted certificates, and the client certificate.

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

/// The configuration of TLS connections to the members.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn client(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let config_error = |reason: String| ConnectError::Config(reason);
        let mut roots = RootCertStore::empty();
        if let Some(path) = &config.ca {
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| config_error(format!("{}: {error}", path.display())))?;
            }
        } else if config.endpoints.iter().any(|endpoint| endpoint.starts_with("https:")) {
            return Err(config_error(
                "https:// requires the certificates of the CAs that etcd's members use".to_owned(),
            ));
        }
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| config_error(error.to_string()))?
            .with_root_certificates(roots);
        let client = match &config.identity {
            None => client.with_no_client_auth(),
            Some((chain, key)) => {
                let key_error =
                    |error: &dyn std::fmt::Display| config_error(format!("{}: {error}", key.display()));
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| key_error(&error))?;
                client
                    .with_client_auth_cert(certificates(chain)?, secret)
                    .map_err(|error| key_error(&error))?
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
    let config_error =
        |error: &dyn std::fmt::Display| ConnectError::Config(format!("{}: {error}", path.display()));
    let all = CertificateDer::pem_file_iter(path).map_err(|error| config_error(&error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| config_error(&error))?;
    if all.is_empty() {
        return Err(config_error(&"it contains no certificate"));
    }
    Ok(all)
}
