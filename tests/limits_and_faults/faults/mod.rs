//! Faults around an ORB: peers that die, stop responding, are slow or send garbage, truncated and corrupted
//! messages, exhausted descriptors, servants that do not answer, dropped futures, servers that end or restart
//! in the meantime.
//!
//! `docs/RELIABILITY.md` describes the outcome of calls in each of these cases. Tests in memory run in
//! virtual time. Where a seed decides what happens, `ZORB_FAULTS=SEED` replays it. Tests with processes
//! (`processes`, `network`) start this program again in a separate role (`role`).

mod breaks;
mod crowd;
mod drops;
mod endings;
mod messages;
mod network;
mod processes;
mod role;
mod script;
mod servants;
mod shutdown;
mod target;
