//! The options of every experiment.

use std::path::PathBuf;

use clap::Args;

use super::peers::Peer;

/// Options of every experiment.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// Rounds, of which medians are shown (default: by experiment)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Less of everything: seconds in all, to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Only tell how many measurements there would be
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the results; what it has is not measured again (default: a new one in ttcp-results)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write environment and all samples, as one JSON object, to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Only these peers, built-in ones or of `ttcp peers`; `none`: only those of --peer
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub peers: Option<Vec<String>>,
    /// A further peer: NAME=SERVER_CMD::CLIENT_CMD
    ///
    /// Words are split at blanks. {dir} stands for a directory of this run. {host} stands for the address
    /// that servers listen at; without it in its server's words, a peer is measured over loopback only. In
    /// the client's words, {ready} stands for the text after READY in the server's output, {port} for the
    /// digits at its end, and {args} for the test and its options, which otherwise come last. In the server's
    /// words, {check} stands for --check if contents are checked, and otherwise for nothing.
    #[arg(long = "peer", value_name = "NAME=SERVER_CMD::CLIENT_CMD")]
    pub extra: Vec<Peer>,
    /// Keep servers on one core and clients on another: steadier figures, for peers of one thread
    #[arg(long)]
    pub pin: bool,
    /// The longest time that one client may take, seconds
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}
