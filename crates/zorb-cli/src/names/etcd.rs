//! The options of `zorb names serve` for names that are stored in etcd.

use std::path::PathBuf;

use clap::Args;
use cos_naming::store::{EtcdConfig, ReadConsistency};

/// Options for names in etcd.
#[derive(Debug, Args)]
pub(super) struct EtcdArgs {
    /// Store the names in etcd, so that several servers can share them. The URL is http://HOST:PORT or
    /// https://HOST:PORT of a member of the etcd cluster; repeat the option for each member
    #[arg(long = "etcd", value_name = "URL", conflicts_with_all = ["store", "memory"])]
    members: Vec<String>,
    /// The prefix of all keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/zorb/names", requires = "members")]
    etcd_prefix: String,
    /// The CA certificates with which the members are verified, for https://
    #[arg(long, value_name = "PEM", requires = "members")]
    etcd_ca: Option<PathBuf>,
    /// The client certificates, if the members require them
    #[arg(long, value_name = "PEM", requires_all = ["members", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// The private key of the client certificates
    #[arg(long, value_name = "PEM", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// The user for the login to etcd; the password is read from the environment variable ZORB_ETCD_PASSWORD
    #[arg(long, value_name = "USER", requires = "members")]
    etcd_user: Option<String>,
    /// Query etcd for every lookup, which is then never outdated, but fails while etcd is unavailable
    #[arg(long, requires = "members")]
    etcd_latest: bool,
}

impl EtcdArgs {
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
            config = config.login(
                user,
                password.context("--etcd-user requires the environment variable ZORB_ETCD_PASSWORD")?,
            );
        }
        Ok(Some(if self.etcd_latest { config.read_consistency(ReadConsistency::Latest) } else { config }))
    }

    /// Returns a description of where the names are stored.
    pub(super) fn location(&self) -> PathBuf {
        PathBuf::from(format!("etcd at {}, below {}", self.members.join(", "), self.etcd_prefix))
    }
}
