//! The code sets of `char` and `string` other than ISO 8859-1 and UTF-8. ASCII, EBCDIC, ISO 8859-9, ISO
//! 8859-11 and ISO 8859-15 are always available, the others with the feature `encoding_rs`.

use core::fmt;

use super::code_set_id::CodeSetId;
use super::ebcdic::{IBM_037, IBM_500, IBM_1047};

/// A code set of `char` and `string` other than ISO 8859-1 and UTF-8.
/// [`CharSet::from_id`](crate::cdr::CharSet::from_id) returns it in
/// [`CharSet::Converted`](crate::cdr::CharSet).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvertedSet(Set);

struct SetProperties {
    /// The set's numbers in the OSF registry. The first one is announced to peers.
    ids: &'static [u32],
    method: ConversionMethod,
}

pub(super) enum ConversionMethod {
    /// A table of bytes and characters. The functions return `None` if there is no counterpart.
    SingleByte { decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>, has_ascii: bool },
    /// An encoding of `encoding_rs`. Each of those used here encodes ASCII characters as in ASCII.
    #[cfg(feature = "encoding_rs")]
    Library(&'static encoding_rs::Encoding),
    /// Conversion of any text is an error.
    Never,
}

macro_rules! sets {
    (
        by_table { $($set:ident([$($id:literal),*], $method:expr);)* }
        by_library { $($library_set:ident([$($library_id:literal),*], $encoding:ident);)* }
    ) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        enum Set {
            $($set,)*
            $(#[cfg(feature = "encoding_rs")] $library_set,)*
        }

        impl Set {
            const ALL: &'static [Set] =
                &[$(Set::$set,)* $(#[cfg(feature = "encoding_rs")] Set::$library_set,)*];

            const fn properties(self) -> &'static SetProperties {
                match self {
                    $(Set::$set => const {
                        &SetProperties { ids: &[$($id),*], method: $method }
                    },)*
                    $(#[cfg(feature = "encoding_rs")] Set::$library_set => const {
                        let method = ConversionMethod::Library(&encoding_rs::$encoding);
                        &SetProperties { ids: &[$($library_id),*], method }
                    },)*
                }
            }
        }
    };
}

const fn single_byte(decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>) -> ConversionMethod {
    ConversionMethod::SingleByte { decode, encode, has_ascii: true }
}

const fn ebcdic(decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>) -> ConversionMethod {
    ConversionMethod::SingleByte { decode, encode, has_ascii: false }
}

// The numbers are those of the OSF registry. An IBM code page N has the number 0x10020000 + N.
sets! {
    by_table {
        Nothing([], ConversionMethod::Never);
        Ascii([0x0001_0020], single_byte(|b| b.is_ascii().then_some(char::from(b)), |c| u8::try_from(c).ok().filter(u8::is_ascii)));
        Iso8859_9([0x0001_0009], single_byte(|b| decode_patched(LATIN_5, b), |c| encode_patched(LATIN_5, c)));
        Iso8859_11([0x0001_000b], single_byte(decode_thai, encode_thai));
        Iso8859_15([0x0001_000f], single_byte(|b| decode_patched(LATIN_9, b), |c| encode_patched(LATIN_9, c)));
        Ibm037([0x1002_0025], ebcdic(|b| IBM_037.decode(b), |c| IBM_037.encode(c)));
        // omniORB uses the second number.
        Ibm500([0x1002_01f4, 0x1002_01f8], ebcdic(|b| IBM_500.decode(b), |c| IBM_500.encode(c)));
        Ibm1047([0x1002_0417], ebcdic(|b| IBM_1047.decode(b), |c| IBM_1047.encode(c)));
    }
    by_library {
        Iso8859_2([0x0001_0002], ISO_8859_2_INIT);
        Iso8859_3([0x0001_0003], ISO_8859_3_INIT);
        Iso8859_4([0x0001_0004], ISO_8859_4_INIT);
        Iso8859_5([0x0001_0005], ISO_8859_5_INIT);
        Iso8859_6([0x0001_0006], ISO_8859_6_INIT);
        Iso8859_7([0x0001_0007], ISO_8859_7_INIT);
        Iso8859_8([0x0001_0008], ISO_8859_8_INIT);
        Iso8859_10([0x0001_000a], ISO_8859_10_INIT);
        Iso8859_13([0x0001_000d], ISO_8859_13_INIT);
        Iso8859_14([0x0001_000e], ISO_8859_14_INIT);
        Iso8859_16([0x0001_0010], ISO_8859_16_INIT);
        Windows1250([0x1002_04e2], WINDOWS_1250_INIT);
        Windows1251([0x1002_04e3], WINDOWS_1251_INIT);
        Windows1252([0x1002_04e4], WINDOWS_1252_INIT);
        Windows1253([0x1002_04e5], WINDOWS_1253_INIT);
        Windows1254([0x1002_04e6], WINDOWS_1254_INIT);
        Windows1255([0x1002_04e7], WINDOWS_1255_INIT);
        Windows1256([0x1002_04e8], WINDOWS_1256_INIT);
        Windows1257([0x1002_04e9], WINDOWS_1257_INIT);
        Windows1258([0x1002_04ea], WINDOWS_1258_INIT);
        Ibm866([0x1002_0362], IBM866_INIT);
        Koi8R([0x1002_036e], KOI8_R_INIT);
        // The Japanese vendors' council, the OSF and JIS assigned different numbers.
        ShiftJis([0x0502_0002, 0x0500_0011], SHIFT_JIS_INIT);
        EucJp([0x0003_0010, 0x0502_0001], EUC_JP_INIT);
        EucKr([0x0004_000a], EUC_KR_INIT);
        // omniORB uses the second number, although the registry assigns it to a subset of GBK.
        Gbk([0x1002_056a, 0x1002_0567], GBK_INIT);
        Big5([0x1002_03b6], BIG5_INIT);
    }
}

/// The differences of ISO 8859-9 from ISO 8859-1: Turkish letters in place of Icelandic ones.
const LATIN_5: &[(u8, char)] = &[
    (0xd0, '\u{11e}'),
    (0xdd, '\u{130}'),
    (0xde, '\u{15e}'),
    (0xf0, '\u{11f}'),
    (0xfd, '\u{131}'),
    (0xfe, '\u{15f}'),
];

/// The differences of ISO 8859-15 from ISO 8859-1: the euro, and letters of French, Finnish and Estonian.
const LATIN_9: &[(u8, char)] = &[
    (0xa4, '\u{20ac}'),
    (0xa6, '\u{160}'),
    (0xa8, '\u{161}'),
    (0xb4, '\u{17d}'),
    (0xb8, '\u{17e}'),
    (0xbc, '\u{152}'),
    (0xbd, '\u{153}'),
    (0xbe, '\u{178}'),
];

fn decode_patched(patches: &[(u8, char)], byte: u8) -> Option<char> {
    let patch = patches.iter().find(|(at, _)| *at == byte);
    Some(patch.map_or(char::from(byte), |(_, c)| *c))
}

fn encode_patched(patches: &[(u8, char)], c: char) -> Option<u8> {
    if let Some((byte, _)) = patches.iter().find(|(_, patch)| *patch == c) {
        return Some(*byte);
    }
    u8::try_from(c).ok().filter(|byte| !patches.iter().any(|(at, _)| at == byte))
}

fn decode_thai(byte: u8) -> Option<char> {
    match byte {
        0xa1..=0xda | 0xdf..=0xfb => char::from_u32(0xe00 + u32::from(byte) - 0xa0),
        0..=0xa0 => Some(char::from(byte)),
        _ => None,
    }
}

fn encode_thai(c: char) -> Option<u8> {
    match c {
        '\u{e01}'..='\u{e3a}' | '\u{e3f}'..='\u{e5b}' => u8::try_from(u32::from(c) - 0xe00 + 0xa0).ok(),
        '\0'..='\u{a0}' => u8::try_from(c).ok(),
        _ => None,
    }
}

impl ConvertedSet {
    /// The set in which no text can be encoded.
    pub(super) const NOTHING: Self = Self(Set::Nothing);

    /// Returns the set with this number, or `None` if there is none or the feature that it needs is disabled.
    pub(crate) fn from_id(id: CodeSetId) -> Option<Self> {
        Set::ALL.iter().find(|set| set.properties().ids.contains(&id.0)).map(|set| Self(*set))
    }

    /// Returns the number by which the set is announced to peers.
    pub(crate) fn id(self) -> CodeSetId {
        CodeSetId(self.0.properties().ids.first().copied().unwrap_or_default())
    }

    pub(super) fn method(self) -> &'static ConversionMethod {
        &self.0.properties().method
    }

    /// Returns the name of the set, which is "none" for [`CharSet::NOTHING`](crate::cdr::CharSet::NOTHING).
    pub fn name(self) -> &'static str {
        self.id().name().unwrap_or_default()
    }

    /// Returns whether ASCII text has the same bytes in this set as in ASCII.
    pub(crate) fn has_ascii(self) -> bool {
        match *self.method() {
            ConversionMethod::SingleByte { has_ascii, .. } => has_ascii,
            #[cfg(feature = "encoding_rs")]
            ConversionMethod::Library(_) => true,
            ConversionMethod::Never => false,
        }
    }

    /// Converts bytes to text, with U+FFFD in place of bytes that are not characters of the set.
    #[cold]
    pub(super) fn decode_lossy(self, bytes: &[u8]) -> String {
        match self.method() {
            ConversionMethod::SingleByte { decode, .. } => {
                bytes.iter().map(|byte| decode(*byte).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
            #[cfg(feature = "encoding_rs")]
            ConversionMethod::Library(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            ConversionMethod::Never => String::new(),
        }
    }
}

impl fmt::Debug for ConvertedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
