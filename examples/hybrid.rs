//! Compiled or interpreted marshalling code: the machine code in bytes and the time of each type of a large
//! IDL. From the frequency of use follows which types benefit from compiled code.
//!
//! `scripts/code-size.sh` builds this without link-time optimisation, determines the sizes of all functions
//! and passes them to it. Without sizes, it prints times and uses.

#![allow(clippy::expect_used, reason = "octets that this program made itself")]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Char, Decoder, Encoder, WChar, WString};
use giop_codec::{ByteOrder, DecodeError, EncodeError, Version};
use zorb::{TcKind, TypeCode, Typed};

mod compiled {
    pub(crate) use interop::names;
    zorb::idl!("tests/interop/idl/types.idl", define = ["TYPES_ONLY"], no_warnings);
}

mod interpreted {
    pub(crate) use interop::names;
    zorb::idl!("tests/interop/idl/types.idl", define = ["TYPES_ONLY"], no_warnings, interpretive);
}

/// Always interpreted, and counted.
mod counted {
    pub(crate) use interop::names;
    zorb::idl!(
        "tests/interop/idl/types.idl",
        define = ["TYPES_ONLY"],
        no_warnings,
        adaptive(uses = 4294967295),
        uses = "all_uses"
    );
}

/// Measuring time of each variant of a type.
const TIME: Duration = Duration::from_millis(10);

/// The measurements of a type.
struct Row {
    name: &'static str,
    uses: u32,
    compiled_ns: f64,
    interpreted_ns: f64,
    compiled_octets: usize,
    interpreted_octets: usize,
}

impl Row {
    /// Returns the nanoseconds that compiled code would have saved in the counted run.
    fn gain(&self) -> f64 {
        f64::from(self.uses) * (self.interpreted_ns - self.compiled_ns)
    }

    /// Returns the additional bytes of compiled code.
    fn price(&self) -> f64 {
        self.compiled_octets.saturating_sub(self.interpreted_octets).max(1) as f64
    }
}

/// Measures these types, and uses each of them the given number of times in the counted form.
macro_rules! rows {
    ($($module:ident: $($name:ident $times:literal)*;)*) => {
        vec![$($({
            use compiled::$module as compiled;
            use counted::$module as counted;
            use interpreted::$module as interpreted;
            for _ in 0..$times / 2 {
                let value = decode::<counted::$name>(&octets_of(&counted::$name::type_code()));
                octets(CdrEncode::encode, &value);
            }
            Row {
                name: stringify!($name),
                uses: 0,
                compiled_ns: time::<compiled::$name>(),
                interpreted_ns: time::<interpreted::$name>(),
                compiled_octets: 0,
                interpreted_octets: 0,
            }
        }),*),*]
    };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = match std::env::args().nth(1) {
        Some(path) => sizes(&std::fs::read_to_string(path)?),
        None => HashMap::new(),
    };
    // The frequencies of a fictitious service that sends the members of teams to a few clients, and points to
    // many.
    let mut rows = rows! {
        interop:
            Color 10 Point 20000 Mixed 4000 Bill 100 Person 2000 Team 600 Caption 20 Tree 300 ByLong 1000 ByColor 40
            AllColors 10 ByBoolean 10 Maybe 200 ByChar 30 ByShort 10 ByUShort 10 ByULong 10 ByLongLong 10
            ByULongLong 10 WideChoice 10 Wrapped 100 Plain 10 Detailed 60 Nested 10 NodePair 400 NodeOrText 10;
        names: Result 10 Option 10 Words 10;
    };
    let uses = counted::all_uses();
    for row in &mut rows {
        let of_row = |name: &str| name.rsplit("::").next() == Some(row.name);
        row.uses = uses.iter().find(|uses| of_row(uses.name())).map_or(0, |uses| uses.count());
        let size = |module: &str| sizes.get(&format!("{module} {}", row.name)).copied().unwrap_or(0);
        (row.compiled_octets, row.interpreted_octets) = (size("compiled"), size("interpreted"));
    }
    rows.sort_by(|a, b| (b.gain() / b.price()).total_cmp(&(a.gain() / a.price())));
    println!(
        "{:>4} {:12} {:>7} {:>9} {:>11} {:>7} {:>11} {:>14} {:>7} {:>9}",
        "rank",
        "type",
        "uses",
        "compiled",
        "interpreted",
        "saved",
        "compiled ns",
        "interpreted ns",
        "speedup",
        "us gained"
    );
    for (rank, row) in rows.iter().enumerate() {
        println!(
            "{:4} {:12} {:7} {:9} {:11} {:7} {:11.0} {:14.0} {:7.1} {:9.0}",
            rank + 1,
            row.name,
            row.uses,
            row.compiled_octets,
            row.interpreted_octets,
            row.compiled_octets as isize - row.interpreted_octets as isize,
            row.compiled_ns,
            row.interpreted_ns,
            row.interpreted_ns / row.compiled_ns,
            row.gain() / 1e3,
        );
    }
    let sum = |octets: fn(&Row) -> usize| rows.iter().map(octets).sum::<usize>();
    let (compiled, interpreted) = (sum(|row| row.compiled_octets), sum(|row| row.interpreted_octets));
    println!("all types: {compiled} octets compiled, {interpreted} interpreted");
    if let Some(shared) = sizes.get("shared interpreter") {
        println!("the interpreter, once for all types: {shared} octets");
    }
    println!("rank: time gained by compiled code for each octet that it takes more, by the uses of this run");
    Ok(())
}

/// Parses lines of a module, a type and a number of bytes.
fn sizes(text: &str) -> HashMap<String, usize> {
    let line = |line: &str| {
        let (name, octets) = line.rsplit_once(' ')?;
        Some((name.to_owned(), octets.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Returns the nanoseconds of writing and reading a value once.
fn time<T: CdrEncode + CdrDecode + Typed>() -> f64 {
    let message = octets_of(&T::type_code());
    let value: T = decode(&message);
    // Called through pointers, so that both remain separate functions.
    let encode: fn(&T, &mut Encoder) -> Result<(), EncodeError> = black_box(T::encode);
    let decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError> = black_box(T::decode);
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let mut best = f64::MAX;
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        const TIMES: u32 = 200;
        let start = Instant::now();
        for _ in 0..TIMES {
            e.reset(ByteOrder::NATIVE, Version::V1_2);
            let _ = black_box(encode(black_box(&value), &mut e));
            let mut d = Decoder::from_bytes(&message, ByteOrder::NATIVE, Version::V1_2);
            let _ = black_box(decode(&mut d));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(TIMES));
    }
    best
}

fn octets<T>(encode: fn(&T, &mut Encoder) -> Result<(), EncodeError>, value: &T) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    encode(value, &mut e).expect("a value that has an encoding");
    e.into_bytes()
}

fn decode<T: CdrDecode>(octets: &Bytes) -> T {
    let mut d = Decoder::from_bytes(octets, ByteOrder::NATIVE, Version::V1_2);
    T::decode(&mut d).expect("octets of a value")
}

/// Returns the encoding of a value of a type: four elements in each sequence, six letters in each text, the
/// first case of each union.
fn octets_of(code: &TypeCode) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    put(code, &mut e, 0).expect("a type of values");
    e.into_bytes()
}

fn put(code: &TypeCode, e: &mut Encoder, depth: usize) -> Result<(), Box<dyn std::error::Error>> {
    match code.kind() {
        TcKind::Alias => put(&code.content_type()?, e, depth)?,
        TcKind::Boolean | TcKind::Octet => e.put_u8(1),
        TcKind::Char => Char(b'c').encode(e)?,
        TcKind::WChar => WChar(u16::from(b'w')).encode(e)?,
        TcKind::Short | TcKind::UShort => e.put_u16(2),
        TcKind::Long | TcKind::ULong | TcKind::Float => e.put_u32(3),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => e.put_u64(4),
        TcKind::String => "string".encode(e)?,
        TcKind::WString => WString::from("string").encode(e)?,
        TcKind::Enum => e.put_u32(0),
        TcKind::Fixed => {
            e.put_raw(&vec![0; usize::from(code.fixed_digits()?) / 2]);
            e.put_u8(0x5C);
        }
        TcKind::Struct | TcKind::Except => {
            for index in 0..code.member_count()? {
                put(&code.member_type(index)?, e, depth)?;
            }
        }
        TcKind::Union => {
            let label = code.member_discriminator(0)?.unwrap_or(99);
            let discriminator = code.discriminator_type()?;
            match discriminator.kind() {
                TcKind::Boolean | TcKind::Char | TcKind::Octet => e.put_u8(label as u8),
                TcKind::Short | TcKind::UShort => e.put_u16(label as u16),
                TcKind::LongLong | TcKind::ULongLong => e.put_u64(label as u64),
                _ => e.put_u32(label as u32),
            }
            put(&code.member_type(0)?, e, depth)?;
        }
        TcKind::Sequence => {
            let count = if depth < 3 { 3 } else { 0 };
            e.put_u32(count);
            for _ in 0..count {
                put(&code.content_type()?, e, depth + 1)?;
            }
        }
        TcKind::Array => {
            for _ in 0..code.length()? {
                put(&code.content_type()?, e, depth)?;
            }
        }
        TcKind::ObjRef => giop_codec::ior::Ior::nil().encode(e)?,
        kind => return Err(format!("no values of {kind:?}").into()),
    }
    Ok(())
}
