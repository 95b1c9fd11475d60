//! TCP segments from files of tcpdump and Wireshark, and writing of files for them.

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

/// Initial and maximum buffer size of a reader. The latter limits the size of a packet; tcpdump writes none
/// above 256 KiB.
const WINDOW: usize = 256 << 10;
const MAX_WINDOW: usize = 32 << 20;
/// Maximum number of interfaces in a file.
const MAX_INTERFACES: usize = 4096;

/// A captured TCP segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    /// Time since 1970.
    pub(super) time: Duration,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    pub(super) acknowledged: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) octets: &'a [u8],
}

/// Counters of packets in a file.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(super) struct PacketCounts {
    pub(super) packets: u64,
    /// Packets that are neither IPv4 nor IPv6, or not TCP.
    pub(super) other: u64,
    /// Fragments of IP packets, which are not reassembled.
    pub(super) ip_fragments: u64,
    /// Truncated packets. `tcpdump -s 0` captures whole packets.
    pub(super) cut: u64,
    /// The file ends within a packet.
    pub(super) ends_early: bool,
}

/// An interface of a capture.
#[derive(Debug, Clone, Copy)]
struct Link {
    kind: Linktype,
    /// Ticks of its clock per second, and an offset in seconds.
    ticks: u64,
    offset: i64,
}

/// Reads a capture to its end, packet by packet.
///
/// # Errors
/// The file is not a capture, or is damaged such that the next packet cannot be found, and errors of `each`.
pub(super) fn read(
    from: impl Read + Send,
    counts: &mut PacketCounts,
    mut each: impl FnMut(Segment<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = match create_reader(WINDOW, Prompt { from, reads: 0 }) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => bail!("it is empty"),
        Err(PcapError::ReadError) => bail!("it can not be read"),
        Err(_) => bail!("it is no capture: neither pcap nor pcapng"),
    };
    let mut links: Vec<Link> = Vec::new();
    let mut window = WINDOW;
    loop {
        let used = match reader.next() {
            Ok((used, block)) => {
                ensure!(used > 0, "the capture is damaged: a block of no octets");
                take(&block, &mut links, counts, &mut each)?;
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
                window *= 2;
                ensure!(
                    window <= MAX_WINDOW && reader.grow(window),
                    "the capture is damaged: a packet of more than {} MiB",
                    MAX_WINDOW >> 20
                );
                refill(reader.as_mut())?;
                continue;
            }
            Err(_) => bail!("the capture is damaged behind {} packets", counts.packets),
        };
        reader.consume(used);
    }
}

fn refill(reader: &mut dyn PcapReaderIterator) -> anyhow::Result<()> {
    reader.refill().map_err(|_| anyhow::anyhow!("it can not be read on"))
}

fn take(
    block: &PcapBlockOwned<'_>,
    links: &mut Vec<Link>,
    counts: &mut PacketCounts,
    each: &mut impl FnMut(Segment<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (link, time, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let ticks = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            links.push(Link { kind: header.network, ticks, offset: 0 });
            return Ok(());
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some(link) = links.first() else { return Ok(()) };
            let part = (u128::from(packet.ts_usec) * 1_000_000_000) / u128::from(link.ticks);
            let time = Duration::from_secs(packet.ts_sec.into())
                + Duration::from_nanos(u64::try_from(part).unwrap_or_default());
            counts.cut += u64::from(packet.caplen < packet.origlen);
            (*link, time, packet.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            links.clear();
            return Ok(());
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            ensure!(links.len() < MAX_INTERFACES, "the capture names more than {MAX_INTERFACES} interfaces");
            let ticks = interface.ts_resolution().filter(|ticks| *ticks > 0).unwrap_or(1_000_000);
            links.push(Link { kind: interface.linktype, ticks, offset: interface.if_tsoffset });
            return Ok(());
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let link = usize::try_from(packet.if_id).ok().and_then(|at| links.get(at));
            let Some(link) = link else { return Ok(()) };
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let part = u128::from(ticks % link.ticks) * 1_000_000_000 / u128::from(link.ticks);
            let seconds = (ticks / link.ticks).saturating_add_signed(link.offset);
            // Later times come from damaged packets.
            let time = Duration::from_secs(seconds.min(u64::from(u32::MAX) * 4))
                + Duration::from_nanos(u64::try_from(part).unwrap_or_default());
            let len = usize::try_from(packet.caplen).unwrap_or(usize::MAX).min(packet.data.len());
            counts.cut += u64::from(packet.caplen < packet.origlen);
            (*link, time, packet.data.get(..len).unwrap_or_default())
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let Some(link) = links.first() else { return Ok(()) };
            (*link, Duration::ZERO, packet.data)
        }
        PcapBlockOwned::NG(_) => return Ok(()),
    };
    counts.packets += 1;
    match segment(link.kind, time, data, counts)? {
        Some(segment) => each(segment),
        None => Ok(()),
    }
}

/// Returns the TCP segment in a packet.
///
/// # Errors
/// The kind of link is not supported.
fn segment<'a>(
    link: Linktype,
    time: Duration,
    data: &'a [u8],
    counts: &mut PacketCounts,
) -> anyhow::Result<Option<Segment<'a>>> {
    let cooked = |protocol: usize, len: usize| {
        let kind = data.get(protocol..protocol + 2)?.first_chunk::<2>()?;
        Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*kind)), data.get(len..)?))
    };
    let ip = |data: Option<&'a [u8]>| LaxSlicedPacket::from_ip(data?).ok();
    let packet = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::LINUX_SLL => cooked(14, 16),
        Linktype::LINUX_SLL2 => cooked(0, 20),
        // The address family precedes the packet, in the byte order of an unknown machine. It is ignored,
        // because the packet contains the IP version.
        Linktype::NULL | Linktype::LOOP => ip(data.get(4..)),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => ip(Some(data)),
        Linktype(other) => bail!(
            "the capture is of links of kind {other}, which can not be read: Ethernet, Linux cooked (v1 and v2), loopback and raw IP can"
        ),
    };
    let Some(packet) = packet else {
        counts.other += 1;
        return Ok(None);
    };
    let ends: Option<(IpAddr, IpAddr)> = match &packet.net {
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
    let (Some((from, to)), Some(TransportSlice::Tcp(tcp))) = (ends, &packet.transport) else {
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
        octets: tcp.payload(),
    }))
}

/// A workaround for readers of captures. They read a second time before they return packets, which would
/// delay the first packets of a pipe or of a growing file. The second read returns no bytes.
struct Prompt<R> {
    from: R,
    reads: u32,
}

impl<R: Read> Read for Prompt<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reads = self.reads.saturating_add(1);
        if self.reads == 2 { Ok(0) } else { self.from.read(into) }
    }
}

/// A file that is read while it grows, until `ended` is set.
pub(super) struct Growing<R> {
    pub(super) from: R,
    pub(super) ended: Arc<AtomicBool>,
}

impl<R: Read> Read for Growing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.from.read(into) {
                Ok(0) if !self.ended.load(Ordering::Relaxed) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// The writer of a capture. It writes raw IP packets, with handshakes and acknowledgements as on a network,
/// so that Wireshark can follow the streams.
///
/// The file format consists of a header of 24 bytes, and 16 bytes for each packet. A crate for it would cost
/// more in compile time than it saves.
pub(super) struct Writer {
    out: io::BufWriter<File>,
}

/// Maximum payload of a written packet.
const PIECE: usize = 32 << 10;

/// The state of a written connection: the number of bytes that each side has sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded {
    client: SocketAddr,
    server: SocketAddr,
    sent: [u32; 2],
}

impl Writer {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(path: &std::path::Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut out = io::BufWriter::new(file);
        // Magic number of microseconds, version 2.4, time zone, accuracy, maximum packet size, link.
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 1 << 18, Linktype::RAW.0 as u32] {
            out.write_all(&u32::to_ne_bytes(word))?;
        }
        out.flush()?;
        Ok(Self { out })
    }

    /// Writes the start of a connection.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(
        &mut self,
        time: Duration,
        client: SocketAddr,
        server: SocketAddr,
    ) -> anyhow::Result<Recorded> {
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
        let mut recorded = Recorded { client, server, sent: [0, 0] };
        self.packet(time, &recorded, true, Flag::Syn, &[])?;
        recorded.sent[0] = 1;
        self.packet(time, &recorded, false, Flag::Syn, &[])?;
        recorded.sent[1] = 1;
        self.packet(time, &recorded, true, Flag::Push, &[])?;
        Ok(recorded)
    }

    /// Writes bytes that one side sent.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn octets(
        &mut self,
        time: Duration,
        recorded: &mut Recorded,
        from_client: bool,
        octets: &[u8],
    ) -> anyhow::Result<()> {
        for piece in octets.chunks(PIECE) {
            self.packet(time, recorded, from_client, Flag::Push, piece)?;
            let sent = &mut recorded.sent[usize::from(!from_client)];
            *sent = sent.wrapping_add(piece.len() as u32);
        }
        self.out.flush().context("cannot write the capture")
    }

    /// Writes the end of one side's stream.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn end(
        &mut self,
        time: Duration,
        recorded: &mut Recorded,
        from_client: bool,
    ) -> anyhow::Result<()> {
        self.packet(time, recorded, from_client, Flag::Fin, &[])?;
        let sent = &mut recorded.sent[usize::from(!from_client)];
        *sent = sent.wrapping_add(1);
        self.out.flush().context("cannot write the capture")
    }

    fn packet(
        &mut self,
        time: Duration,
        recorded: &Recorded,
        from_client: bool,
        flag: Flag,
        octets: &[u8],
    ) -> anyhow::Result<()> {
        let (from, to, at) = match from_client {
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
        let mut builder = builder.tcp(from.port(), to.port(), recorded.sent[at], u16::MAX);
        // Every packet except the very first one acknowledges all bytes of the other side.
        if !(flag == Flag::Syn && from_client) {
            builder = builder.ack(recorded.sent[1 - at]);
        }
        builder = match flag {
            Flag::Syn => builder.syn(),
            Flag::Fin => builder.fin(),
            Flag::Push if octets.is_empty() => builder,
            Flag::Push => builder.psh(),
        };
        let mut packet = Vec::with_capacity(builder.size(octets.len()));
        builder.write(&mut packet, octets).context("cannot make a packet")?;
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
    Push,
    Fin,
}
