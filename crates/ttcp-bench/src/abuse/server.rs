//! `ttcp abuse-server`: the process that is attacked, and its counters.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use zorb::prelude::*;
use zorb::{Limit, MinorCode, Orb, SystemExceptionKind};

use super::contract::{TARGET, TargetRef, TargetServant};
use crate::cli::Transport;
use crate::harness::child::{receive_orders, send_report};

/// Connections that it accepts in all, and from one address: the ORB's defaults.
pub(super) const CONNECTIONS: (usize, usize) = (1_024, 64);
/// Connections up to which a server with an injected fault behaves correctly.
const SABOTAGE_FREE_CONNECTIONS: usize = 10;
/// Initial delay of a server that is made slow, before the delay is adapted to this machine.
pub(super) const INITIAL_DELAY: Duration = Duration::from_millis(500);

/// How a server is made to err, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// Answers later than is allowed while there are many connections
    Slow,
    /// Refuses calls while there are many connections
    Refuse,
}

/// Options of `ttcp abuse-server`.
#[derive(Debug, Clone, Args)]
pub struct AbuseServerArgs {
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// How it errs
    #[arg(long, value_enum)]
    pub sabotage: Option<Sabotage>,
}

/// The current resources of a server, and its counters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ServerCounters {
    /// Open connections.
    pub(super) connections: u64,
    /// Bytes that the pool of receive buffers holds.
    pub(super) pooled: u64,
    /// How often each limit was hit, by the names of metrics.
    pub(super) limits: BTreeMap<String, u64>,
    /// Messages received.
    pub(super) messages: u64,
    /// Bytes received.
    pub(super) octets: u64,
    /// Connections that fell back from io_uring to epoll.
    pub(super) fallbacks: u64,
}

impl ServerCounters {
    fn of(orb: &Orb) -> ServerCounters {
        let (stats, pool) = (orb.stats(), orb.pool_stats());
        let hits =
            Limit::ALL.iter().map(|limit| (limit.name().to_owned(), u64::from(stats.limits.of(*limit))));
        ServerCounters {
            connections: orb.open_connections() as u64,
            pooled: pool.held as u64,
            limits: hits.filter(|(_, times)| *times > 0).collect(),
            messages: stats.messages_in,
            octets: stats.octets_in,
            fallbacks: orb.transport_stats().fallbacks,
        }
    }

    /// Returns the counts since `before`. Current resources stay as they are.
    pub(super) fn since(mut self, before: &ServerCounters) -> ServerCounters {
        for (limit, times) in &mut self.limits {
            *times -= before.limits.get(limit).copied().unwrap_or_default().min(*times);
        }
        self.limits.retain(|_, times| *times > 0);
        self.messages = self.messages.saturating_sub(before.messages);
        self.octets = self.octets.saturating_sub(before.octets);
        self
    }
}

/// Serves until its orders end.
///
/// # Errors
/// It cannot listen.
pub fn abuse_server(args: &AbuseServerArgs) -> anyhow::Result<()> {
    crate::system::raise_files();
    let orders = receive_orders(Order::of)?;
    let args = args.clone();
    // Runs as a task of the runtime rather than as its root future, as servers usually do.
    crate::soak::runtime(args.transport)?.block_on(async { tokio::spawn(serve(args, orders)).await? })
}

#[derive(Debug, Clone, Copy)]
enum Order {
    State,
    /// The delay of a slow server from now on.
    Late(Duration),
    End,
}

impl Order {
    fn of(line: &str) -> Option<Order> {
        match line.split_once(' ') {
            None if line == "state" => Some(Order::State),
            None if line == "end" => Some(Order::End),
            Some(("late", millis)) => millis.parse().ok().map(Duration::from_millis).map(Order::Late),
            _ => None,
        }
    }
}

async fn serve(args: AbuseServerArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let (all, each) = CONNECTIONS;
    let builder = Orb::builder().transport(args.transport.into()).listen("iiop://127.0.0.1:0");
    let orb = builder.max_connections(all, each).build().await?;
    let (late, is_late) = watch::channel(INITIAL_DELAY);
    let target = Target { orb: orb.clone(), sabotage: args.sabotage, late: is_late };
    orb.activate_named::<TargetRef, _>(TARGET, target)?;
    let address = orb.endpoints().into_iter().next().context("it listens nowhere")?.to_string();
    send_report("READY", &address)?;
    while let Some(order) = orders.recv().await {
        match order {
            Order::State => send_report("STATE", &ServerCounters::of(&orb))?,
            Order::Late(by) => drop(late.send(by)),
            Order::End => break,
        }
    }
    orb.shutdown().await;
    Ok(())
}

struct Target {
    orb: Orb,
    sabotage: Option<Sabotage>,
    late: watch::Receiver<Duration>,
}

impl TargetServant for Target {
    async fn echo(&self, value: Bytes) -> Result<Bytes, SystemException> {
        let many = self.sabotage.is_some() && self.orb.open_connections() > SABOTAGE_FREE_CONNECTIONS;
        match self.sabotage {
            Some(Sabotage::Slow) if many => {
                let late = *self.late.borrow();
                tokio::time::sleep(late).await;
            }
            Some(Sabotage::Refuse) if many => {
                let kind = SystemExceptionKind::NoResources;
                return Err(SystemException::new(kind, MinorCode::NONE, CompletionStatus::No));
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
    fn what_was_counted_before_is_not_counted_again() {
        let counted = |limits: &[(&str, u64)], messages| ServerCounters {
            connections: 5,
            limits: limits.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect(),
            messages,
            ..ServerCounters::default()
        };
        let since = counted(&[("a", 3), ("b", 2), ("c", 1)], 9).since(&counted(&[("a", 1), ("b", 2)], 4));
        assert_eq!((since.connections, since.messages), (5, 5));
        assert_eq!(since.limits, BTreeMap::from([("a".to_owned(), 2), ("c".to_owned(), 1)]));
    }
}
