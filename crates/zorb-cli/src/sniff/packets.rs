//! Capture files of tcpdump and Wireshark: reading of pcap and pcapng, and writing of pcap.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};

/// The initial size of the read buffer. By default, tcpdump records at most this many bytes of a packet.
const INITIAL_BUFFER_BYTES: usize = 256 << 10;
/// The maximum size of the read buffer, and therefore of a packet.
const MAX_BUFFER_BYTES: usize = 32 << 20;
const MAX_INTERFACES: usize = 4096;

/// A TCP segment. `sequence`, `acknowledged`, `syn`, `fin` and `rst` are fields of its TCP header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) time: Duration,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    pub(super) acknowledged: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) payload: &'a [u8],
}

/// The numbers of packets in a file. The field names are the JSON keys.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(super) struct PacketCounts {
    pub(super) packets: u64,
    /// Packets that are neither IPv4 nor IPv6, or not TCP.
    pub(super) other: u64,
    /// Fragments of IP packets, which are not reassembled.
    pub(super) ip_fragments: u64,
    /// Truncated packets. `tcpdump -s 0` captures whole packets.
    pub(super) cut: u64,
    /// True if the file ends within a packet.
    pub(super) ends_early: bool,
}

#[derive(Debug, Clone, Copy)]
struct CaptureInterface {
    link_type: Linktype,
    ticks_per_second: u64,
    offset_seconds: i64,
}

pub(super) fn read(
    source: impl Read + Send,
    counts: &mut PacketCounts,
    mut on_segment: impl FnMut(Segment<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = match create_reader(INITIAL_BUFFER_BYTES, EmptySecondRead { source, reads: 0 }) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => bail!("the capture is empty"),
        Err(PcapError::ReadError) => bail!("the capture cannot be read"),
        Err(_) => bail!("this is not a capture in the format pcap or pcapng"),
    };
    let mut interfaces: Vec<CaptureInterface> = Vec::new();
    let mut buffer_size = INITIAL_BUFFER_BYTES;
    loop {
        let used = match reader.next() {
            Ok((used, block)) => {
                ensure!(used > 0, "the capture is damaged: a block is empty");
                read_block(&block, &mut interfaces, counts, &mut on_segment)?;
                used
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::UnexpectedEof) => {
                counts.ends_early = true;
                return Ok(());
            }
            Err(PcapError::Incomplete(_)) => {
                refill(reader.as_mut())?;
                continue;
            }
            Err(PcapError::BufferTooSmall) => {
                buffer_size *= 2;
                ensure!(
                    buffer_size <= MAX_BUFFER_BYTES && reader.grow(buffer_size),
                    "the capture is damaged: a packet has more than {} MiB",
                    MAX_BUFFER_BYTES >> 20
                );
                refill(reader.as_mut())?;
                continue;
            }
            Err(_) => bail!("the capture is damaged after {} packets", counts.packets),
        };
        reader.consume(used);
    }
}

fn refill(reader: &mut dyn PcapReaderIterator) -> anyhow::Result<()> {
    reader.refill().map_err(|_| anyhow::anyhow!("the rest of the capture cannot be read"))
}

fn read_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<CaptureInterface>,
    counts: &mut PacketCounts,
    on_segment: &mut impl FnMut(Segment<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (interface, time, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let ticks_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(CaptureInterface {
                link_type: header.network,
                ticks_per_second,
                offset_seconds: 0,
            });
            return Ok(());
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some(interface) = interfaces.first() else { return Ok(()) };
            let nanos = (u128::from(packet.ts_usec) * 1_000_000_000) / u128::from(interface.ticks_per_second);
            let time = Duration::from_secs(packet.ts_sec.into())
                + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
            counts.cut += u64::from(packet.caplen < packet.origlen);
            (*interface, time, packet.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return Ok(());
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            ensure!(
                interfaces.len() < MAX_INTERFACES,
                "the capture has more than {MAX_INTERFACES} network interfaces"
            );
            let ticks_per_second =
                description.ts_resolution().filter(|ticks| *ticks > 0).unwrap_or(1_000_000);
            interfaces.push(CaptureInterface {
                link_type: description.linktype,
                ticks_per_second,
                offset_seconds: description.if_tsoffset,
            });
            return Ok(());
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = usize::try_from(packet.if_id).ok().and_then(|index| interfaces.get(index));
            let Some(interface) = interface else { return Ok(()) };
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let ticks_per_second = interface.ticks_per_second;
            let nanos = u128::from(ticks % ticks_per_second) * 1_000_000_000 / u128::from(ticks_per_second);
            let seconds = (ticks / ticks_per_second).saturating_add_signed(interface.offset_seconds);
            // The seconds are limited, because the time in a damaged packet may be far in the future.
            let time = Duration::from_secs(seconds.min(u64::from(u32::MAX) * 4))
                + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
            let len = usize::try_from(packet.caplen).unwrap_or(usize::MAX).min(packet.data.len());
            counts.cut += u64::from(packet.caplen < packet.origlen);
            (*interface, time, packet.data.get(..len).unwrap_or_default())
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let Some(interface) = interfaces.first() else { return Ok(()) };
            (*interface, Duration::ZERO, packet.data)
        }
        PcapBlockOwned::NG(_) => return Ok(()),
    };
    counts.packets += 1;
    match tcp_segment(interface.link_type, time, data, counts)? {
        Some(segment) => on_segment(segment),
        None => Ok(()),
    }
}

fn tcp_segment<'a>(
    link_type: Linktype,
    time: Duration,
    data: &'a [u8],
    counts: &mut PacketCounts,
) -> anyhow::Result<Option<Segment<'a>>> {
    // The "cooked" link types of Linux replace the Ethernet header by a header of their own.
    let cooked = |type_offset: usize, header_len: usize| {
        let ether_type = data.get(type_offset..type_offset + 2)?.first_chunk::<2>()?;
        let ether_type = EtherType(u16::from_be_bytes(*ether_type));
        Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(header_len..)?))
    };
    let ip = |data: Option<&'a [u8]>| LaxSlicedPacket::from_ip(data?).ok();
    let packet = match link_type {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::LINUX_SLL => cooked(14, 16),
        Linktype::LINUX_SLL2 => cooked(0, 20),
        // The address family before the packet is skipped, because the packet itself contains the IP version.
        Linktype::NULL | Linktype::LOOP => ip(data.get(4..)),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => ip(Some(data)),
        Linktype(other) => bail!(
            "the link type {other} of the capture is not supported; supported are Ethernet, Linux cooked (v1 and v2), loopback and raw IP"
        ),
    };
    let Some(packet) = packet else {
        counts.other += 1;
        return Ok(None);
    };
    let addresses: Option<(IpAddr, IpAddr)> = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            Some((ip.header().source_addr().into(), ip.header().destination_addr().into()))
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            Some((ip.header().source_addr().into(), ip.header().destination_addr().into()))
        }
        _ => None,
    };
    if packet.ip_payload().is_some_and(|payload| payload.fragmented) {
        counts.ip_fragments += 1;
        return Ok(None);
    }
    let (Some((from, to)), Some(TransportSlice::Tcp(tcp))) = (addresses, &packet.transport) else {
        counts.other += 1;
        return Ok(None);
    };
    Ok(Some(Segment {
        time,
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        payload: tcp.payload(),
    }))
}

/// A reader whose second read returns no bytes.
///
/// The capture reader reads twice before it returns the first packets. If the second read waited for data of
/// a pipe or a growing file, the packets of the first read would be delayed.
struct EmptySecondRead<R> {
    source: R,
    reads: u32,
}

impl<R: Read> Read for EmptySecondRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads = self.reads.saturating_add(1);
        if self.reads == 2 { Ok(0) } else { self.source.read(buffer) }
    }
}

/// A reader that waits for further data at the end of a file, until `is_ended` is set.
pub(super) struct FollowingReader<R> {
    pub(super) source: R,
    pub(super) is_ended: Arc<AtomicBool>,
}

impl<R: Read> Read for FollowingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.source.read(buffer) {
                Ok(0) if !self.is_ended.load(Ordering::Relaxed) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// Writes a capture in the format pcap. The packets contain the handshakes and acknowledgements of TCP, so
/// that Wireshark can follow the streams.
///
/// No crate is used, because the format is simple: a header of 24 bytes, and 16 bytes before each packet.
pub(super) struct CaptureWriter {
    out: io::BufWriter<File>,
}

const MAX_PAYLOAD_BYTES: usize = 32 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedConnection {
    client: SocketAddr,
    server: SocketAddr,
    /// The next TCP sequence numbers of the client and of the server.
    next_sequence: [u32; 2],
}

impl CaptureWriter {
    pub(super) fn create(path: &std::path::Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut out = io::BufWriter::new(file);
        // The file header: magic number for times in microseconds, version 2.4, time zone, accuracy of times,
        // maximum packet size, link type.
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 1 << 18, Linktype::RAW.0 as u32] {
            out.write_all(&u32::to_ne_bytes(word))?;
        }
        out.flush()?;
        Ok(Self { out })
    }

    pub(super) fn write_handshake(
        &mut self,
        time: Duration,
        client: SocketAddr,
        server: SocketAddr,
    ) -> anyhow::Result<RecordedConnection> {
        // Both addresses of a packet must have the same family.
        let server = match (client, server) {
            (SocketAddr::V4(_), SocketAddr::V6(six)) => {
                let four = six.ip().to_ipv4_mapped().unwrap_or(std::net::Ipv4Addr::LOCALHOST);
                SocketAddr::new(four.into(), six.port())
            }
            (SocketAddr::V6(_), SocketAddr::V4(four)) => {
                SocketAddr::new(four.ip().to_ipv6_mapped().into(), four.port())
            }
            _ => server,
        };
        let mut recorded = RecordedConnection { client, server, next_sequence: [0, 0] };
        let (from_client, from_server) = (true, false);
        self.write_packet(time, &mut recorded, from_client, Flag::Syn, &[])?;
        self.write_packet(time, &mut recorded, from_server, Flag::Syn, &[])?;
        self.write_packet(time, &mut recorded, from_client, Flag::Ack, &[])?;
        Ok(recorded)
    }

    pub(super) fn write_data(
        &mut self,
        time: Duration,
        recorded: &mut RecordedConnection,
        from_client: bool,
        data: &[u8],
    ) -> anyhow::Result<()> {
        for piece in data.chunks(MAX_PAYLOAD_BYTES) {
            self.write_packet(time, recorded, from_client, Flag::Ack, piece)?;
        }
        self.out.flush().context("cannot write the capture")
    }

    pub(super) fn write_fin(
        &mut self,
        time: Duration,
        recorded: &mut RecordedConnection,
        from_client: bool,
    ) -> anyhow::Result<()> {
        self.write_packet(time, recorded, from_client, Flag::Fin, &[])?;
        self.out.flush().context("cannot write the capture")
    }

    fn write_packet(
        &mut self,
        time: Duration,
        recorded: &mut RecordedConnection,
        from_client: bool,
        flag: Flag,
        payload: &[u8],
    ) -> anyhow::Result<()> {
        let (from, to, side) = match from_client {
            true => (recorded.client, recorded.server, 0),
            false => (recorded.server, recorded.client, 1),
        };
        let builder = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                etherparse::PacketBuilder::ipv4(from.octets(), to.octets(), 64)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                etherparse::PacketBuilder::ipv6(from.octets(), to.octets(), 64)
            }
            _ => return Ok(()),
        };
        let mut builder = builder.tcp(from.port(), to.port(), recorded.next_sequence[side], u16::MAX);
        // Every packet except the first one acknowledges all bytes of the other side.
        if !(flag == Flag::Syn && from_client) {
            builder = builder.ack(recorded.next_sequence[1 - side]);
        }
        builder = match flag {
            Flag::Syn => builder.syn(),
            Flag::Fin => builder.fin(),
            Flag::Ack if payload.is_empty() => builder,
            Flag::Ack => builder.psh(),
        };
        let mut packet = Vec::with_capacity(builder.size(payload.len()));
        builder.write(&mut packet, payload).context("cannot create a packet")?;
        let next = &mut recorded.next_sequence[side];
        *next = next.wrapping_add(payload.len() as u32 + u32::from(flag != Flag::Ack));
        let len = packet.len() as u32;
        for word in [time.as_secs() as u32, time.subsec_micros(), len, len] {
            self.out.write_all(&word.to_ne_bytes()).context("cannot write the capture")?;
        }
        self.out.write_all(&packet).context("cannot write the capture")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Syn,
    Ack,
    Fin,
}
