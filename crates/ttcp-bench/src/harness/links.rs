//! Network links between client and server: the loopback device, a pair of virtual devices with a limited
//! rate, or the network to another machine.
//!
//! Each virtual device is in a network namespace of its own, which exists as long as it has a process. Each
//! of these namespaces has only one process, which ends when its stdin is closed. When this program ends, the
//! kernel closes the stdin of these processes, and then removes the namespaces and their devices.

use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use super::children::{Children, Process, ProcessEvent};
use super::peers::Failure;
use super::placement::Placement;

// Addresses that are reserved for benchmarks (RFC 2544).
const CLIENT_ADDRESS: &str = "198.18.0.1";
const SERVER_ADDRESS: &str = "198.18.0.2";
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The shell command of the process in a namespace. It reports its start, and waits until stdin is closed.
const NAMESPACE_COMMAND: &str = "echo HELD; exec cat";
const MTU_RANGE: std::ops::RangeInclusive<u32> = 576..=65_535;

/// The link between client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Loopback,
    /// A pair of virtual devices with a rate limit in Mbit/s and a maximum packet size (MTU) in bytes.
    Shaped(u32, u32),
    /// The network between this machine and a host, and the command that runs a shell line on the host.
    Remote(String, Vec<String>),
}

impl Link {
    pub(crate) fn name(&self) -> String {
        match self {
            Link::Loopback => "loopback".to_owned(),
            Link::Shaped(rate, mtu) => format!("{rate} Mbit/s, MTU {mtu}"),
            Link::Remote(host, _) => host.clone(),
        }
    }

    /// Returns the number of bytes that a shaped link transfers in a quarter of a second, rounded down to a
    /// power of two; `None` for other links.
    pub(crate) fn bytes_per_quarter_second(&self) -> Option<u64> {
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
        const FORM: &str = "loopback, MBIT_S, or MBIT_S:MTU, such as 155:9180 (at most 100000:65535)";
        let bad = || format!("'{text}' is not a link: write {FORM}");
        let (rate, mtu) = match text.split_once(':') {
            Some((rate, mtu)) => (rate, mtu.parse().map_err(|_| bad())?),
            // These are the rates of ATM links, which had a larger MTU than Ethernet.
            None => (text, if ["155", "622"].contains(&text) { 9_180 } else { 1_500 }),
        };
        match rate.parse() {
            Ok(rate @ 1..=100_000) if MTU_RANGE.contains(&mtu) => Ok(Link::Shaped(rate, mtu)),
            _ => Err(bad()),
        }
    }
}

/// The shaped link that is set up at the moment, if any.
#[derive(Default)]
pub(crate) struct ActiveLink {
    current: Option<(Link, DevicePair)>,
}

impl ActiveLink {
    /// Sets up the link if necessary, and returns the placement of processes at its ends. A shaped link
    /// remains until another shaped link is requested, or this value is dropped.
    pub(crate) fn placement(&mut self, link: &Link, children: &mut Children) -> Result<Placement, Failure> {
        match link {
            Link::Loopback => Ok(Placement::loopback()),
            Link::Remote(host, shell) => Ok(Placement::remote(host, shell.clone())),
            Link::Shaped(rate, mtu) => {
                if !self.current.as_ref().is_some_and(|(current, _)| current == link) {
                    self.current = None;
                    self.current = Some((link.clone(), DevicePair::create(children, *rate, *mtu)?));
                }
                Ok(self.current.as_ref().map_or_else(Placement::loopback, |(_, pair)| pair.placement.clone()))
            }
        }
    }
}

/// Checks whether shaped links can be set up here. Returns the reason if they cannot.
pub(crate) fn check_available() -> Result<(), String> {
    Privilege::find().map(drop)
}

/// The privilege by which this user creates network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Privilege {
    Root,
    UserNamespace,
}

impl Privilege {
    /// Finds a privilege that suffices, by setting up the devices of a link in a new namespace.
    fn find() -> Result<Privilege, String> {
        let devices = "ip link add near type veth peer name far && tc qdisc replace dev near root tbf rate 1mbit burst 32kb latency 50ms";
        let mut reason = String::new();
        for privilege in [Privilege::Root, Privilege::UserNamespace] {
            let words = privilege.unshare_prefix().into_iter().chain(["sh", "-c", devices].map(String::from));
            match run(words.collect()) {
                Ok(()) => return Ok(privilege),
                Err(error) => reason = error,
            }
        }
        Err(format!(
            "network namespaces with shaped devices cannot be created ({reason}): they require iproute2, and root or user namespaces"
        ))
    }

    /// Returns the prefix of a command that runs in a new network namespace.
    fn unshare_prefix(self) -> Vec<String> {
        let words: &[&str] = match self {
            Privilege::Root => &["unshare", "--net"],
            Privilege::UserNamespace => &["unshare", "--user", "--map-root-user", "--net"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Two connected devices: `near` at the client, and `far` at the server.
struct DevicePair {
    placement: Placement,
    _namespaces: [Process; 2],
}

impl DevicePair {
    fn create(children: &mut Children, rate: u32, mtu: u32) -> Result<DevicePair, Failure> {
        let failed = |reason: String| Failure::Link { link: Link::Shaped(rate, mtu).name(), reason };
        let privilege = Privilege::find().map_err(failed)?;
        let near = start_namespace(children, privilege.unshare_prefix(), failed)?;
        let near_pid = near.pid().as_raw_nonzero();
        // The second network namespace is created in the user namespace of the first one, because processes
        // of another user namespace would have no rights to the first network namespace.
        let enter_user: Vec<String> = match privilege {
            Privilege::Root => vec!["nsenter".into()],
            Privilege::UserNamespace => {
                vec![
                    "nsenter".into(),
                    format!("--user=/proc/{near_pid}/ns/user"),
                    "--preserve-credentials".into(),
                ]
            }
        };
        let unshare = match privilege {
            Privilege::Root => privilege.unshare_prefix(),
            Privilege::UserNamespace => [enter_user.clone(), Privilege::Root.unshare_prefix()].concat(),
        };
        let far = start_namespace(children, unshare, failed)?;
        let far_pid = far.pid().as_raw_nonzero();
        let enter = |pid| [enter_user.clone(), vec![format!("--net=/proc/{pid}/ns/net")]].concat();
        let (enter_near, enter_far) = (enter(near_pid), enter(far_pid));
        let run_in = |enter: &[String], line: String| {
            run(enter.iter().cloned().chain(line.split(' ').map(String::from)).collect()).map_err(failed)
        };
        run_in(&enter_near, format!("ip link add near type veth peer name far netns {far_pid}"))?;
        // `burst` bytes (a few packets) may be sent at once. `latency` is how long a packet may be queued.
        let burst = (rate * 32).max(4 * mtu).max(16 << 10);
        for (enter, device, address) in
            [(&enter_near, "near", CLIENT_ADDRESS), (&enter_far, "far", SERVER_ADDRESS)]
        {
            run_in(enter, format!("ip addr add {address}/30 dev {device}"))?;
            run_in(enter, "ip link set lo up".into())?;
            // With `gso_max_segs 1`, each TCP segment is a packet of its own, as on a real network. By
            // default, virtual devices forward packets of 64 KiB.
            run_in(enter, format!("ip link set {device} up mtu {mtu} gso_max_segs 1"))?;
            run_in(
                enter,
                format!("tc qdisc replace dev {device} root tbf rate {rate}mbit burst {burst} latency 50ms"),
            )?;
        }
        let placement = Placement::over_link(SERVER_ADDRESS, enter_far, enter_near);
        Ok(DevicePair { placement, _namespaces: [near, far] })
    }
}

/// Creates a namespace by the command prefix `unshare`, and returns its process after this has started.
fn start_namespace(
    children: &mut Children,
    unshare: Vec<String>,
    failed: impl Fn(String) -> Failure,
) -> Result<Process, Failure> {
    let words: Vec<String> =
        unshare.into_iter().chain(["sh", "-c", NAMESPACE_COMMAND].map(String::from)).collect();
    let mut process = children.start(&words, None).map_err(|error| failed(error.to_string()))?;
    match children.next_event(&process, None, Instant::now() + START_TIMEOUT) {
        ProcessEvent::Line(line) if line == "HELD" => Ok(process),
        ProcessEvent::Interrupted => Err(Failure::Interrupted),
        event => {
            process.stop();
            Err(failed(format!("cannot create a network namespace ({event:?}): {}", process.stderr())))
        }
    }
}

fn run(words: Vec<String>) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{}: {}", words.join(" "), text.lines().next().unwrap_or("it failed without a message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_parsed_from_rate_and_mtu() {
        let link = |text: &str| text.parse::<Link>();
        assert_eq!(link("loopback"), Ok(Link::Loopback));
        assert_eq!(link("155"), Ok(Link::Shaped(155, 9_180)));
        assert_eq!(link("1000"), Ok(Link::Shaped(1_000, 1_500)));
        assert_eq!(link("10:576"), Ok(Link::Shaped(10, 576)));
        for bad in ["", "0", "atm", "155:", "155:20", ":1500", "1e3", "200000", "1:70000"] {
            assert!(link(bad).unwrap_err().contains("write loopback, MBIT_S, or"), "{bad}");
        }
        assert_eq!(link("622").unwrap().name(), "622 Mbit/s, MTU 9180");
        assert_eq!(link("155").unwrap().bytes_per_quarter_second(), Some(4 << 20));
        assert_eq!(Link::Loopback.bytes_per_quarter_second(), None);
    }

    #[test]
    fn a_link_has_the_configured_rate_and_is_removed_when_dropped() {
        if let Err(reason) = check_available() {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("SKIPPED: {reason}");
            return;
        }
        let mut children = Children::new();
        let mut active = ActiveLink::default();
        let placement = active.placement(&Link::Shaped(10, 1_500), &mut children).unwrap();
        assert_eq!(placement.host, SERVER_ADDRESS);
        let processes: Vec<String> = active
            .current
            .iter()
            .flat_map(|(_, pair)| &pair._namespaces)
            .map(|process| process.pid().as_raw_nonzero().to_string())
            .collect();
        let output = |command: &str| {
            let words = placement.client_command(command.split(' ').map(String::from).collect());
            String::from_utf8(Command::new(&words[0]).args(&words[1..]).output().unwrap().stdout).unwrap()
        };
        let device = output("ip -d link show dev near");
        assert!(device.contains("mtu 1500") && device.contains("state UP"), "{device}");
        let queue = output("tc qdisc show dev near");
        assert!(queue.contains("tbf") && queue.contains("rate 10Mbit"), "{queue}");
        // The same link is not set up again.
        let again = active.placement(&Link::Shaped(10, 1_500), &mut children).unwrap();
        assert_eq!(again.client_command(vec![]), placement.client_command(vec![]));
        drop(active);
        for pid in processes {
            assert!(!std::fs::exists(format!("/proc/{pid}/ns/net")).unwrap(), "{pid} is left");
        }
    }
}
