//! The options of every experiment.

use std::path::PathBuf;

use clap::Args;

use super::peers::Peer;

/// Options of every experiment.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// Number of rounds, over which medians are shown (default: depends on the experiment)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Measure as little as possible, to check in seconds that everything works
    #[arg(long)]
    pub quick: bool,
    /// Only print how many measurements there would be
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the results; measurements that it contains are not repeated (default: a new one in
    /// ttcp-results)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the environments of all runs and all samples to FILE, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measure only these built-in peers or peers of `ttcp peers list`; `none`: only the peers of --peer
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub peers: Option<Vec<String>>,
    /// An additional peer: NAME=SERVER_CMD::CLIENT_CMD
    ///
    /// Commands are split into words at spaces. Placeholders in both commands: {dir} is a directory of this
    /// run; {host} is the address at which servers listen. A peer without {host} in its server command is
    /// measured only over loopback. Placeholders in the client command: {ready} is the text after READY in
    /// the server's output, {port} the digits at the end of this text, {args} the test and its options
    /// (appended by default). Placeholder in the server command: {check} is --check if contents are checked.
    #[arg(long = "peer", value_name = "NAME=SERVER_CMD::CLIENT_CMD")]
    pub extra_peers: Vec<Peer>,
    /// Pin servers to one core and clients to another, so that figures of single-threaded peers vary less
    #[arg(long)]
    pub pin: bool,
    /// Timeout of each client, in seconds
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}
