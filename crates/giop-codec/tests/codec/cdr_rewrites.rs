//! Sequences of structs whose first element starts at phase 4: views of a message in which that element was
//! rewritten.

use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Decoder, Element, Elements, Encoder, FixedLayout, FixedReader,
    FixedWriter, Layout, Pad, Rewrites, Seq,
};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

macro_rules! zero_copy {
    ($name:ident { $($field:ident: $ty:ty,)* }) => {
        #[derive(
            Clone, Debug, Default, PartialEq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(C)]
        struct $name { $($field: $ty,)* }

        impl FixedLayout for $name {
            const LAYOUT: Layout = Layout::EMPTY$(.then(<$ty as FixedLayout>::LAYOUT))*;

            #[inline(always)]
            fn put(&self, w: &mut FixedWriter<'_>) {
                $(w.put(&self.$field);)*
            }

            #[inline(always)]
            fn get(r: &mut FixedReader<'_>) -> Self {
                $name { $($field: r.read(),)* }
            }

            giop_codec::element_bytes!();
        }

        impl Element for $name {}

        giop_codec::fixed_cdr!($name);
    };
}

// At phase 4 the first element of `Over` is 4 bytes shorter than in memory and is rewritten over the count.
// That of `Beside` is 4 bytes longer.
zero_copy!(Over { s: i16, c: u8, _p: Pad<1>, l: i32, o: u8, _q: Pad<7>, d: f64, });
zero_copy!(Beside { a: u16, b: u16, c: u16, _p: Pad<2>, d: f64, });

trait Sample: Element + PartialEq + std::fmt::Debug {
    fn sample(i: usize) -> Self;
}

impl Sample for Over {
    fn sample(i: usize) -> Self {
        Over { s: i as i16, c: i as u8, l: -(i as i32), o: 5, d: i as f64, ..Default::default() }
    }
}

impl Sample for Beside {
    fn sample(i: usize) -> Self {
        Beside { a: i as u16, b: 2, c: 3, d: i as f64, ..Default::default() }
    }
}

fn samples<T: Sample>(n: usize) -> Seq<T> {
    (0..n).map(T::sample).collect()
}

/// A buffer as on a connection, with the message at an address that is `shift` bytes off alignment.
struct Received {
    memory: Option<BytesMut>,
    base: usize,
}

impl Received {
    fn new(octets: &[u8], shift: usize) -> Received {
        let mut memory = BytesMut::zeroed(octets.len() + 128);
        let base = memory.as_ptr().align_offset(64) + shift;
        memory[base..base + octets.len()].copy_from_slice(octets);
        memory.truncate(base + octets.len());
        Received { memory: Some(memory), base }
    }

    /// Decodes as the owner of a message does; also returns the number of attempts.
    fn decode<T>(
        &mut self,
        order: ByteOrder,
        version: Version,
        phase: usize,
        f: impl Fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> (Result<T, DecodeError>, u32, Bytes) {
        let whole = self.memory.take().unwrap().freeze();
        let octets = whole.slice(self.base..);
        let mut rewrites = Rewrites::default();
        let decoded = f(&mut Decoder::from_bytes(&octets, order, version).at(phase).with_rewrites(&rewrites));
        if rewrites.is_empty() || decoded.is_err() {
            return (decoded, 1, octets);
        }
        drop((decoded, octets));
        let mut memory = whole.try_into_mut().unwrap();
        rewrites.apply(&mut memory[self.base..]);
        let octets = memory.freeze().slice(self.base..);
        let decoded = f(&mut Decoder::from_bytes(&octets, order, version).at(phase).with_rewrites(&rewrites));
        (decoded, 2, octets)
    }
}

fn encode(order: ByteOrder, version: Version, phase: usize, f: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut e = Encoder::new(order, version);
    e.put_raw(&[0xEE; 8][..phase]);
    f(&mut e);
    e.into_bytes()
}

fn is_view<T: Element>(items: &Seq<T>, of: &Bytes) -> bool {
    of.as_ptr_range().contains(&items.as_bytes().as_ptr())
}

fn every_phase<T: Sample>() {
    let n = 1500;
    for order in ORDERS {
        for version in VERSIONS {
            for phase in 0..8 {
                let sent = encode(order, version, phase, |e| {
                    samples::<T>(n).encode(e).unwrap();
                    77u32.encode(e).unwrap();
                });
                let mut received = Received::new(&sent, 0);
                let (decoded, times, octets) =
                    received.decode(order, version, phase, |d| Ok((Seq::<T>::decode(d)?, d.read_u32()?)));
                let (items, tail) = decoded.unwrap();
                assert_eq!((items == samples(n), tail), (true, 77), "{order:?} {phase}");
                let native = order == ByteOrder::NATIVE;
                assert_eq!(is_view(&items, &octets), native, "{order:?} {phase}");
                let first_at = phase.next_multiple_of(4) + 4;
                assert_eq!(times, if native && first_at % 8 == 4 { 2 } else { 1 });
            }
        }
    }
}

#[test]
fn a_first_element_shorter_than_in_memory_is_rewritten_over_the_count() {
    every_phase::<Over>();
}

#[test]
fn a_first_element_longer_than_in_memory_is_rewritten_where_it_stands() {
    every_phase::<Beside>();
}

/// Implicit padding: the struct can be read as a view, but not sent from memory.
#[derive(
    Clone, Debug, Default, PartialEq, zerocopy::FromBytes, zerocopy::Immutable, zerocopy::KnownLayout,
)]
#[repr(C)]
struct Plain {
    s: i16,
    c: u8,
    l: i32,
    o: u8,
    d: f64,
}

impl FixedLayout for Plain {
    const LAYOUT: Layout = <Over as FixedLayout>::LAYOUT;
    const IS_VIEWABLE: bool = true;

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put(&self.s);
        w.put(&self.c);
        w.put(&self.l);
        w.put(&self.o);
        w.put(&self.d);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        Plain { s: r.read(), c: r.read(), l: r.read(), o: r.read(), d: r.read() }
    }
}

giop_codec::fixed_cdr!(Plain);

#[test]
fn plain_structs_are_lent_where_they_were_received() {
    let plain = |i: usize| {
        let Over { s, c, l, o, d, .. } = Over::sample(i);
        Plain { s, c, l, o, d }
    };
    for order in ORDERS {
        for version in VERSIONS {
            for phase in 0..8 {
                for n in [0, 1, 100, 1500] {
                    let items: Vec<Plain> = (0..n).map(plain).collect();
                    let sent = encode(order, version, phase, |e| items.encode(e).unwrap());
                    let (read, times, octets) =
                        Received::new(&sent, 0).decode(order, version, phase, Elements::<Plain>::decode);
                    let read = read.unwrap();
                    assert!(*read == items[..], "{order:?} {phase} {n}");
                    let aligned = (phase.next_multiple_of(4) + 4) % 8 == 0;
                    let viewed = n > 0 && octets.as_ptr_range().contains(&read.as_ptr().cast());
                    let wanted = n > 0 && order == ByteOrder::NATIVE && (aligned || n == 1500);
                    assert_eq!(viewed, wanted, "{order:?} {phase} {n}");
                    assert_eq!(times == 2, wanted && !aligned);
                    let cut = &sent[..sent.len() - 1];
                    let (cut, ..) =
                        Received::new(cut, 0).decode(order, version, phase, Elements::<Plain>::decode);
                    assert!(cut.is_err());
                }
            }
        }
    }
}

#[test]
fn short_and_misaligned_sequences_are_copied() {
    let order = ByteOrder::NATIVE;
    for (n, shift) in [(10, 0), (1000, 1), (1000, 4)] {
        let sent = encode(order, Version::V1_2, 0, |e| samples::<Over>(n).encode(e).unwrap());
        let (items, times, octets) =
            Received::new(&sent, shift).decode(order, Version::V1_2, 0, Seq::<Over>::decode);
        let items = items.unwrap();
        assert!(items == samples(n) && !is_view(&items, &octets), "{n} {shift}");
        assert_eq!(times, 1);
    }
}

#[test]
fn several_sequences_of_a_message_are_all_views() {
    let order = ByteOrder::NATIVE;
    type Many = (Vec<Seq<Over>>, Bounded<Seq<Beside>, 2000>, Bytes, Seq<Over>, String);
    let sent = encode(order, Version::V1_2, 0, |e| {
        vec![samples::<Over>(800), samples(2), samples(900)].encode(e).unwrap();
        samples::<Beside>(2000).encode(e).unwrap();
        Bytes::from_static(b"between").encode(e).unwrap();
        samples::<Over>(801).encode(e).unwrap();
        "end".encode(e).unwrap();
    });
    let decode = |d: &mut Decoder<'_>| -> Result<Many, DecodeError> {
        let many = CdrDecode::decode(d)?;
        Ok((many, CdrDecode::decode(d)?, CdrDecode::decode(d)?, CdrDecode::decode(d)?, String::decode(d)?))
    };
    let mut received = Received::new(&sent, 0);
    let (decoded, times, octets) = received.decode(order, Version::V1_2, 0, decode);
    let (many, bounded, between, last, end) = decoded.unwrap();
    assert_eq!(times, 2);
    assert!(many == [samples(800), samples(2), samples(900)] && *bounded == samples(2000));
    assert!(last == samples(801) && end == "end" && between == "between");
    assert!([&many[0], &many[2], &last].into_iter().all(|items| is_view(items, &octets)));
    assert!(is_view(&bounded, &octets) && !is_view(&many[1], &octets));
    // Bounds are checked for views, too.
    let tight = |d: &mut Decoder<'_>| {
        Vec::<Seq<Over>>::decode(d)?;
        Bounded::<Seq<Beside>, 1999>::decode(d)
    };
    let (decoded, ..) = Received::new(&sent, 0).decode(order, Version::V1_2, 0, tight);
    assert_eq!(decoded.unwrap_err().kind, DecodeErrorKind::BoundExceeded);
}

#[test]
fn sequences_in_encapsulations_are_copied() {
    let order = ByteOrder::NATIVE;
    for phase in 0..8 {
        let sent = encode(order, Version::V1_2, phase, |e| {
            e.encapsulate(|e| samples::<Over>(1000).encode(e)).unwrap();
        });
        let inside = |d: &mut Decoder<'_>| Seq::<Over>::decode(&mut d.encapsulation()?);
        let (items, ..) = Received::new(&sent, 0).decode(order, Version::V1_2, phase, inside);
        assert!(items.unwrap() == samples(1000), "{phase}");
    }
}

#[test]
fn cut_messages_and_lies_about_lengths_are_errors() {
    let order = ByteOrder::NATIVE;
    for phase in [0, 4] {
        let sent = encode(order, Version::V1_2, phase, |e| samples::<Over>(1000).encode(e).unwrap());
        for cut in (phase..sent.len()).step_by(31).chain([sent.len() - 1]) {
            let mut received = Received::new(&sent[..cut], 0);
            let (decoded, times, _) = received.decode(order, Version::V1_2, phase, Seq::<Over>::decode);
            assert!(decoded.is_err() && times == 1, "{cut}");
        }
        for lie in [1001, 1200, u32::MAX / 24, u32::MAX] {
            let mut lying = sent.to_vec();
            lying[phase..phase + 4].copy_from_slice(&lie.to_ne_bytes());
            let (decoded, ..) =
                Received::new(&lying, 0).decode(order, Version::V1_2, phase, Seq::<Over>::decode);
            let kind = decoded.unwrap_err().kind;
            assert!(
                matches!(kind, DecodeErrorKind::LengthBeyondData | DecodeErrorKind::EndOfData),
                "{lie} {kind:?}"
            );
        }
        let fewer = 999u32.to_ne_bytes();
        let mut short = sent.to_vec();
        short[phase..phase + 4].copy_from_slice(&fewer);
        let (decoded, ..) = Received::new(&short, 0).decode(order, Version::V1_2, phase, |d| {
            let items = Seq::<Over>::decode(d)?;
            Ok((items, d.remaining()))
        });
        let (items, left) = decoded.unwrap();
        assert!(items == samples(999) && left == 24);
    }
}

#[test]
fn joined_fragments_are_copied() {
    let order = ByteOrder::NATIVE;
    let sent = encode(order, Version::V1_1, 0, |e| samples::<Over>(1000).encode(e).unwrap());
    let rewrites = Rewrites::default();
    let joints = [sent.len() as u32];
    let mut d =
        Decoder::from_bytes(&sent, order, Version::V1_1).with_fragments(&joints).with_rewrites(&rewrites);
    assert!(Seq::<Over>::decode(&mut d).unwrap() == samples(1000));
}
