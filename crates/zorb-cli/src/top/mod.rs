//! `zorb top`: shows the activity of an ORB, according to its admin endpoint.

mod fetch;
mod screen;
mod view;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use crate::Verdict;
use crate::client::block_on;
use crate::options;
use crate::output::{Node, Output, Tone, told};
use fetch::Endpoint;
use view::View;

const EXAMPLES: &str = "\
Examples:
  zorb top 127.0.0.1:9464
  zorb top http://127.0.0.1:9464/ --interval 250ms
  zorb top 127.0.0.1:9464 --once --json

The other program opens its endpoint by OrbBuilder::admin (feature `admin`); zorb serve and zorb names serve by --admin.
Keys: q ends.";

/// Options of `zorb top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// The admin endpoint: http://HOST:PORT/ or HOST:PORT
    #[arg(value_name = "ENDPOINT")]
    endpoint: String,
    /// How often to ask, and over what rates are reckoned
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = options::duration)]
    interval: Duration,
    /// Say once what happens in one interval, and end
    #[arg(long)]
    once: bool,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = options::duration)]
    timeout: Duration,
}

/// Shows an ORB until it is ended by the user; with --once, or as JSON, once.
///
/// # Errors
/// There is no such endpoint, or output fails.
pub(crate) fn run(args: &TopArgs, output: &Output) -> anyhow::Result<Verdict> {
    let endpoint = Endpoint::parse(&args.endpoint, args.timeout)?;
    block_on(async {
        if args.once || output.is_json() {
            let before = endpoint.status().await?;
            tokio::time::sleep(args.interval).await;
            let view = View::of(endpoint.status().await?, Some(&before));
            output.show(&view, tree)?;
        } else {
            let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
            ensure!(terminal, "standard output is no terminal: --once says it once, --json to programs");
            // An initial error is printed on a line of its own, before the terminal is used.
            let first = endpoint.status().await?;
            screen::show(&endpoint, first, args.interval).await.context("the terminal does not take it")?;
        }
        Ok(Verdict::Good)
    })
}

fn tree(view: &View) -> Vec<Node> {
    let mut nodes = vec![
        Node::new("listens at", told(&view.endpoints.join(", "))).tone(Tone::Head),
        Node::new("zorb", told(&view.version)),
        Node::new("uptime", view.uptime_text()),
        Node::new("ready", if view.ready { "yes" } else { "no" }).tone(if view.ready {
            Tone::Good
        } else {
            Tone::Bad
        }),
        Node::new("objects", view.objects.to_string()),
        Node::new("connections", view.open_connections.to_string()),
        Node::new("receive buffers", view.pool_text()),
    ];
    for (name, side) in [("served", &view.served), ("made", &view.made)] {
        let rows = side.iter().map(|row| {
            Node::new(row.method(), row.text()).tone(if row.failures_per_second > 0.0 {
                Tone::Bad
            } else {
                Tone::Plain
            })
        });
        nodes.push(Node::new(name, format!("{:.0} calls/s", View::rate(side))).under(rows));
    }
    let limits =
        view.limits.iter().map(|(name, hits)| Node::new(name, hits.to_string()).tone(Tone::Doubtful));
    nodes.push(Node::new("limits hit", if view.limits.is_empty() { "none" } else { "" }).under(limits));
    nodes
}
