//! Code sets that text is converted to and from: EBCDIC, ASCII, relatives of ISO 8859-1, UCS-2 and UCS-4.
//! With the feature `encoding_rs`, also code sets of other languages.

use core::fmt;

use super::code_set_id::CodeSetId;
use super::ebcdic::{IBM_037, IBM_500, IBM_1047};

/// A code set of `char` and `string` other than ISO 8859-1 and UTF-8, converted by a table: see
/// [`CharSet::from_id`](crate::cdr::CharSet::from_id).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvertedSet(Table);

/// The properties of a set.
struct SetProperties {
    name: &'static str,
    /// Its numbers in the registry. The first one is announced.
    ids: &'static [u32],
    way: ConversionMethod,
}

/// The conversion method of a set.
pub(super) enum ConversionMethod {
    /// One byte a character. Bytes and characters without a counterpart yield `None`.
    Octets { decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>, has_ascii: bool },
    /// Conversion by the library. All of these sets contain ASCII unchanged.
    #[cfg(feature = "encoding_rs")]
    Library(&'static encoding_rs::Encoding),
    /// No conversion: all text is an error.
    Never,
}

macro_rules! sets {
    ($($(#[$cfg:meta])* $set:ident($name:literal, [$($id:literal),*], $way:expr);)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        enum Table {
            $($(#[$cfg])* $set,)*
        }

        impl Table {
            const ALL: &'static [Table] = &[$($(#[$cfg])* Table::$set,)*];

            const fn row(self) -> &'static SetProperties {
                match self {
                    $($(#[$cfg])* Table::$set => {
                        static ROW: SetProperties = SetProperties { name: $name, ids: &[$($id),*], way: $way };
                        &ROW
                    })*
                }
            }
        }
    };
}

const fn octets(decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>) -> ConversionMethod {
    ConversionMethod::Octets { decode, encode, has_ascii: true }
}

const fn ebcdic(decode: fn(u8) -> Option<char>, encode: fn(char) -> Option<u8>) -> ConversionMethod {
    ConversionMethod::Octets { decode, encode, has_ascii: false }
}

// Numbers are those of the OSF registry. The code set with IBM number N is 0x10020000 + N.
sets! {
    Nothing("none", [], ConversionMethod::Never);
    Ascii("ISO 646", [0x0001_0020], octets(|o| o.is_ascii().then_some(char::from(o)), |c| u8::try_from(c).ok().filter(u8::is_ascii)));
    Iso8859_9("ISO 8859-9", [0x0001_0009], octets(|o| patched(LATIN_5, o), |c| of_patched(LATIN_5, c)));
    Iso8859_11("ISO 8859-11", [0x0001_000b], octets(thai, of_thai));
    Iso8859_15("ISO 8859-15", [0x0001_000f], octets(|o| patched(LATIN_9, o), |c| of_patched(LATIN_9, c)));
    Ibm037("IBM-037", [0x1002_0025], ebcdic(|o| IBM_037.decode(o), |c| IBM_037.encode(c)));
    // omniORB uses the second number.
    Ibm500("IBM-500", [0x1002_01f4, 0x1002_01f8], ebcdic(|o| IBM_500.decode(o), |c| IBM_500.encode(c)));
    Ibm1047("IBM-1047", [0x1002_0417], ebcdic(|o| IBM_1047.decode(o), |c| IBM_1047.encode(c)));
    #[cfg(feature = "encoding_rs")]
    Iso8859_2("ISO 8859-2", [0x0001_0002], ConversionMethod::Library(&encoding_rs::ISO_8859_2_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_3("ISO 8859-3", [0x0001_0003], ConversionMethod::Library(&encoding_rs::ISO_8859_3_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_4("ISO 8859-4", [0x0001_0004], ConversionMethod::Library(&encoding_rs::ISO_8859_4_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_5("ISO 8859-5", [0x0001_0005], ConversionMethod::Library(&encoding_rs::ISO_8859_5_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_6("ISO 8859-6", [0x0001_0006], ConversionMethod::Library(&encoding_rs::ISO_8859_6_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_7("ISO 8859-7", [0x0001_0007], ConversionMethod::Library(&encoding_rs::ISO_8859_7_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_8("ISO 8859-8", [0x0001_0008], ConversionMethod::Library(&encoding_rs::ISO_8859_8_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_10("ISO 8859-10", [0x0001_000a], ConversionMethod::Library(&encoding_rs::ISO_8859_10_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_13("ISO 8859-13", [0x0001_000d], ConversionMethod::Library(&encoding_rs::ISO_8859_13_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_14("ISO 8859-14", [0x0001_000e], ConversionMethod::Library(&encoding_rs::ISO_8859_14_INIT));
    #[cfg(feature = "encoding_rs")]
    Iso8859_16("ISO 8859-16", [0x0001_0010], ConversionMethod::Library(&encoding_rs::ISO_8859_16_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1250("windows-1250", [0x1002_04e2], ConversionMethod::Library(&encoding_rs::WINDOWS_1250_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1251("windows-1251", [0x1002_04e3], ConversionMethod::Library(&encoding_rs::WINDOWS_1251_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1252("windows-1252", [0x1002_04e4], ConversionMethod::Library(&encoding_rs::WINDOWS_1252_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1253("windows-1253", [0x1002_04e5], ConversionMethod::Library(&encoding_rs::WINDOWS_1253_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1254("windows-1254", [0x1002_04e6], ConversionMethod::Library(&encoding_rs::WINDOWS_1254_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1255("windows-1255", [0x1002_04e7], ConversionMethod::Library(&encoding_rs::WINDOWS_1255_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1256("windows-1256", [0x1002_04e8], ConversionMethod::Library(&encoding_rs::WINDOWS_1256_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1257("windows-1257", [0x1002_04e9], ConversionMethod::Library(&encoding_rs::WINDOWS_1257_INIT));
    #[cfg(feature = "encoding_rs")]
    Windows1258("windows-1258", [0x1002_04ea], ConversionMethod::Library(&encoding_rs::WINDOWS_1258_INIT));
    #[cfg(feature = "encoding_rs")]
    Ibm866("IBM-866", [0x1002_0362], ConversionMethod::Library(&encoding_rs::IBM866_INIT));
    #[cfg(feature = "encoding_rs")]
    Koi8R("KOI8-R", [0x1002_036e], ConversionMethod::Library(&encoding_rs::KOI8_R_INIT));
    // Numbers of the Japanese vendors' council, the OSF, and JIS.
    #[cfg(feature = "encoding_rs")]
    ShiftJis("Shift_JIS", [0x0502_0002, 0x0500_0011], ConversionMethod::Library(&encoding_rs::SHIFT_JIS_INIT));
    #[cfg(feature = "encoding_rs")]
    EucJp("EUC-JP", [0x0003_0010, 0x0502_0001], ConversionMethod::Library(&encoding_rs::EUC_JP_INIT));
    #[cfg(feature = "encoding_rs")]
    EucKr("EUC-KR", [0x0004_000a], ConversionMethod::Library(&encoding_rs::EUC_KR_INIT));
    // omniORB uses the second number, which is that of a subset.
    #[cfg(feature = "encoding_rs")]
    Gbk("GBK", [0x1002_056a, 0x1002_0567], ConversionMethod::Library(&encoding_rs::GBK_INIT));
    #[cfg(feature = "encoding_rs")]
    Big5("Big5", [0x1002_03b6], ConversionMethod::Library(&encoding_rs::BIG5_INIT));
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

fn patched(patches: &[(u8, char)], octet: u8) -> Option<char> {
    let patch = patches.iter().find(|(at, _)| *at == octet);
    Some(patch.map_or(char::from(octet), |(_, c)| *c))
}

fn of_patched(patches: &[(u8, char)], c: char) -> Option<u8> {
    if let Some((octet, _)) = patches.iter().find(|(_, patch)| *patch == c) {
        return Some(*octet);
    }
    u8::try_from(c).ok().filter(|octet| !patches.iter().any(|(at, _)| at == octet))
}

fn thai(octet: u8) -> Option<char> {
    match octet {
        0xa1..=0xda | 0xdf..=0xfb => char::from_u32(0xe00 + u32::from(octet) - 0xa0),
        0..=0xa0 => Some(char::from(octet)),
        _ => None,
    }
}

fn of_thai(c: char) -> Option<u8> {
    match c {
        '\u{e01}'..='\u{e3a}' | '\u{e3f}'..='\u{e5b}' => u8::try_from(u32::from(c) - 0xe00 + 0xa0).ok(),
        '\0'..='\u{a0}' => u8::try_from(c).ok(),
        _ => None,
    }
}

impl ConvertedSet {
    /// The set in which no text has an encoding.
    pub(super) const NOTHING: Self = Self(Table::Nothing);

    /// Returns the set with that number; `None` if there is none, or if its feature is disabled.
    pub(crate) fn from_id(id: CodeSetId) -> Option<Self> {
        Table::ALL.iter().find(|set| set.row().ids.contains(&id.0)).map(|set| Self(*set))
    }

    /// Returns the number by which it is announced.
    pub(crate) fn id(self) -> CodeSetId {
        CodeSetId(self.0.row().ids.first().copied().unwrap_or_default())
    }

    /// Returns the conversion method.
    pub(super) fn way(self) -> &'static ConversionMethod {
        &self.0.row().way
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        self.0.row().name
    }

    /// Returns whether bytes below 0x80 are ASCII characters, whatever their context.
    pub(crate) fn has_ascii(self) -> bool {
        match *self.way() {
            ConversionMethod::Octets { has_ascii, .. } => has_ascii,
            #[cfg(feature = "encoding_rs")]
            ConversionMethod::Library(_) => true,
            ConversionMethod::Never => false,
        }
    }
}

impl fmt::Debug for ConvertedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ConvertedSet {
    /// Converts bytes, some of which are not characters of the set, with U+FFFD for those.
    #[cold]
    pub(super) fn with_replacement(self, octets: &[u8]) -> String {
        match self.way() {
            ConversionMethod::Octets { decode, .. } => {
                let one = |octet: &u8| decode(*octet).unwrap_or(char::REPLACEMENT_CHARACTER);
                octets.iter().map(one).collect()
            }
            #[cfg(feature = "encoding_rs")]
            ConversionMethod::Library(encoding) => {
                encoding.decode_without_bom_handling(octets).0.into_owned()
            }
            ConversionMethod::Never => String::new(),
        }
    }
}
