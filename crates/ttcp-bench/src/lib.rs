//! The zorb ORB performance experiments: the `ttcp` program.
//!
//! A peer is a server and a client process of one middleware. Both follow one contract: the server prints
//! `READY <how to reach it>`, the client runs one test and prints one JSON line. `ttcp run` starts the peers
//! in turn, floods them, and compares their figures with those of plain sockets from the same run.
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | the options that all peers share |
//! | [`many`] | common code of the tests with many objects and many clients |
//! | [`peer`] | the test loops, generic over the calls of a peer: the same loops time every built-in peer |
//! | [`series`] | the loop of the test `series`, one message a frame |
//! | [`report`] | the JSON line of a client, and its statistics |
//! | [`mod@reference`] | the IOR files and `corbaloc:` addresses through which CORBA peers find each other |
//! | [`priority`] | programs with separate priorities, and an additional load |
//! | [`raw`] | the baseline: blocking sockets and nothing else |
//! | [`run`] | `ttcp run`: processes, rounds, table, record |
//! | [`rivals`] | `ttcp peers`: other middleware, built where its tools are installed |
//! | [`experiments`] | `ttcp latency`, `ttcp report`, `ttcp compare`: experiments with stored results, and their report |
//! | [`soak`] | `ttcp soak`: a long mixed load with injected faults, and the proof that nothing is lost |
//! | [`assault`] | `ttcp assault`: the service that a well-behaved client gets from a server under attack |
//! | [`ladder`] | the steps from an interpreter of type codes to compiled stubs |
//! | [`literature`] | published figures for comparison with measured ones |
//! | [`statistics`] | statistics of samples |
//! | `profiler` | `perf` and `callgrind`, and the purposes of functions |
//! | [`figures`] | sections, tables and charts, as HTML, Markdown and SVG |
//!
//! Unix only: children run in process groups of their own.
#![allow(clippy::duplicate_mod, reason = "steps of the ladder have the same files, see there")]

pub mod assault;
pub mod blocking;
pub mod cli;
pub mod experiments;
pub mod external_peers;
pub mod figures;
mod giop;
pub mod harness;
pub mod ladder;
pub mod literature;
pub mod many_clients;
pub mod many_objects;
pub mod parent_watch;
pub mod priority;
mod profiler;
pub mod raw;
pub mod reference;
pub mod report;
pub mod run;
pub mod series;
pub mod soak;
pub mod statistics;
mod system;
pub mod test_loops;
pub mod work;
pub mod zorb_peer;
