//! `zorb names serve --etcd`.

use std::path::PathBuf;

use clap::Args;
use cos_naming::store::{EtcdConfig, Reads};

/// Where an etcd cluster is.
#[derive(Debug, Args)]
pub(super) struct EtcdArgs {
    /// Keep names in etcd, for several servers of one service: http://HOST:PORT or https://HOST:PORT of a
    /// member, once for each
    #[arg(long = "etcd", value_name = "URL", conflicts_with_all = ["store", "memory"])]
    members: Vec<String>,
    /// What its keys begin with
    #[arg(long, value_name = "PREFIX", default_value = "/zorb/names", requires = "members")]
    etcd_prefix: String,
    /// The CA certificates that verify the members, for https://
    #[arg(long, value_name = "PEM", requires = "members")]
    etcd_ca: Option<PathBuf>,
    /// This side's certificates, where members ask for them
    #[arg(long, value_name = "PEM", requires_all = ["members", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// And its key
    #[arg(long, value_name = "PEM", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// The user of the login, with the password in the environment variable ZORB_ETCD_PASSWORD
    #[arg(long, value_name = "USER", requires = "members")]
    etcd_user: Option<String>,
    /// Have every lookup ask etcd: none gives what was bound a moment ago, and none works while etcd is away
    #[arg(long, requires = "members")]
    etcd_latest: bool,
}

impl EtcdArgs {
    /// Returns the configuration; `None` if names are not stored in etcd.
    pub(super) fn config(&self) -> anyhow::Result<Option<EtcdConfig>> {
        use anyhow::Context;
        if self.members.is_empty() {
            return Ok(None);
        }
        let mut config = EtcdConfig::new(&self.members).prefix(&self.etcd_prefix);
        if let Some(ca) = &self.etcd_ca {
            config = config.ca(ca);
        }
        if let (Some(certificates), Some(key)) = (&self.etcd_cert, &self.etcd_key) {
            config = config.identity(certificates, key);
        }
        if let Some(user) = &self.etcd_user {
            let password = std::env::var("ZORB_ETCD_PASSWORD");
            config = config.login(user, password.context("--etcd-user needs ZORB_ETCD_PASSWORD")?);
        }
        Ok(Some(if self.etcd_latest { config.reads(Reads::Latest) } else { config }))
    }

    /// Describes the storage location, for people.
    pub(super) fn place(&self) -> PathBuf {
        PathBuf::from(format!("etcd at {}, below {}", self.members.join(", "), self.etcd_prefix))
    }
}
