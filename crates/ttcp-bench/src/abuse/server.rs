//! `ttcp abuse-server`: the server process, and its counters.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use zorb::prelude::*;
use zorb::{Limit, Orb};

use super::contract::{TARGET, TargetRef, TargetServant};
use crate::cli::Transport;
use crate::harness::child::{receive_orders, send_report};

/// Maximum number of connections, in total and from one address: the ORB's defaults.
pub(super) const MAX_CONNECTIONS: (usize, usize) = (1_024, 64);
/// A sabotaged server misbehaves only if it has more connections than this.
const SABOTAGE_FREE_CONNECTIONS: usize = 10;
/// The delay of a slow server, until the delay is adapted to this machine.
pub(super) const INITIAL_DELAY: Duration = Duration::from_millis(500);

/// Intended misbehaviour of a server, to test that it is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// Delays replies while there are many connections
    Slow,
    /// Rejects calls while there are many connections
    Refuse,
}

/// Options of `ttcp abuse-server`.
#[derive(Debug, Clone, Args)]
pub struct AbuseServerArgs {
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Intended misbehaviour
    #[arg(long, value_enum)]
    pub sabotage: Option<Sabotage>,
}

/// The current resources of a server, and its counters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ServerCounters {
    pub(super) connections: u64,
    /// Number of bytes in the pool of receive buffers.
    #[serde(rename = "pooled")]
    pub(super) pooled_bytes: u64,
    /// How often each limit was reached. Keys are the limits' names in metrics.
    #[serde(rename = "limits")]
    pub(super) limit_hits: BTreeMap<String, u64>,
    pub(super) messages: u64,
    #[serde(rename = "octets")]
    pub(super) received_bytes: u64,
    /// How often epoll was used because io_uring was not available.
    pub(super) fallbacks: u64,
}

impl ServerCounters {
    fn of(orb: &Orb) -> ServerCounters {
        let (stats, pool) = (orb.stats(), orb.pool_stats());
        let hits =
            Limit::ALL.iter().map(|limit| (limit.name().to_owned(), u64::from(stats.limit_hits.of(*limit))));
        ServerCounters {
            connections: orb.open_connections() as u64,
            pooled_bytes: pool.held as u64,
            limit_hits: hits.filter(|(_, times)| *times > 0).collect(),
            messages: stats.messages_in,
            received_bytes: stats.bytes_in,
            fallbacks: orb.transport_stats().fallbacks,
        }
    }

    /// Subtracts the limit hits, messages and bytes of `earlier`. The other numbers remain.
    pub(super) fn since(mut self, earlier: &ServerCounters) -> ServerCounters {
        for (limit, times) in &mut self.limit_hits {
            *times -= earlier.limit_hits.get(limit).copied().unwrap_or_default().min(*times);
        }
        self.limit_hits.retain(|_, times| *times > 0);
        self.messages = self.messages.saturating_sub(earlier.messages);
        self.received_bytes = self.received_bytes.saturating_sub(earlier.received_bytes);
        self
    }
}

/// Serves requests until `end` is ordered on stdin, or stdin is closed.
pub fn abuse_server(args: &AbuseServerArgs) -> anyhow::Result<()> {
    crate::system::raise_open_file_limit();
    let orders = receive_orders(Order::parse)?;
    let args = args.clone();
    // The server is spawned as a task, because servers usually run in tasks.
    crate::soak::runtime(args.transport)?.block_on(async { tokio::spawn(run(args, orders)).await? })
}

#[derive(Debug, Clone, Copy)]
enum Order {
    State,
    Delay(Duration),
    End,
}

impl Order {
    fn parse(line: &str) -> Option<Order> {
        match line.split_once(' ') {
            None if line == "state" => Some(Order::State),
            None if line == "end" => Some(Order::End),
            Some(("delay", millis)) => millis.parse().ok().map(Duration::from_millis).map(Order::Delay),
            _ => None,
        }
    }
}

async fn run(args: AbuseServerArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let (all, each) = MAX_CONNECTIONS;
    let builder = Orb::builder().transport(args.transport.into()).listen("iiop://127.0.0.1:0");
    let orb = builder.max_connections(all, each).build().await?;
    let (delay_sender, delay) = watch::channel(INITIAL_DELAY);
    let target = Target { orb: orb.clone(), sabotage: args.sabotage, delay };
    orb.activate_named::<TargetRef, _>(TARGET, target)?;
    let address = orb.endpoints().into_iter().next().context("the server has no endpoint")?.to_string();
    send_report("READY", &address)?;
    while let Some(order) = orders.recv().await {
        match order {
            Order::State => send_report("STATE", &ServerCounters::of(&orb))?,
            Order::Delay(delay) => drop(delay_sender.send(delay)),
            Order::End => break,
        }
    }
    orb.shutdown().await;
    Ok(())
}

struct Target {
    orb: Orb,
    sabotage: Option<Sabotage>,
    delay: watch::Receiver<Duration>,
}

impl TargetServant for Target {
    async fn echo(&self, value: Bytes) -> Result<Bytes, SystemException> {
        let is_crowded = self.sabotage.is_some() && self.orb.open_connections() > SABOTAGE_FREE_CONNECTIONS;
        match self.sabotage {
            Some(Sabotage::Slow) if is_crowded => {
                let delay = *self.delay.borrow();
                tokio::time::sleep(delay).await;
            }
            Some(Sabotage::Refuse) if is_crowded => {
                return Err(SystemException::no_resources());
            }
            _ => {}
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_counts_are_subtracted() {
        let counters = |limits: &[(&str, u64)], messages| ServerCounters {
            connections: 5,
            limit_hits: limits.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect(),
            messages,
            ..ServerCounters::default()
        };
        let since = counters(&[("a", 3), ("b", 2), ("c", 1)], 9).since(&counters(&[("a", 1), ("b", 2)], 4));
        assert_eq!((since.connections, since.messages), (5, 5));
        assert_eq!(since.limit_hits, BTreeMap::from([("a".to_owned(), 2), ("c".to_owned(), 1)]));
    }
}
