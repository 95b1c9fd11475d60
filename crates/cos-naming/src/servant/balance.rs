//! Groups: the selection of the member for a caller.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use zorb::Peer;

use crate::store::{ContextId, Group, Key, Strategy};

/// The state of the members of all groups that is not stored: turns and loads.
pub(super) struct Balance {
    /// The time for which a report is valid.
    timeout: Duration,
    groups: Mutex<HashMap<(ContextId, Key), State>>,
}

#[derive(Default)]
struct State {
    turn: usize,
    loads: HashMap<String, Load>,
}

struct Load {
    load: f64,
    step: f64,
    at: Instant,
}

type Place<'a> = (ContextId, &'a Key);

impl Balance {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, groups: Mutex::default() }
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<(ContextId, Key), State>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the member for the caller of the current request; `None` for a group without members.
    pub(super) fn pick(&self, place: Place<'_>, group: &Group) -> Option<usize> {
        let members = group.members.iter().map(|member| member.name.as_str());
        if group.members.is_empty() {
            return None;
        }
        if group.strategy == Strategy::ByClient {
            let caller = zorb::try_request().map(|request| caller(request.peer())).unwrap_or_default();
            // Each member has a number for each caller, and the highest wins. When a group changes, the other
            // callers thus keep their members.
            return members.enumerate().max_by_key(|(_, name)| mixed(&caller, name)).map(|(index, _)| index);
        }
        let mut groups = self.groups();
        let state = groups.entry((place.0, place.1.clone())).or_default();
        let turn = state.turn;
        state.turn = turn.wrapping_add(1);
        let count = group.members.len();
        let in_turn = (0..count).map(|index| (turn.wrapping_add(index)) % count);
        match group.strategy {
            Strategy::LeastLoaded => {
                let now = Instant::now();
                let load = |index: usize| {
                    let load = state.loads.get(&group.members.get(index)?.name)?;
                    load.counts(now, self.timeout).then_some(load.load)
                };
                // Members that report precede those that do not. Among equal ones, the one whose turn it is
                // wins.
                let order = |index: &usize| load(*index).unwrap_or(f64::INFINITY);
                let least = in_turn.min_by(|a, b| order(a).total_cmp(&order(b)))?;
                if let Some(load) = group.members.get(least).and_then(|one| state.loads.get_mut(&one.name)) {
                    load.load += load.step;
                }
                Some(least)
            }
            _ => Some(turn % count),
        }
    }

    pub(super) fn report(&self, place: Place<'_>, member: &str, load: f64, step: f64) {
        let mut groups = self.groups();
        let state = groups.entry((place.0, place.1.clone())).or_default();
        state.loads.insert(member.to_owned(), Load { load, step, at: Instant::now() });
    }

    /// Returns the load of each member, and whether it is valid.
    pub(super) fn loads(&self, place: Place<'_>, group: &Group) -> Vec<(f64, bool)> {
        let (groups, now) = (self.groups(), Instant::now());
        let state = groups.get(&(place.0, place.1.clone()));
        let load = |name: &String| state.and_then(|state| state.loads.get(name));
        let of = |name| load(name).map_or((0.0, false), |load| (load.load, load.counts(now, self.timeout)));
        group.members.iter().map(|member| of(&member.name)).collect()
    }

    /// Forgets the state of a name that is bound to something else, or of whose group a member has left.
    pub(super) fn forget(&self, place: &(ContextId, Key)) {
        let mut groups = self.groups();
        if !groups.is_empty() {
            groups.remove(place);
        }
    }
}

impl Load {
    fn counts(&self, now: Instant, timeout: Duration) -> bool {
        now.duration_since(self.at) < timeout
    }
}

/// Returns the identification of a caller.
fn caller(peer: &Peer) -> Vec<u8> {
    match peer {
        Peer::Tcp(address) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        },
        // All processes of this machine.
        _ => Vec::new(),
    }
}

/// Returns a hash of a caller and a member in which every bit of both counts (FNV-1a, and the finalizer of
/// SplitMix64). It is the same in every server.
fn mixed(caller: &[u8], member: &str) -> u64 {
    let octets = caller.iter().chain([&0]).chain(member.as_bytes());
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |state, octet| {
        (state ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3)
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

    const HERE: ContextId = ContextId::ROOT;

    #[test]
    fn members_take_turns() {
        let (balance, key) = (Balance::new(Duration::from_secs(60)), key());
        let three = group(Strategy::RoundRobin, &["a", "b", "c"]);
        let picked: Vec<_> = (0..7).map(|_| balance.pick((HERE, &key), &three).unwrap()).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(balance.pick((HERE, &key), &group(Strategy::RoundRobin, &[])), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_loaded_gets_callers_until_they_weigh_and_silent_ones_come_last() {
        let (balance, key) = (Balance::new(Duration::from_secs(60)), key());
        let three = group(Strategy::LeastLoaded, &["a", "b", "c"]);
        balance.report((HERE, &key), "a", 10.0, 1.0);
        balance.report((HERE, &key), "b", 8.5, 1.0);
        let picked: Vec<_> = (0..4).map(|_| balance.pick((HERE, &key), &three).unwrap()).collect();
        // 8.5, 9.5, then 10 is less than 10.5.
        assert_eq!(picked, [1, 1, 0, 1]);
        tokio::time::advance(Duration::from_secs(61)).await;
        let silent: std::collections::BTreeSet<_> =
            (0..3).map(|_| balance.pick((HERE, &key), &three).unwrap()).collect();
        assert_eq!(silent.len(), 3, "nobody reports, so all take turns");
        balance.report((HERE, &key), "c", 1e9, 0.0);
        assert_eq!(balance.pick((HERE, &key), &three), Some(2));
        balance.forget(&(HERE, key.clone()));
        assert_eq!(balance.loads((HERE, &key), &three), [(0.0, false); 3]);
    }

    #[test]
    fn a_client_keeps_its_member_when_others_go() {
        let names = ["a", "b", "c", "d"];
        let best = |caller: u8, names: &[&'static str]| {
            *names.iter().max_by_key(|name| mixed(&[10, 0, 0, caller], name)).unwrap()
        };
        let mut seen = std::collections::BTreeMap::<_, u32>::new();
        for caller in 0..=255 {
            let with_all = best(caller, &names);
            *seen.entry(with_all).or_default() += 1;
            if with_all != "c" {
                assert_eq!(best(caller, &["a", "b", "d"]), with_all);
            }
        }
        assert!(seen.values().all(|count| *count > 32), "about a quarter each: {seen:?}");
    }
}
