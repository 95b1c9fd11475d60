//! `ttcp abuse-attackers`: the process that runs the attacks against a server.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::attacks;
use crate::harness::child::{receive_orders, send_report};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed attempt to connect, and after a connection that the server closed immediately.
const RECONNECT_PAUSE: Duration = Duration::from_millis(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum delay that is compensated by a higher rate afterwards.
const MAX_CATCH_UP: Duration = Duration::from_millis(20);

/// Options of `ttcp abuse-attackers`.
#[derive(Debug, Clone, Args)]
pub struct AbuseAttackersArgs {
    /// Address of the attacked server
    #[arg(long)]
    pub server: SocketAddr,
    /// Number of addresses to attack from
    #[arg(long)]
    pub addresses: u8,
    /// Number of slow peers
    #[arg(long)]
    pub peers: u32,
    /// Rate of each attack per second; 0: unlimited
    #[arg(long)]
    pub rate: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Attack {
    /// Headers and messages that arrive byte by byte, and never completely.
    Slowloris,
    /// Messages with huge sizes, lengths or counts.
    Bombs,
    /// CancelRequests and LocateRequests for requests and objects that do not exist.
    Cancels,
    /// Connections without requests.
    Connects,
}

impl Attack {
    pub(super) const ALL: [Attack; 4] = [Attack::Slowloris, Attack::Bombs, Attack::Cancels, Attack::Connects];

    pub(super) fn name(self) -> &'static str {
        match self {
            Attack::Slowloris => "slowloris",
            Attack::Bombs => "length bombs",
            Attack::Cancels => "cancel flood",
            Attack::Connects => "connect flood",
        }
    }
}

/// What the attackers did, and how the server reacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttackCounts {
    pub(super) opened: u64,
    /// Number of connections that could not be opened.
    pub(super) refused: u64,
    /// Number of opened connections that the server closed.
    #[serde(rename = "cut")]
    pub(super) closed_by_server: u64,
    pub(super) messages: u64,
    #[serde(rename = "octets")]
    pub(super) sent_bytes: u64,
}

/// The counters during an attack, from which [`AttackCounts`] is read.
#[derive(Debug, Default)]
pub(super) struct AttackCounters {
    opened: AtomicU64,
    refused: AtomicU64,
    closed_by_server: AtomicU64,
    messages: AtomicU64,
    sent_bytes: AtomicU64,
}

impl AttackCounters {
    pub(super) fn count_sent(&self, messages: usize, bytes: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns whether every peer has tried to connect and has sent the first messages of the attack.
    fn has_begun(&self, attack: Attack, peers: u32) -> bool {
        let counts = self.read();
        counts.opened + counts.refused >= u64::from(peers)
            && counts.messages >= attacks::opening_message_count(attack, peers)
    }

    fn read(&self) -> AttackCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AttackCounts {
            opened: load(&self.opened),
            refused: load(&self.refused),
            closed_by_server: load(&self.closed_by_server),
            messages: load(&self.messages),
            sent_bytes: load(&self.sent_bytes),
        }
    }
}

/// The rate at which all peers of an attack together take turns.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// Creates a pace of `rate` turns per second; 0 means unlimited.
    fn new(rate: u32) -> Pace {
        let interval = Duration::from_secs(1).checked_div(rate).unwrap_or_default();
        Pace { interval, next: Mutex::new(Instant::now()) }
    }

    pub(super) async fn wait_for_turn(&self) {
        if self.interval.is_zero() {
            return tokio::task::yield_now().await;
        }
        sleep_until(self.reserve_turn(Instant::now()).into()).await;
    }

    /// Reserves the next turn and returns its time.
    fn reserve_turn(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(now.checked_sub(MAX_CATCH_UP).unwrap_or(now));
        *next = turn + self.interval;
        turn
    }
}

pub(super) struct AttackState {
    pub(super) pace: Pace,
    pub(super) counters: AttackCounters,
    server: SocketAddr,
    addresses: u8,
}

impl AttackState {
    /// Opens a connection for peer `number`. Dropping it resets the connection, so that it does not stay in
    /// the state TIME_WAIT.
    async fn open(&self, number: u32) -> Option<TcpStream> {
        let host = 2 + (number % u32::from(self.addresses.max(1))) as u8;
        let connect = async {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into())?;
            let stream = socket.connect(self.server).await?;
            stream.set_nodelay(true)?;
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            std::io::Result::Ok(stream)
        };
        let stream = timeout(CONNECT_TIMEOUT, connect).await.ok().and_then(Result::ok);
        let count = if stream.is_some() { &self.counters.opened } else { &self.counters.refused };
        count.fetch_add(1, Ordering::Relaxed);
        stream
    }
}

/// Runs the attacks that are ordered on stdin, until stdin is closed.
pub fn abuse_attackers(args: &AbuseAttackersArgs) -> anyhow::Result<()> {
    crate::system::raise_open_file_limit();
    crate::priority::set_lowest().context("cannot set the lowest priority")?;
    let orders = receive_orders(|line| match line.split_once(' ') {
        Some(("attack", attacks)) => serde_json::from_str(attacks).ok().map(Order::Attack),
        _ => (line == "stop").then_some(Order::Stop),
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(args, orders))
}

enum Order {
    /// Start these attacks, and report STARTED when all peers attack.
    Attack(Vec<Attack>),
    Stop,
}

async fn run(args: &AbuseAttackersArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    send_report("READY", &())?;
    let mut states: BTreeMap<Attack, Arc<AttackState>> = BTreeMap::new();
    let mut peers = JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Attack(attacks) => {
                let mut started = Vec::new();
                for attack in attacks {
                    let state = Arc::new(AttackState {
                        pace: Pace::new(args.rate),
                        counters: AttackCounters::default(),
                        server: args.server,
                        addresses: args.addresses,
                    });
                    let count = attacks::peer_count(attack, args.peers);
                    for number in 0..count {
                        peers.spawn(attack_repeatedly(attack, number, Arc::clone(&state)));
                    }
                    started.push((attack, count, Arc::clone(&state)));
                    states.insert(attack, state);
                }
                // This is a separate task, so that the next order can be executed before all peers attack.
                peers.spawn(async move {
                    for (attack, count, state) in started {
                        while !state.counters.has_begun(attack, count) {
                            sleep(POLL_INTERVAL).await;
                        }
                    }
                    // A failed write is ignored: if the parent has died, the end of stdin ends this process.
                    let _ = send_report("STARTED", &());
                });
            }
            Order::Stop => {
                peers.shutdown().await;
                let counts: BTreeMap<Attack, AttackCounts> =
                    states.iter().map(|(attack, state)| (*attack, state.counters.read())).collect();
                states.clear();
                send_report("COUNTS", &counts)?;
            }
        }
    }
    Ok(())
}

async fn attack_repeatedly(attack: Attack, number: u32, state: Arc<AttackState>) {
    // Starts at `number`, so that peers do not all perform the same variant of the attack.
    for turn in number.. {
        state.pace.wait_for_turn().await;
        let Some(mut stream) = state.open(number).await else {
            sleep(RECONNECT_PAUSE).await;
            continue;
        };
        let start = Instant::now();
        if attacks::attack_once(attack, number, turn, &mut stream, &state).await.is_err() {
            state.counters.closed_by_server.fetch_add(1, Ordering::Relaxed);
            // Pauses before the next connection if the server closed this one immediately.
            if start.elapsed() < RECONNECT_PAUSE && !state.pace.interval.is_zero() {
                sleep(RECONNECT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_have_equal_intervals_and_compensate_only_short_delays() {
        let pace = Pace::new(100);
        let start = Instant::now() + Duration::from_secs(1);
        let turns: Vec<Instant> = (0..4).map(|_| pace.reserve_turn(start)).collect();
        assert_eq!(turns[0], start - MAX_CATCH_UP);
        assert_eq!(turns[3] - turns[0], Duration::from_millis(30));
        let late = start + Duration::from_secs(60);
        assert_eq!(pace.reserve_turn(late), late - MAX_CATCH_UP);
    }

    #[test]
    fn attacks_have_lowercase_names_in_json() {
        let text = serde_json::to_string(&Attack::ALL).unwrap();
        assert_eq!(text, r#"["slowloris","bombs","cancels","connects"]"#);
    }
}
