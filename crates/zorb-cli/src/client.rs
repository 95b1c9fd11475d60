//! The ORB of a command that calls objects.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use zorb::csi::Credentials;
use zorb::prelude::*;
use zorb::tls::{Identity, ServerNames, Tls, Trust};

use crate::limits::MaxMessageValue;
use crate::options;

const NAME_SERVICE: &str = "NameService";
const DEFAULT_NAME_SERVICE_URL: &str = "corbaloc:iiop:1.2@127.0.0.1:2809/NameService";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of all commands that call objects.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct ClientOptions {
    /// The timeout of each call, and of each connection attempt
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = options::duration)]
    pub(crate) timeout: Duration,
    /// An initial reference, for corbaname:rir: and corbaloc:rir: URLs
    #[arg(long, value_name = "NAME=URL", value_parser = init_ref)]
    init_ref: Vec<(String, String)>,
    /// A PEM file with the CA certificates of trusted servers; enables TLS for references that offer it
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// A PEM file with the client certificate
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A PEM file with the private key of the client certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept server certificates that are not valid for the called host, which is common in CORBA
    #[arg(long, requires = "tls_ca")]
    tls_any_name: bool,
    #[command(flatten)]
    pub(crate) max_message: MaxMessageValue,
}

fn init_ref(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !url.is_empty() => Ok((name.to_owned(), url.to_owned())),
        _ => Err("must be NAME=URL, such as NameService=corbaloc::1.2@example.org/NameService".to_owned()),
    }
}

impl ClientOptions {
    /// Returns whether all options have their defaults. Ignores --max-message, because servers also have it.
    pub(crate) fn is_default(&self) -> bool {
        let Self { timeout, init_ref, tls_ca, tls_cert, tls_key, tls_any_name, max_message: _ } = self;
        let files = tls_ca.is_some() || tls_cert.is_some() || tls_key.is_some();
        *timeout == DEFAULT_TIMEOUT && init_ref.is_empty() && !files && !tls_any_name
    }

    /// Creates an ORB that does not listen. Its calls use these credentials.
    pub(crate) async fn orb(&self, credentials: Option<Credentials>) -> anyhow::Result<Orb> {
        let mut builder =
            self.max_message.apply(Orb::builder().timeout(self.timeout).connect_timeout(self.timeout))?;
        if let Some(credentials) = credentials {
            builder = builder.credentials(credentials);
        }
        if !self.init_ref.iter().any(|(name, _)| name == NAME_SERVICE) {
            builder = builder.init_ref(NAME_SERVICE, DEFAULT_NAME_SERVICE_URL);
        }
        for (name, url) in &self.init_ref {
            builder = builder.init_ref(name, url);
        }
        if let Some(ca) = &self.tls_ca {
            let mut tls = Tls::builder().trust(Trust::file(ca));
            if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
                tls = tls.identity(Identity::files(certificate, key));
            }
            if self.tls_any_name {
                tls = tls.server_names(ServerNames::Unchecked);
            }
            builder = builder.tls(tls.build()?);
        }
        Ok(builder.build().await?)
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(future)
}

/// Returns a future that waits for Ctrl-C or SIGTERM. A second signal ends the process.
///
/// Call this before the output that announces a service, because a signal may follow at once.
pub(crate) fn termination_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let signal = zorb::signal::Shutdown::new().context("cannot wait for signals")?;
    Ok(async move {
        // This cannot fail, because the handlers are already installed.
        let _ = signal.await;
    })
}
