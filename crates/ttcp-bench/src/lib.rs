//! The zorb ORB performance experiments: the `ttcp` program.
//!
//! A peer is a server and a client process of one middleware. Both follow one contract: the server prints
//! `READY <how to reach it>`, the client runs one test and prints one JSON line. `ttcp run` starts the peers
//! in turn, floods them, and compares their figures with those of plain sockets from the same run.
//!
//! Each module uses only those before it in this list:
//!
//! | module | contents |
//! |---|---|
//! | [`blocking`] | futures that block the thread |
//! | `system` | memory, files and threads of processes |
//! | `giop` | the messages that echo bytes, for connections without an ORB |
//! | [`parent_watch`] | the option by which a server ends with its parent |
//! | [`priority`] | programs with separate priorities, and an additional load |
//! | [`literature`] | published figures for comparison with measured ones |
//! | [`statistics`] | statistics of samples |
//! | [`figures`] | sections, tables and charts, as HTML, Markdown and SVG |
//! | `profiler` | `perf` and `callgrind`, and the purposes of functions |
//! | [`mod@reference`] | the IOR files and `corbaloc:` addresses through which CORBA peers find each other |
//! | [`work`] | the work of a client: a test and its options |
//! | [`series`] | the loop of the test `series`, one message a frame |
//! | [`report`] | the JSON line of a client, and its statistics |
//! | [`test_loops`] | the test loops, generic over the calls of a peer: the same loops time every built-in peer |
//! | [`ladder`] | the steps from an interpreter of type codes to compiled stubs |
//! | [`many_objects`] | the objects of the tests with many objects |
//! | [`many_clients`] | the test with many clients at once |
//! | [`raw`] | the baseline: blocking sockets and nothing else |
//! | [`cli`] | the command line of `ttcp server` and `ttcp client` |
//! | [`zorb_peer`] | the server and the client that use zorb |
//! | [`harness`] | processes, links, cores and peers of a measurement |
//! | [`external_peers`] | `ttcp peers`: other middleware, built where its tools are installed |
//! | [`soak`] | `ttcp soak`: a long mixed load with injected faults, and the proof that nothing is lost |
//! | [`abuse`] | `ttcp abuse`: the service that a well-behaved client gets from a server under attack |
//! | [`experiments`] | `ttcp latency`, `ttcp report`, `ttcp compare`: experiments with stored results, and their report |
//! | [`run`] | `ttcp run`: rounds, table, record |
//!
//! Unix only: children run in process groups of their own.
#![allow(clippy::duplicate_mod, reason = "steps of the ladder have the same files, see there")]

pub mod abuse;
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
