//! The ORB of a command that calls objects.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use zorb::csi::Credentials;
use zorb::prelude::*;
use zorb::tls::{Identity, ServerNames, Tls, Trust};

use crate::limits::MessageSize;
use crate::options;

/// The initial reference of naming services, and the default URL.
const NAMES: &str = "NameService";
const NAMES_HERE: &str = "corbaloc:iiop:1.2@127.0.0.1:2809/NameService";

/// The default timeout of a call.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of all commands that talk to objects.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connecting")]
pub(crate) struct Client {
    /// How long a call may take, and how long a connection may take to be made
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = options::duration)]
    pub(crate) timeout: Duration,
    /// An initial reference, for corbaname:rir: and corbaloc:rir:
    #[arg(long, value_name = "NAME=URL", value_parser = init_ref)]
    init_ref: Vec<(String, String)>,
    /// Trust servers with certificates of these CAs, a PEM file: calls use TLS where a reference offers it
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Show servers this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take certificates that are made out to another host than the reference names, as is the habit of CORBA
    #[arg(long, requires = "tls_ca")]
    tls_any_name: bool,
    #[command(flatten)]
    pub(crate) size: MessageSize,
}

fn init_ref(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !url.is_empty() => Ok((name.to_owned(), url.to_owned())),
        _ => Err("not NAME=URL, such as NameService=corbaloc::1.2@example.org/NameService".to_owned()),
    }
}

impl Client {
    /// Returns whether no option was given, except --max-message, which servers have too.
    pub(crate) fn is_default(&self) -> bool {
        let Self { timeout, init_ref, tls_ca, tls_cert, tls_key, tls_any_name, size: _ } = self;
        let files = tls_ca.is_some() || tls_cert.is_some() || tls_key.is_some();
        *timeout == DEFAULT_TIMEOUT && init_ref.is_empty() && !files && !tls_any_name
    }

    /// Creates an ORB that does not listen.
    ///
    /// # Errors
    /// A file for TLS is missing or invalid, or an environment variable for a limit is malformed.
    pub(crate) async fn orb(&self) -> anyhow::Result<Orb> {
        self.orb_as(None).await
    }

    /// Creates an ORB that does not listen, and calls with these credentials.
    ///
    /// # Errors
    /// As for [`orb`](Self::orb).
    pub(crate) async fn orb_as(&self, credentials: Option<Credentials>) -> anyhow::Result<Orb> {
        let mut builder = self.size.of(Orb::builder().timeout(self.timeout).connect_timeout(self.timeout))?;
        if let Some(credentials) = credentials {
            builder = builder.credentials(credentials);
        }
        if !self.init_ref.iter().any(|(name, _)| name == NAMES) {
            builder = builder.init_ref(NAMES, NAMES_HERE);
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

/// Runs the work of a command to its end.
///
/// # Errors
/// Those of `work`, or no runtime can be created.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start")?.block_on(work)
}

/// Waits for Ctrl-C, or the signal that ends services. Signals are caught from this call on, so it must
/// precede the output that announces the service. A second signal ends the process at once.
///
/// # Errors
/// The system rejects a signal handler.
pub(crate) fn ended() -> anyhow::Result<impl Future<Output = ()>> {
    let signal = zorb::signal::Shutdown::new().context("cannot wait for signals")?;
    Ok(async move {
        // Errors were returned above.
        let _ = signal.await;
    })
}
