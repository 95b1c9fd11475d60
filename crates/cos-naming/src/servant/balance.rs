//! Load balancing: the selection of a group's member for each caller.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use zorb::Peer;

use crate::store::{ContextId, Group, Key, Strategy};

/// The state of all groups that is not in the store: the next member in turn, and the reported loads.
pub(super) struct Balancer {
    load_report_timeout: Duration,
    groups: Mutex<HashMap<(ContextId, Key), GroupState>>,
}

#[derive(Default)]
struct GroupState {
    /// The number of callers so far. Modulo the number of members, it is the next member's index.
    turn: usize,
    reports: HashMap<String, LoadReport>,
}

struct LoadReport {
    /// The load that the member reported, plus one step for each caller that got the member after the report.
    load: f64,
    /// The value that is added to the load for each caller that gets the member.
    step: f64,
    received_at: Instant,
}

/// The load of a member.
#[derive(Debug, PartialEq)]
pub(super) struct MemberLoad {
    pub(super) load: f64,
    /// False if the member has not reported a load yet, or too long ago.
    pub(super) is_valid: bool,
}

/// The context and the name of a group.
type GroupId<'a> = (ContextId, &'a Key);

impl Balancer {
    pub(super) fn new(load_report_timeout: Duration) -> Self {
        Self { load_report_timeout, groups: Mutex::default() }
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<(ContextId, Key), GroupState>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Selects a member for the caller. Returns its index, or `None` if the group is empty.
    pub(super) fn pick(&self, id: GroupId<'_>, group: &Group) -> Option<usize> {
        let members = group.members.iter().map(|member| member.name.as_str());
        if group.members.is_empty() {
            return None;
        }
        if group.strategy == Strategy::ByClient {
            let caller = zorb::try_request().map(|request| address_of(request.peer())).unwrap_or_default();
            // Rendezvous hashing: if a member leaves, only the callers that got this member get another one.
            return members
                .enumerate()
                .max_by_key(|(_, name)| rendezvous_hash(&caller, name))
                .map(|(index, _)| index);
        }
        let mut groups = self.groups();
        let state = groups.entry((id.0, id.1.clone())).or_default();
        let turn = state.turn;
        state.turn = turn.wrapping_add(1);
        let count = group.members.len();
        let in_turn = (0..count).map(|index| (turn.wrapping_add(index)) % count);
        match group.strategy {
            Strategy::LeastLoaded => {
                let now = Instant::now();
                let load = |index: usize| {
                    let report = state.reports.get(&group.members.get(index)?.name)?;
                    report.is_valid(now, self.load_report_timeout).then_some(report.load)
                };
                // Members without a valid report come last. Among equal loads, the next in turn is selected.
                let order = |index: &usize| load(*index).unwrap_or(f64::INFINITY);
                let selected = in_turn.min_by(|a, b| order(a).total_cmp(&order(b)))?;
                if let Some(report) =
                    group.members.get(selected).and_then(|member| state.reports.get_mut(&member.name))
                {
                    report.load += report.step;
                }
                Some(selected)
            }
            _ => Some(turn % count),
        }
    }

    pub(super) fn report(&self, id: GroupId<'_>, member: &str, load: f64, step: f64) {
        let mut groups = self.groups();
        let state = groups.entry((id.0, id.1.clone())).or_default();
        state.reports.insert(member.to_owned(), LoadReport { load, step, received_at: Instant::now() });
    }

    /// Returns the loads of the members, in their order. The load of a member that has never reported is 0.
    pub(super) fn loads(&self, id: GroupId<'_>, group: &Group) -> Vec<MemberLoad> {
        let (groups, now) = (self.groups(), Instant::now());
        let state = groups.get(&(id.0, id.1.clone()));
        let load_of = |name: &String| match state.and_then(|state| state.reports.get(name)) {
            Some(report) => {
                MemberLoad { load: report.load, is_valid: report.is_valid(now, self.load_report_timeout) }
            }
            None => MemberLoad { load: 0.0, is_valid: false },
        };
        group.members.iter().map(|member| load_of(&member.name)).collect()
    }

    /// Removes the state of a group, because its name was unbound or bound again, or a member has left.
    pub(super) fn forget(&self, id: &(ContextId, Key)) {
        let mut groups = self.groups();
        if !groups.is_empty() {
            groups.remove(id);
        }
    }
}

impl LoadReport {
    fn is_valid(&self, now: Instant, timeout: Duration) -> bool {
        now.duration_since(self.received_at) < timeout
    }
}

/// Returns the bytes of the peer's IP address, or no bytes if the peer has none.
fn address_of(peer: &Peer) -> Vec<u8> {
    match peer {
        Peer::Tcp(address) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        },
        _ => Vec::new(),
    }
}

/// Returns the FNV-1a hash of a caller and a member, followed by the finalizer of SplitMix64, so that every
/// bit of the input affects all bits of the hash. All servers of a store calculate the same hash.
fn rendezvous_hash(caller: &[u8], member: &str) -> u64 {
    let bytes = caller.iter().chain([&0]).chain(member.as_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use zorb::cos_naming::NameComponent;

    use super::*;
    use crate::store::Member;

    fn group(strategy: Strategy, names: &[&str]) -> Group {
        let member = |name: &&str| Member { name: (*name).to_owned(), object: Bytes::new() };
        Group { strategy, members: names.iter().map(member).collect() }
    }

    fn key() -> Key {
        Key::new(&NameComponent::new("g", "")).unwrap()
    }

    const ROOT: ContextId = ContextId::ROOT;

    #[test]
    fn members_take_turns() {
        let (balance, key) = (Balancer::new(Duration::from_secs(60)), key());
        let three = group(Strategy::RoundRobin, &["a", "b", "c"]);
        let picked: Vec<_> = (0..7).map(|_| balance.pick((ROOT, &key), &three).unwrap()).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(balance.pick((ROOT, &key), &group(Strategy::RoundRobin, &[])), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_loaded_is_picked_until_its_steps_add_up_and_members_without_reports_come_last() {
        let (balance, key) = (Balancer::new(Duration::from_secs(60)), key());
        let three = group(Strategy::LeastLoaded, &["a", "b", "c"]);
        balance.report((ROOT, &key), "a", 10.0, 1.0);
        balance.report((ROOT, &key), "b", 8.5, 1.0);
        let picked: Vec<_> = (0..4).map(|_| balance.pick((ROOT, &key), &three).unwrap()).collect();
        // The load of b grows from 8.5 to 9.5 and 10.5. The load of a is 10.
        assert_eq!(picked, [1, 1, 0, 1]);
        tokio::time::advance(Duration::from_secs(61)).await;
        let without_reports: std::collections::BTreeSet<_> =
            (0..3).map(|_| balance.pick((ROOT, &key), &three).unwrap()).collect();
        assert_eq!(without_reports.len(), 3, "no report is valid, so all members take turns");
        balance.report((ROOT, &key), "c", 1e9, 0.0);
        assert_eq!(balance.pick((ROOT, &key), &three), Some(2));
        balance.forget(&(ROOT, key.clone()));
        let loads = balance.loads((ROOT, &key), &three);
        assert!(loads.iter().all(|load| *load == MemberLoad { load: 0.0, is_valid: false }), "{loads:?}");
    }

    #[test]
    fn a_client_keeps_its_member_when_another_member_leaves() {
        let names = ["a", "b", "c", "d"];
        let best = |caller: u8, names: &[&'static str]| {
            *names.iter().max_by_key(|name| rendezvous_hash(&[10, 0, 0, caller], name)).unwrap()
        };
        let mut callers = std::collections::BTreeMap::<_, u32>::new();
        for caller in 0..=255 {
            let with_all = best(caller, &names);
            *callers.entry(with_all).or_default() += 1;
            if with_all != "c" {
                assert_eq!(best(caller, &["a", "b", "d"]), with_all);
            }
        }
        assert!(
            callers.values().all(|count| *count > 32),
            "each member should get about 64 callers: {callers:?}"
        );
    }
}
