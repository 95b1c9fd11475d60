//! `zorb sniff`: prints the calls in a capture, or between a client and a server.

mod calls;
mod contexts;
#[cfg(test)]
mod damaged_captures;
mod filter;
mod packets;
mod proxy;
mod record;
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

use crate::call::IdlArgs;
use crate::client::{ClientOptions, block_on, termination_signal};
use crate::failure::Verdict;
use crate::limits::MaxMessageValue;
use crate::output::Output;
use calls::{CallCounts, SniffedMessage, Sniffer};
use filter::Filter;
use packets::{FollowingReader, PacketCounts};
use show::MessagePrinter;
use tcp::{Assembler, ConnectionEvent, TcpCounts};
use types::BodyDecoder;

const EXAMPLES: &str = "\
Examples:
  tcpdump -i lo -s 0 -w bank.pcap port 4711    create a capture (or use Wireshark)
  zorb sniff bank.pcap --idl bank.idl          print the calls in it, with typed arguments
  tcpdump -i lo -s 0 -U -w - port 4711 | zorb sniff - --idl bank.idl
  zorb sniff --listen 127.0.0.1:0 --to account.ior --idl bank.idl    run a proxy, which needs no privileges; call the reference that it prints
  zorb sniff --listen 127.0.0.1:0 --to account.ior --record bank.pcap
  zorb sniff --replay bank.pcap --to account.ior --idl bank.idl      send the requests again and compare the replies
  zorb sniff bank.pcap --filter operation='dep*' --filter peer=10.0.0.7

Without --idl, only the operations of naming services and the operations that every object has are known. The arguments of other operations are
printed in hexadecimal. The interface of an object is known if a reference to the object is in the capture. Otherwise it is guessed
from the names of operations; --object sets it.

A proxy forwards all data, even if it is not GIOP. References in replies are not changed, so calls to them bypass the proxy.
Connections with TLS are counted, but their contents cannot be read.

Limits: 4096 connections at a time (1024 of a proxy); 16 MiB for a message (see --max-message) and 256 MiB for all incomplete
messages; 1 MiB of TCP segments that wait for a missing one, in each direction of a connection, and 256 MiB in all;
4096 pending requests for each connection and 65536 in all.";

/// The maximum total size of the messages of a replayed capture, which are all kept in memory. If twice the
/// value of `--max-message` is larger, that is the maximum.
const MAX_REPLAYED_BYTES: usize = 256 << 20;

/// Options of `zorb sniff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SniffArgs {
    /// A capture in the format pcap or pcapng, or - for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["listen", "replay"], conflicts_with_all = ["listen", "replay"])]
    file: Option<PathBuf>,
    /// Continue to read while the file grows, until Ctrl-C
    #[arg(long, requires = "file")]
    follow: bool,
    /// Run a proxy: listen at this address, forward all data to --to, and print the calls
    #[arg(long, value_name = "HOST:PORT", requires = "to", conflicts_with = "replay")]
    listen: Option<String>,
    /// The server: HOST:PORT, or an object as IOR:, corbaloc: or corbaname:, or a file that contains one
    #[arg(long, value_name = "TARGET")]
    to: Option<String>,
    /// Write the data that the proxy forwards to a capture file
    #[arg(long, value_name = "FILE", requires = "listen")]
    record: Option<PathBuf>,
    /// Write a reference to the object, with the address of the proxy, to a file
    #[arg(long, value_name = "FILE", requires = "listen")]
    ior: Option<PathBuf>,
    /// Send the requests in a capture to --to, and compare the replies with those in the capture
    #[arg(long, value_name = "FILE", requires = "to")]
    replay: Option<PathBuf>,
    /// Print only messages with this operation, interface or peer: operation=NAME, type=Module::Interface or
    /// peer=HOST[:PORT]; * matches any characters
    #[arg(long, value_name = "WHAT=PATTERN", value_parser = filter::parse_condition)]
    filter: Vec<filter::Condition>,
    /// The interface of the object with a key; may be repeated
    #[arg(long, value_name = "KEY=INTERFACE", value_parser = parse_object)]
    object: Vec<(String, String)>,
    /// Also print versions, sizes, keys and service contexts, and values of any length
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    client: ClientOptions,
}

fn parse_object(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((key, interface)) if !key.is_empty() && !interface.is_empty() => {
            Ok((key.to_owned(), interface.to_owned()))
        }
        _ => Err("expected KEY=INTERFACE, such as Account=Bank::Account".to_owned()),
    }
}

/// What a capture or the forwarded data contained, and problems in it. The field names are the JSON keys.
#[derive(Debug, Serialize)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<PacketCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpCounts>,
    calls: CallCounts,
}

pub(crate) fn run(args: &SniffArgs, output: &Output) -> anyhow::Result<Verdict> {
    let types = BodyDecoder::new(args.idl.read()?, &args.object)?;
    let mut pipeline = Pipeline {
        sniffer: Sniffer::new(types, args.client.max_message),
        printer: MessagePrinter::new(*output, args.verbose),
        filter: Filter::new(&args.filter),
        output: *output,
    };
    match (&args.replay, &args.listen, &args.to, &args.file) {
        (Some(capture), _, Some(to), _) => block_on(replay::run(capture, to, &args.client, pipeline)),
        (None, Some(listen), Some(to), _) => {
            // A slow reader of the output must not delay the proxy and its clients.
            output.make_nonblocking()?;
            block_on(proxy::run(
                listen,
                to,
                args.record.as_deref(),
                args.ior.as_deref(),
                &args.client,
                pipeline,
            ))
        }
        (None, None, _, Some(file)) => {
            let is_ended = Arc::new(AtomicBool::new(false));
            if args.follow || file == Path::new("-") {
                set_on_signal(Arc::clone(&is_ended))?;
            }
            let (packets, tcp) = match (file == Path::new("-"), args.follow) {
                (true, _) => pipeline.read_capture(io::stdin(), "standard input"),
                (false, true) => pipeline.read_capture(
                    FollowingReader { source: open(file)?, is_ended },
                    &file.display().to_string(),
                ),
                (false, false) => pipeline.read_capture(open(file)?, &file.display().to_string()),
            }?;
            pipeline.print_summary(Some(packets), Some(tcp))
        }
        _ => bail!("FILE, --listen or --replay is required"),
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Sets a flag at the first Ctrl-C or SIGTERM. The second one kills the process, even during a read.
fn set_on_signal(flag: Arc<AtomicBool>) -> anyhow::Result<()> {
    let (ready, wait_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = block_on(async {
            let signal = match termination_signal() {
                Ok(signal) => signal,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(()));
            signal.await;
            flag.store(true, Ordering::Relaxed);
            Ok(())
        });
    });
    wait_ready.recv().context("cannot wait for signals")?
}

/// Decodes the events of connections, and prints the messages that the filter accepts.
struct Pipeline {
    sniffer: Sniffer,
    printer: MessagePrinter,
    filter: Filter,
    output: Output,
}

impl Pipeline {
    fn handle_event(&mut self, number: u64, time: Duration, event: ConnectionEvent) -> anyhow::Result<()> {
        let Self { sniffer, printer, filter, .. } = self;
        let mut result = Ok(());
        sniffer.handle_event(number, time, event, &mut |sniffed| {
            if result.is_ok() && !printer.is_closed && filter.accepts(&sniffed.record) {
                result = printer.print_message(&sniffed.record);
            }
        });
        result
    }

    fn read_capture(
        &mut self,
        source: impl Read + Send,
        name: &str,
    ) -> anyhow::Result<(PacketCounts, TcpCounts)> {
        read_events(source, name, |number, time, event| self.handle_event(number, time, event))
    }

    /// Prints a summary to standard error, or with `--json` as the last line of standard output.
    fn print_summary(
        mut self,
        packets: Option<PacketCounts>,
        tcp: Option<TcpCounts>,
    ) -> anyhow::Result<Verdict> {
        let calls = self.sniffer.counts;
        if self.printer.is_json {
            self.printer.print_json(&serde_json::json!({ "summary": Summary { packets, tcp, calls } }))?;
        }
        let mut parts = Vec::new();
        let mut add = |count: u64, one: &str, many: &str| {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        };
        add(calls.connections, "connection", "connections");
        add(calls.requests, "request", "requests");
        add(calls.replies, "reply", "replies");
        add(calls.messages - calls.requests - calls.replies, "other message", "other messages");
        add(calls.tls, "connection uses TLS and cannot be read", "connections use TLS and cannot be read");
        add(calls.foreign, "connection uses another protocol", "connections use another protocol");
        add(calls.damaged, "message is incomplete", "messages are incomplete");
        add(calls.unanswered, "request has no reply", "requests have no reply");
        if let Some(tcp) = tcp {
            add(tcp.lost, "byte is missing in the capture", "bytes are missing in the capture");
            add(tcp.out_of_order, "segment out of order", "segments out of order");
            add(tcp.repeated, "repeated segment", "repeated segments");
            add(tcp.overlapping, "overlapping segment", "overlapping segments");
            let given_up = "evicted because there were too many";
            add(tcp.given_up, &format!("connection {given_up}"), &format!("connections {given_up}"));
        }
        if let Some(packets) = packets {
            let cut = "truncated by the capture (use tcpdump -s 0)";
            add(packets.cut, &format!("packet {cut}"), &format!("packets {cut}"));
            let pieces = "of IP packets, which are not reassembled";
            add(packets.ip_fragments, &format!("fragment {pieces}"), &format!("fragments {pieces}"));
            add(u64::from(packets.ends_early), "packet is truncated by the end of the file", "");
        }
        if parts.is_empty() {
            parts.push("no connection".to_owned());
        }
        self.output.remark(&parts.join("; "));
        Ok(if calls.messages + calls.damaged > 0 { Verdict::Good } else { Verdict::Bad })
    }
}

fn read_events(
    source: impl Read + Send,
    name: &str,
    mut on_event: impl FnMut(u64, Duration, ConnectionEvent) -> anyhow::Result<()>,
) -> anyhow::Result<(PacketCounts, TcpCounts)> {
    let mut assembler = Assembler::default();
    let mut counts = PacketCounts::default();
    let mut last_time = Duration::ZERO;
    let read_result = packets::read(source, &mut counts, |segment| {
        last_time = segment.time;
        let mut result = Ok(());
        assembler.handle_segment(&segment, &mut |number, event| {
            if result.is_ok() {
                result = on_event(number, segment.time, event);
            }
        });
        result
    });
    // The messages before a damaged position are handled even if reading failed there.
    let mut result = Ok(());
    assembler.finish(&mut |number, event| {
        if result.is_ok() {
            result = on_event(number, last_time, event);
        }
    });
    read_result.with_context(|| name.to_owned())?;
    result?;
    Ok((counts, assembler.counts))
}

fn read_messages(
    path: &Path,
    types: BodyDecoder,
    max_message: MaxMessageValue,
) -> anyhow::Result<(Vec<SniffedMessage>, Sniffer)> {
    let mut sniffer = Sniffer::new(types, max_message);
    let max_bytes = MAX_REPLAYED_BYTES.max(max_message.bytes.unwrap_or_default().saturating_mul(2));
    let mut all = Vec::new();
    let mut bytes = 0;
    read_events(open(path)?, &path.display().to_string(), |number, time, event| {
        sniffer.handle_event(number, time, event, &mut |sniffed| {
            bytes += sniffed.complete_message.as_ref().map_or(0, |complete| complete.bytes.len());
            all.push(sniffed);
        });
        ensure!(
            bytes <= max_bytes,
            "the messages of the capture have more than {} MiB; split it",
            max_bytes >> 20
        );
        Ok(())
    })?;
    Ok((all, sniffer))
}
