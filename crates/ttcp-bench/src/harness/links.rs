//! Links that are slower than this machine's loopback device: a pair of virtual devices, each in a network
//! namespace of its own, with a limited rate. Also links to other machines.
//!
//! A namespace exists as long as it has a process. Each namespace here has one process, which ends when its
//! stdin does. The kernel closes that when this program ends, in whatever way, and removes the namespaces and
//! their devices. They have no names.

use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use super::children::{Children, Process, ProcessEvent};
use super::peers::Failure;
use super::placement::Placement;

/// The addresses of both ends, which are reserved for benchmarks (RFC 2544).
const NEAR: &str = "198.18.0.1";
const FAR: &str = "198.18.0.2";
/// Timeout for a namespace to be created.
const START: Duration = Duration::from_secs(10);
/// The shell command of a namespace's process: it reports its start, then waits for the end of stdin.
const HOLD_COMMAND: &str = "echo HELD; exec cat";
/// Smallest and largest MTU of IPv4 over such devices.
const MTU: std::ops::RangeInclusive<u32> = 576..=65_535;

/// The link between client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The loopback device.
    Loopback,
    /// A pair of devices with this rate, in Mbit/s, and packets of at most so many bytes.
    Shaped(u32, u32),
    /// The network between this machine and that host, and the command that runs a shell line there.
    Away(String, Vec<String>),
}

impl Link {
    /// Returns its name in cells.
    pub(crate) fn name(&self) -> String {
        match self {
            Link::Loopback => "loopback".to_owned(),
            Link::Shaped(rate, mtu) => format!("{rate} Mbit/s, MTU {mtu}"),
            Link::Away(host, _) => host.clone(),
        }
    }

    /// Returns the user bytes that it carries in about a quarter of a second, for links that are known to be
    /// slow.
    pub(crate) fn carries(&self) -> Option<u64> {
        match self {
            Link::Shaped(rate, _) => Some(1 << (u64::from(*rate) * 1_000_000 / 32).ilog2()),
            _ => None,
        }
    }
}

impl FromStr for Link {
    type Err = String;

    /// Parses `loopback`, a rate in Mbit/s, or rate and MTU separated by a colon.
    fn from_str(text: &str) -> Result<Link, String> {
        if text == "loopback" {
            return Ok(Link::Loopback);
        }
        let bad =
            || format!("'{text}' is no link: write loopback, or MBIT_S or MBIT_S:MTU, such as 155:9180");
        let (rate, mtu) = match text.split_once(':') {
            Some((rate, mtu)) => (rate, mtu.parse().map_err(|_| bad())?),
            // The links of the published experiments were ATM, which carries larger packets than an Ethernet.
            None => (text, if ["155", "622"].contains(&text) { 9_180 } else { 1_500 }),
        };
        match rate.parse() {
            Ok(rate @ 1..=100_000) if MTU.contains(&mtu) => Ok(Link::Shaped(rate, mtu)),
            _ => Err(bad()),
        }
    }
}

/// The link that is set up now.
#[derive(Default)]
pub(crate) struct ActiveLink {
    current: Option<(Link, DevicePair)>,
}

impl ActiveLink {
    /// Returns the placement of processes that are connected by this link. The link remains until another is
    /// requested.
    ///
    /// # Errors
    /// [`Failure::Link`], or the user interrupts.
    pub(crate) fn placement(&mut self, link: &Link, children: &mut Children) -> Result<Placement, Failure> {
        match link {
            Link::Loopback => Ok(Placement::loopback()),
            Link::Away(host, shell) => Ok(Placement::remote(host, shell.clone())),
            Link::Shaped(rate, mtu) => {
                if !self.current.as_ref().is_some_and(|(is, _)| is == link) {
                    self.current = None;
                    self.current = Some((link.clone(), DevicePair::create(children, *rate, *mtu)?));
                }
                Ok(self.current.as_ref().map_or_else(Placement::loopback, |(_, pair)| pair.placement.clone()))
            }
        }
    }
}

/// Checks whether shaped links can be set up here.
///
/// # Errors
/// The reason why they cannot.
pub(crate) fn available() -> Result<(), String> {
    Privilege::find().map(drop)
}

/// The privilege by which this user creates network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Privilege {
    /// As root.
    Root,
    /// As root of a user namespace.
    User,
}

impl Privilege {
    /// Finds a privilege that works, by setting up the parts of a link in a new namespace.
    fn find() -> Result<Privilege, String> {
        let devices = "ip link add near type veth peer name far && tc qdisc replace dev near root tbf rate 1mbit burst 32kb latency 50ms";
        let mut refused = String::new();
        for privilege in [Privilege::Root, Privilege::User] {
            let words = privilege.unshare().into_iter().chain(["sh", "-c", devices].map(String::from));
            match run(words.collect()) {
                Ok(()) => return Ok(privilege),
                Err(why) => refused = why,
            }
        }
        Err(format!(
            "network namespaces with shaped devices cannot be made here ({refused}): that takes root, or user namespaces, and iproute2"
        ))
    }

    fn unshare(self) -> Vec<String> {
        let words: &[&str] = match self {
            Privilege::Root => &["unshare", "--net"],
            Privilege::User => &["unshare", "--user", "--map-root-user", "--net"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// A pair of devices, and the processes that keep their namespaces.
struct DevicePair {
    placement: Placement,
    _ends: [Process; 2],
}

impl DevicePair {
    fn create(children: &mut Children, rate: u32, mtu: u32) -> Result<DevicePair, Failure> {
        let failed = |reason: String| Failure::Link { link: Link::Shaped(rate, mtu).name(), reason };
        let privilege = Privilege::find().map_err(failed)?;
        let near = hold(children, privilege.unshare(), failed)?;
        let near_pid = near.pid().as_raw_nonzero();
        // A user has no rights in the namespaces of others, so the second one is created within the first.
        let user: Vec<String> = match privilege {
            Privilege::Root => vec!["nsenter".into()],
            Privilege::User => {
                vec![
                    "nsenter".into(),
                    format!("--user=/proc/{near_pid}/ns/user"),
                    "--preserve-credentials".into(),
                ]
            }
        };
        let unshare = match privilege {
            Privilege::Root => privilege.unshare(),
            Privilege::User => [user.clone(), Privilege::Root.unshare()].concat(),
        };
        let far = hold(children, unshare, failed)?;
        let far_pid = far.pid().as_raw_nonzero();
        let enter = |pid| [user.clone(), vec![format!("--net=/proc/{pid}/ns/net")]].concat();
        let (into_near, into_far) = (enter(near_pid), enter(far_pid));
        let tool = |into: &[String], line: String| {
            run(into.iter().cloned().chain(line.split(' ').map(String::from)).collect()).map_err(failed)
        };
        tool(&into_near, format!("ip link add near type veth peer name far netns {far_pid}"))?;
        // The burst of the queue, sent at once, is a few packets; `latency` is how long a packet may stay in
        // the queue.
        let burst = (rate * 32).max(4 * mtu).max(16 << 10);
        for (into, device, address) in [(&into_near, "near", NEAR), (&into_far, "far", FAR)] {
            tool(into, format!("ip addr add {address}/30 dev {device}"))?;
            tool(into, "ip link set lo up".into())?;
            // Each segment is a packet of its own, as on a real network: by default such devices pass 64 KiB
            // at a time.
            tool(into, format!("ip link set {device} up mtu {mtu} gso_max_segs 1"))?;
            tool(
                into,
                format!("tc qdisc replace dev {device} root tbf rate {rate}mbit burst {burst} latency 50ms"),
            )?;
        }
        Ok(DevicePair { placement: Placement::over_link(FAR, into_far, into_near), _ends: [near, far] })
    }
}

/// Starts a process in a namespace that these words create, and waits until it is there.
fn hold(
    children: &mut Children,
    unshare: Vec<String>,
    failed: impl Fn(String) -> Failure,
) -> Result<Process, Failure> {
    let words: Vec<String> =
        unshare.into_iter().chain(["sh", "-c", HOLD_COMMAND].map(String::from)).collect();
    let mut process = children.start(&words, None).map_err(|error| failed(error.to_string()))?;
    match children.next_event(&process, None, Instant::now() + START) {
        ProcessEvent::Line(line) if line == "HELD" => Ok(process),
        ProcessEvent::Interrupted => Err(Failure::Interrupted),
        heard => {
            process.stop();
            Err(failed(format!("a network namespace is not made ({heard:?}): {}", process.stderr())))
        }
    }
}

/// Runs a command of the system.
fn run(words: Vec<String>) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{}: {}", words.join(" "), text.lines().next().unwrap_or("it fails")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written_by_rate_and_mtu() {
        let link = |text: &str| text.parse::<Link>();
        assert_eq!(link("loopback"), Ok(Link::Loopback));
        assert_eq!(link("155"), Ok(Link::Shaped(155, 9_180)));
        assert_eq!(link("1000"), Ok(Link::Shaped(1_000, 1_500)));
        assert_eq!(link("10:576"), Ok(Link::Shaped(10, 576)));
        for bad in ["", "0", "atm", "155:", "155:20", ":1500", "1e3", "200000", "1:70000"] {
            assert!(link(bad).unwrap_err().contains("write loopback, or MBIT_S"), "{bad}");
        }
        assert_eq!(link("622").unwrap().name(), "622 Mbit/s, MTU 9180");
        assert_eq!(link("155").unwrap().carries(), Some(4 << 20));
        assert_eq!(Link::Loopback.carries(), None);
    }

    /// A link of 10 Mbit/s limits any sender, and everything is removed afterwards.
    #[test]
    fn a_link_is_as_slow_as_it_says_and_goes_with_its_holders() {
        if let Err(why) = available() {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("SKIPPED: {why}");
            return;
        }
        let mut children = Children::new();
        let mut active = ActiveLink::default();
        let placement = active.placement(&Link::Shaped(10, 1_500), &mut children).unwrap();
        assert_eq!(placement.host, FAR);
        let holders: Vec<String> = active
            .current
            .iter()
            .flat_map(|(_, pair)| &pair._ends)
            .map(|end| end.pid().as_raw_nonzero().to_string())
            .collect();
        let shown = |command: &str| {
            let words = placement.client_command(command.split(' ').map(String::from).collect());
            String::from_utf8(Command::new(&words[0]).args(&words[1..]).output().unwrap().stdout).unwrap()
        };
        let device = shown("ip -d link show dev near");
        assert!(device.contains("mtu 1500") && device.contains("state UP"), "{device}");
        let queue = shown("tc qdisc show dev near");
        assert!(queue.contains("tbf") && queue.contains("rate 10Mbit"), "{queue}");
        // The same link is not set up twice; another one replaces it.
        let again = active.placement(&Link::Shaped(10, 1_500), &mut children).unwrap();
        assert_eq!(again.client_command(vec![]), placement.client_command(vec![]));
        drop(active);
        for pid in holders {
            assert!(!std::fs::exists(format!("/proc/{pid}/ns/net")).unwrap(), "{pid} is left");
        }
    }
}
