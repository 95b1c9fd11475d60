//! `zorb top`: shows the activity of an ORB, from its admin endpoint.

mod fetch;
mod screen;
mod view;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use crate::client::block_on;
use crate::failure::Verdict;
use crate::options;
use crate::output::{Node, Output, Tone, printable};
use fetch::Endpoint;
use view::View;

const EXAMPLES: &str = "\
Examples:
  zorb top 127.0.0.1:9464
  zorb top http://127.0.0.1:9464/ --interval 250ms
  zorb top 127.0.0.1:9464 --once --json

A program opens its admin endpoint with OrbBuilder::admin (feature `admin`). For zorb serve and zorb names serve, use --admin.
Press q to quit.";

/// Options of `zorb top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// The admin endpoint: http://HOST:PORT/ or HOST:PORT
    #[arg(value_name = "ENDPOINT")]
    endpoint: String,
    /// The time between two queries, for which rates are calculated
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = options::duration)]
    interval: Duration,
    /// Print the activity of one interval and exit
    #[arg(long)]
    once: bool,
    /// The timeout of a query
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = options::duration)]
    timeout: Duration,
}

/// Shows the activity of an ORB until the user quits, or only once with `--once` or `--json`.
pub(crate) fn run(args: &TopArgs, output: &Output) -> anyhow::Result<Verdict> {
    let endpoint = Endpoint::parse(&args.endpoint, args.timeout)?;
    block_on(async {
        if args.once || output.is_json {
            let before = endpoint.fetch_status().await?;
            tokio::time::sleep(args.interval).await;
            let view = View::new(endpoint.fetch_status().await?, Some(&before));
            output.show(&view, tree)?;
        } else {
            let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
            ensure!(terminal, "standard input and output must be a terminal; use --once or --json");
            // If the first query fails, the error is printed before the screen is cleared.
            let first = endpoint.fetch_status().await?;
            screen::show(&endpoint, first, args.interval).await.context("cannot use the terminal")?;
        }
        Ok(Verdict::Good)
    })
}

fn tree(view: &View) -> Vec<Node> {
    let mut nodes = vec![
        Node::new("listening on", printable(&view.endpoints.join(", "))).tone(Tone::Head),
        Node::new("zorb", printable(&view.version)),
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
    for (name, rows) in [("served", &view.served), ("made", &view.made)] {
        let children = rows.iter().map(|row| {
            Node::new(row.method(), row.text()).tone(if row.failures_per_second > 0.0 {
                Tone::Bad
            } else {
                Tone::Plain
            })
        });
        nodes.push(Node::new(name, format!("{:.0} calls/s", View::total_rate(rows))).children(children));
    }
    let limits =
        view.limits.iter().map(|(name, hits)| Node::new(name, hits.to_string()).tone(Tone::Doubtful));
    nodes.push(Node::new("limits hit", if view.limits.is_empty() { "none" } else { "" }).children(limits));
    nodes
}
