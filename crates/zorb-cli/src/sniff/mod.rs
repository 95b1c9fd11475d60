//! `zorb sniff`: the calls in a capture, or between a client and a server.

mod calls;
mod contexts;
mod filter;
#[cfg(test)]
mod mutilated;
mod packets;
mod proxy;
mod replay;
mod show;
mod stream;
mod tcp;
mod types;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;

use crate::Verdict;
use crate::call::IdlArgs;
use crate::client::{Client, block_on, ended};
use crate::limits::MessageSize;
use crate::output::Output;
use calls::{CallCounts, Seen, Sniffer};
use filter::Filter;
use packets::{Growing, PacketCounts};
use show::Lines;
use tcp::{Assembler, Happened, TcpCounts};
use types::Types;

const EXAMPLES: &str = "\
Examples:
  tcpdump -i lo -s 0 -w bank.pcap port 4711    takes a capture; so does Wireshark
  zorb sniff bank.pcap --idl bank.idl          the calls in it, with typed arguments
  tcpdump -i lo -s 0 -U -w - port 4711 | zorb sniff - --idl bank.idl
  zorb sniff --listen 127.0.0.1:0 --to account.ior --idl bank.idl    needs no rights: prints a reference to call through
  zorb sniff --listen 127.0.0.1:0 --to account.ior --record bank.pcap
  zorb sniff --replay bank.pcap --to account.ior --idl bank.idl      the recorded requests once more: what differs?
  zorb sniff bank.pcap --filter operation='dep*' --filter peer=10.0.0.7

Without --idl, the operations of naming services and of every object are known; of others the octets are printed. An interface is known by
the reference that led to the object if that is in the capture too, else by the names of operations; --object decides.

A proxy passes on what it does not understand. References inside of replies lead past it. Connections by TLS are counted, but can not be
read: take the capture where the server is reached without.

Bounds: 4096 connections at a time (1024 of a proxy), 16 MiB for a message (--max-message raises it), 256 MiB for all that are not
whole; segments that wait for earlier ones: 1 MiB of each side, 256 MiB of all; requests that wait for replies: 4096 of a connection,
65536 of all.";

/// Maximum bytes of a replayed capture's messages, which are all kept in memory.
const MAX_REPLAYED: usize = 256 << 20;

/// Options of `zorb sniff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SniffArgs {
    /// A capture, pcap or pcapng, or - for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["listen", "replay"], conflicts_with_all = ["listen", "replay"])]
    file: Option<PathBuf>,
    /// Read on as the file grows, until Ctrl-C
    #[arg(long, requires = "file")]
    follow: bool,
    /// Be a proxy: listen here, pass everything on to --to, and tell it
    #[arg(long, value_name = "HOST:PORT", requires = "to", conflicts_with = "replay")]
    listen: Option<String>,
    /// The server: HOST:PORT, or an object by IOR:, corbaloc:, corbaname:, or a file that holds one
    #[arg(long, value_name = "TARGET")]
    to: Option<String>,
    /// Write what passes the proxy into a capture that Wireshark reads
    #[arg(long, value_name = "FILE", requires = "listen")]
    record: Option<PathBuf>,
    /// Write the reference that leads through the proxy into a file
    #[arg(long, value_name = "FILE", requires = "listen")]
    ior: Option<PathBuf>,
    /// Send the requests of a capture to --to, and compare the replies with those of the capture
    #[arg(long, value_name = "FILE", requires = "to")]
    replay: Option<PathBuf>,
    /// Report only messages of this operation, type or peer: operation=NAME, type=Module::Interface,
    /// peer=HOST[:PORT]; * stands for anything
    #[arg(long, value_name = "WHAT=PATTERN", value_parser = filter::condition)]
    filter: Vec<filter::Condition>,
    /// The interface of an object, by its key; may be given again
    #[arg(long, value_name = "KEY=INTERFACE", value_parser = object)]
    object: Vec<(String, String)>,
    /// Tell versions, sizes, keys and service contexts too, and values of any length
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    client: Client,
}

fn object(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((key, interface)) if !key.is_empty() && !interface.is_empty() => {
            Ok((key.to_owned(), interface.to_owned()))
        }
        _ => Err("KEY=INTERFACE is expected, such as Account=Bank::Account".to_owned()),
    }
}

/// The content of a capture, and the problems in it.
#[derive(Debug, Serialize)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<PacketCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpCounts>,
    calls: CallCounts,
}

/// Prints the calls.
///
/// # Errors
/// The capture or the IDL is invalid, the address is in use, the target is not found, or output fails.
pub(crate) fn run(args: &SniffArgs, output: &Output) -> anyhow::Result<Verdict> {
    let types = Types::new(args.idl.read()?, &args.object)?;
    let mut front = Front {
        sniffer: Sniffer::new(types, args.client.size),
        lines: Lines::new(*output, args.verbose),
        filter: Filter::new(&args.filter),
        output: *output,
    };
    match (&args.replay, &args.listen, &args.to, &args.file) {
        (Some(capture), _, Some(to), _) => block_on(replay::run(capture, to, &args.client, front)),
        (None, Some(listen), Some(to), _) => {
            // The proxy must not wait for its output.
            output.never_block()?;
            block_on(proxy::run(listen, to, args.record.as_deref(), args.ior.as_deref(), &args.client, front))
        }
        (None, None, _, Some(file)) => {
            let over = Arc::new(AtomicBool::new(false));
            if args.follow || file == Path::new("-") {
                watch(Arc::clone(&over))?;
            }
            let (packets, tcp) = match (file == Path::new("-"), args.follow) {
                (true, _) => front.capture(io::stdin(), "standard input"),
                (false, true) => {
                    front.capture(Growing { from: open(file)?, ended: over }, &file.display().to_string())
                }
                (false, false) => front.capture(open(file)?, &file.display().to_string()),
            }?;
            front.summary(Some(packets), Some(tcp))
        }
        _ => bail!("nothing to tell: name a FILE, --listen or --replay"),
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Sets `over` at the first Ctrl-C. The second one ends the process even if it is blocked.
///
/// # Errors
/// The system rejects a signal handler.
fn watch(over: Arc<AtomicBool>) -> anyhow::Result<()> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = block_on(async {
            let first = match ended() {
                Ok(first) => first,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(()));
            first.await;
            over.store(true, Ordering::Relaxed);
            Ok(())
        });
    });
    is_ready.recv().context("cannot wait for signals")?
}

/// The conversion of packets or bytes to lines.
struct Front {
    sniffer: Sniffer,
    lines: Lines,
    filter: Filter,
    output: Output,
}

impl Front {
    /// Handles an event of a connection, and prints the messages that it completes.
    ///
    /// # Errors
    /// Output fails.
    fn happened(&mut self, number: u64, time: Duration, happened: Happened) -> anyhow::Result<()> {
        let Self { sniffer, lines, filter, .. } = self;
        let mut result = Ok(());
        sniffer.happened(number, time, happened, &mut |seen| {
            if result.is_ok() && !lines.closed && filter.wants(&seen.told) {
                result = lines.tell(&seen.told);
            }
        });
        result
    }

    /// Reads a capture to its end.
    fn capture(&mut self, from: impl Read + Send, name: &str) -> anyhow::Result<(PacketCounts, TcpCounts)> {
        each(from, name, |number, time, happened| self.happened(number, time, happened))
    }

    /// Prints a summary to standard error, or with `--json` as the last line.
    ///
    /// # Errors
    /// Output fails.
    fn summary(mut self, packets: Option<PacketCounts>, tcp: Option<TcpCounts>) -> anyhow::Result<Verdict> {
        let calls = self.sniffer.counts;
        if self.lines.json {
            self.lines.object(&serde_json::json!({ "summary": Summary { packets, tcp, calls } }))?;
        }
        let mut said = Vec::new();
        let mut say = |count: u64, one: &str, many: &str| {
            if count > 0 {
                said.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        };
        say(calls.connections, "connection", "connections");
        say(calls.requests, "request", "requests");
        say(calls.replies, "reply", "replies");
        say(calls.messages - calls.requests - calls.replies, "other message", "other messages");
        say(
            calls.tls,
            "connection is of TLS and can not be read",
            "connections are of TLS and can not be read",
        );
        say(calls.foreign, "connection speaks something else", "connections speak something else");
        say(calls.damaged, "message is not whole", "messages are not whole");
        say(calls.unanswered, "request has no reply", "requests have no reply");
        if let Some(tcp) = tcp {
            say(tcp.lost, "octet is missing in the capture", "octets are missing in the capture");
            say(tcp.out_of_order, "segment out of order", "segments out of order");
            say(tcp.repeated, "segment sent again", "segments sent again");
            say(tcp.overlapping, "segment overlaps", "segments overlap");
            let given_up = "given up, as there were too many";
            say(tcp.given_up, &format!("connection {given_up}"), &format!("connections {given_up}"));
        }
        if let Some(packets) = packets {
            let cut = "cut by the capture (tcpdump keeps all with -s 0)";
            say(packets.cut, &format!("packet {cut}"), &format!("packets {cut}"));
            let pieces = "of IP packets, which are not joined";
            say(packets.ip_fragments, &format!("fragment {pieces}"), &format!("fragments {pieces}"));
            say(u64::from(packets.ends_early), "packet is cut off by the end of the file", "");
        }
        if said.is_empty() {
            said.push("no connection".to_owned());
        }
        self.output.remark(&said.join("; "));
        Ok(if calls.messages + calls.damaged > 0 { Verdict::Good } else { Verdict::Bad })
    }
}

/// Reads a capture to its end, connection by connection.
///
/// # Errors
/// The file is not a capture or is damaged, and errors of `told`.
fn each(
    from: impl Read + Send,
    name: &str,
    mut told: impl FnMut(u64, Duration, Happened) -> anyhow::Result<()>,
) -> anyhow::Result<(PacketCounts, TcpCounts)> {
    let mut assembler = Assembler::default();
    let mut counts = PacketCounts::default();
    let mut last = Duration::ZERO;
    let read = packets::read(from, &mut counts, |segment| {
        last = segment.time;
        let mut result = Ok(());
        assembler.segment(&segment, &mut |number, happened| {
            if result.is_ok() {
                result = told(number, segment.time, happened);
            }
        });
        result
    });
    // Packets before a damaged position count.
    let mut result = Ok(());
    assembler.finish(&mut |number, happened| {
        if result.is_ok() {
            result = told(number, last, happened);
        }
    });
    read.with_context(|| name.to_owned())?;
    result?;
    Ok((counts, assembler.counts))
}

/// Returns all messages of a capture at once.
///
/// # Errors
/// As for [`each`].
fn messages(path: &Path, types: Types, size: MessageSize) -> anyhow::Result<(Vec<Seen>, Sniffer)> {
    let mut sniffer = Sniffer::new(types, size);
    let most = MAX_REPLAYED.max(size.bytes().unwrap_or_default().saturating_mul(2));
    let mut all = Vec::new();
    let mut octets = 0;
    each(open(path)?, &path.display().to_string(), |number, time, happened| {
        sniffer.happened(number, time, happened, &mut |seen| {
            octets += seen.whole.as_ref().map_or(0, |whole| whole.octets.len());
            all.push(seen);
        });
        ensure!(octets <= most, "more than {} MiB of messages", most >> 20);
        Ok(())
    })?;
    Ok((all, sniffer))
}
