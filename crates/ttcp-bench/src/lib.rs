//! The zorb ORB performance experiments: the `ttcp` program.
//!
//! A peer is a server program and a client program that use the same middleware. Both follow one contract:
//! the server prints `READY ADDRESS`, the client runs one test and prints one JSON line. `ttcp run` runs the
//! peers in turn, and compares their results with the results of plain sockets in the same run.
//!
//! Each module uses only those before it in this list:
//!
//! | module | contents |
//! |---|---|
//! | `blocking` | execution of futures that block their thread instead of returning `Pending` |
//! | `system` | memory, open files and threads of processes |
//! | `giop` | GIOP messages for connections without an ORB |
//! | `parent_watch` | the option that makes a process exit when its parent exits |
//! | [`priority`] | different priorities for client and server, and an additional load |
//! | `literature` | published figures for comparison with measured ones |
//! | `statistics` | statistics of samples |
//! | `figures` | sections, tables and charts, as HTML, Markdown and SVG |
//! | `profiler` | `perf` and `callgrind`, and the purposes of functions |
//! | [`mod@reference`] | the IOR files and `corbaloc:` addresses through which CORBA clients find servers |
//! | [`work`] | the work of a client: a test and its options |
//! | `series` | the loop of the test `series`, which sends one message in each time frame |
//! | [`report`] | the JSON line in which a client reports its results |
//! | [`test_loops`] | the test loops, generic over the calls of a peer |
//! | [`ladder`] | encoding in steps, from an interpreter of type codes to compiled stubs |
//! | `many_objects` | the objects of the tests with many objects |
//! | `many_clients` | the test with many simultaneous clients |
//! | [`raw`] | the baseline: plain blocking sockets |
//! | [`cli`] | the command line of `ttcp server` and `ttcp client` |
//! | [`zorb_peer`] | the server and the client that use zorb |
//! | [`harness`] | the processes, network links, cores and peers of a measurement |
//! | [`external_peers`] | `ttcp peers`: other middleware, which is built if its tools are installed |
//! | [`soak`] | `ttcp soak`: a long mixed load with injected faults, which checks that nothing is lost |
//! | [`abuse`] | `ttcp abuse`: the service that a well-behaved client gets from a server under attack |
//! | [`experiments`] | experiments with stored results, such as `ttcp latency`, and their reports |
//! | [`run`] | `ttcp run`, which measures the peers in turn and prints a table of their results |
//!
//! This crate works only on Unix, because each child process runs in a process group of its own.
#![allow(clippy::duplicate_mod, reason = "steps of the ladder compile the same files more than once")]

pub mod abuse;
mod blocking;
pub mod cli;
pub mod experiments;
pub mod external_peers;
mod figures;
mod giop;
pub mod harness;
pub mod ladder;
mod literature;
mod many_clients;
mod many_objects;
mod parent_watch;
pub mod priority;
mod profiler;
pub mod raw;
pub mod reference;
pub mod report;
pub mod run;
mod series;
pub mod soak;
mod statistics;
mod system;
pub mod test_loops;
pub mod work;
pub mod zorb_peer;
