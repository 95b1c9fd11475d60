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

/// Timeout for establishing a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a failed attempt to connect, and after a connection that the server closed at once.
const PAUSE: Duration = Duration::from_millis(10);
/// Polling interval while attacks start.
const LOOK: Duration = Duration::from_millis(5);
/// Maximum delay that a late pace makes up for.
const MAX_CATCH_UP: Duration = Duration::from_millis(20);

/// Options of `ttcp abuse-attackers`.
#[derive(Debug, Clone, Args)]
pub struct AbuseAttackersArgs {
    /// Address of the attacked server
    #[arg(long)]
    pub server: SocketAddr,
    /// From how many addresses
    #[arg(long)]
    pub addresses: u8,
    /// Slow peers
    #[arg(long)]
    pub peers: u32,
    /// What each attack does a second; 0: as much as it can
    #[arg(long)]
    pub rate: u32,
}

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Attack {
    /// Headers and messages that arrive byte by byte, for ever.
    Slowloris,
    /// Messages that declare huge lengths or counts.
    Bombs,
    /// CancelRequests and LocateRequests for requests and objects that do not exist.
    Cancels,
    /// Connections without requests.
    Connects,
}

impl Attack {
    pub(super) const ALL: [Attack; 4] = [Attack::Slowloris, Attack::Bombs, Attack::Cancels, Attack::Connects];

    /// Returns the attack's name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Attack::Slowloris => "slowloris",
            Attack::Bombs => "length bombs",
            Attack::Cancels => "cancel flood",
            Attack::Connects => "connect flood",
        }
    }
}

/// What attackers did and how the server reacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AttackCounts {
    /// Connections that they opened.
    pub(super) opened: u64,
    /// Connections that they could not open.
    pub(super) refused: u64,
    /// Opened connections that the server closed.
    pub(super) cut: u64,
    /// Messages that they sent or began.
    pub(super) messages: u64,
    /// Bytes that they sent.
    pub(super) octets: u64,
}

/// Atomic counters of [`AttackCounts`], updated during an attack.
#[derive(Debug, Default)]
pub(super) struct AttackCounters {
    opened: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
    messages: AtomicU64,
    octets: AtomicU64,
}

impl AttackCounters {
    /// Counts what was sent.
    pub(super) fn sent(&self, messages: usize, octets: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.octets.fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// Returns whether every peer has tried to connect and has sent the first messages of the attack.
    fn has_begun(&self, attack: Attack, peers: u32) -> bool {
        let counts = self.read();
        counts.opened + counts.refused >= u64::from(peers)
            && counts.messages >= attacks::opening_messages(attack, peers)
    }

    fn read(&self) -> AttackCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AttackCounts {
            opened: of(&self.opened),
            refused: of(&self.refused),
            cut: of(&self.cut),
            messages: of(&self.messages),
            octets: of(&self.octets),
        }
    }
}

/// Pace of turns per second that all peers of an attack share.
#[derive(Debug)]
pub(super) struct Pace {
    between: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// `rate` is in turns a second; 0 means unlimited.
    fn new(rate: u32) -> Pace {
        let between = Duration::from_secs(1).checked_div(rate).unwrap_or_default();
        Pace { between, next: Mutex::new(Instant::now()) }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) {
        if self.between.is_zero() {
            return tokio::task::yield_now().await;
        }
        sleep_until(self.take(Instant::now()).into()).await;
    }

    /// Reserves the next turn and returns its time.
    fn take(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(now.checked_sub(MAX_CATCH_UP).unwrap_or(now));
        *next = turn + self.between;
        turn
    }
}

/// State shared by the peers of an attack.
pub(super) struct AttackState {
    pub(super) pace: Pace,
    pub(super) counters: AttackCounters,
    server: SocketAddr,
    addresses: u8,
}

impl AttackState {
    /// Opens a connection for peer `number`. It is reset when dropped, so that none stays in TIME_WAIT.
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
        let stream = timeout(PATIENCE, connect).await.ok().and_then(Result::ok);
        let count = if stream.is_some() { &self.counters.opened } else { &self.counters.refused };
        count.fetch_add(1, Ordering::Relaxed);
        stream
    }
}

/// Runs the attacks that its orders name, until the orders end.
///
/// # Errors
/// Its threads cannot be started.
pub fn abuse_attackers(args: &AbuseAttackersArgs) -> anyhow::Result<()> {
    crate::system::raise_files();
    crate::priority::lowest().context("attackers at the lowest priority")?;
    let orders = receive_orders(|line| match line.split_once(' ') {
        Some(("attack", which)) => serde_json::from_str(which).ok().map(Order::Attack),
        _ => (line == "rest").then_some(Order::Rest),
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(args, orders))
}

enum Order {
    Attack(Vec<Attack>),
    Rest,
}

async fn serve(args: &AbuseAttackersArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    send_report("READY", &())?;
    let mut states: BTreeMap<Attack, Arc<AttackState>> = BTreeMap::new();
    let mut peers = JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Attack(attacks) => {
                let mut begun = Vec::new();
                for attack in attacks {
                    let state = Arc::new(AttackState {
                        pace: Pace::new(args.rate),
                        counters: AttackCounters::default(),
                        server: args.server,
                        addresses: args.addresses,
                    });
                    let count = attacks::peers(attack, args.peers);
                    for number in 0..count {
                        peers.spawn(attack_for_ever(attack, number, Arc::clone(&state)));
                    }
                    begun.push((attack, count, Arc::clone(&state)));
                    states.insert(attack, state);
                }
                // In a task of its own, so that the order "rest" can arrive before all attacks run.
                peers.spawn(async move {
                    for (attack, count, state) in begun {
                        while !state.counters.has_begun(attack, count) {
                            sleep(LOOK).await;
                        }
                    }
                    // A failed write is ignored: when the parent is gone, the end of the orders ends this
                    // process.
                    let _ = send_report("UNDER_WAY", &());
                });
            }
            Order::Rest => {
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

async fn attack_for_ever(attack: Attack, number: u32, state: Arc<AttackState>) {
    // Turns start at `number`, so that a peer does not do the same with each of its connections.
    for turn in number.. {
        state.pace.turn().await;
        let Some(mut stream) = state.open(number).await else {
            sleep(PAUSE).await;
            continue;
        };
        let begun = Instant::now();
        if attacks::once(attack, number, turn, &mut stream, &state).await.is_err() {
            state.counters.cut.fetch_add(1, Ordering::Relaxed);
            // Pause before reconnecting if the server closed the connection at once.
            if begun.elapsed() < PAUSE && !state.pace.between.is_zero() {
                sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_gives_its_turns_and_makes_good_little() {
        let pace = Pace::new(100);
        let start = Instant::now() + Duration::from_secs(1);
        let turns: Vec<Instant> = (0..4).map(|_| pace.take(start)).collect();
        assert_eq!(turns[0], start - MAX_CATCH_UP);
        assert_eq!(turns[3] - turns[0], Duration::from_millis(30));
        let late = start + Duration::from_secs(60);
        assert_eq!(pace.take(late), late - MAX_CATCH_UP);
    }

    #[test]
    fn orders_name_attacks_as_they_are_written() {
        let text = serde_json::to_string(&Attack::ALL).unwrap();
        assert_eq!(text, r#"["slowloris","bombs","cancels","connects"]"#);
    }
}
