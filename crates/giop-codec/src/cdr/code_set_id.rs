//! [`CodeSetId`]: the numbers of code sets.

use core::fmt;

/// The number of a code set in the OSF code set registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeSetId(pub u32);

impl CodeSetId {
    /// No code set: offered by a server without wide text, and announced by a client that sends no wide text.
    pub const NONE: Self = Self(0);
    /// ISO 8859-1, Latin alphabet No. 1.
    pub const ISO_8859_1: Self = Self(0x0001_0001);
    /// ISO 8859-15: ISO 8859-1 with the euro.
    pub const ISO_8859_15: Self = Self(0x0001_000f);
    /// ISO 646 IRV: ASCII.
    pub const ISO_646: Self = Self(0x0001_0020);
    /// UCS-2 at implementation level 1 of ISO 10646, which excludes combining characters.
    pub const UCS_2: Self = Self(0x0001_0100);
    /// UCS-4 at implementation level 1 of ISO 10646, which excludes combining characters.
    pub const UCS_4: Self = Self(0x0001_0104);
    /// UCS-4 at implementation level 3 of ISO 10646, with all characters. omniORB uses only this level.
    pub const UCS_4_LEVEL_3: Self = Self(0x0001_0106);
    /// UTF-16.
    pub const UTF_16: Self = Self(0x0001_0109);
    /// UTF-8.
    pub const UTF_8: Self = Self(0x0501_0001);
    /// IBM-037, EBCDIC with the characters of ISO 8859-1.
    pub const IBM_037: Self = Self(0x1002_0025);
    /// IBM-500, EBCDIC with the characters of ISO 8859-1.
    pub const IBM_500: Self = Self(0x1002_01f4);
    /// IBM-1047, EBCDIC with the characters of ISO 8859-1, used by z/OS UNIX.
    pub const IBM_1047: Self = Self(0x1002_0417);
    /// Shift_JIS, Japanese.
    pub const SHIFT_JIS: Self = Self(0x0502_0002);
    /// EUC-JP, Japanese.
    pub const EUC_JP: Self = Self(0x0003_0010);
    /// EUC-KR, Korean.
    pub const EUC_KR: Self = Self(0x0004_000a);

    /// Returns the name of the code set, or `None` if it is not known here. This build may be unable to
    /// convert text in a set that has a name.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "none",
            0x0001_0001 => "ISO 8859-1",
            0x0001_0002 => "ISO 8859-2",
            0x0001_0003 => "ISO 8859-3",
            0x0001_0004 => "ISO 8859-4",
            0x0001_0005 => "ISO 8859-5",
            0x0001_0006 => "ISO 8859-6",
            0x0001_0007 => "ISO 8859-7",
            0x0001_0008 => "ISO 8859-8",
            0x0001_0009 => "ISO 8859-9",
            0x0001_000a => "ISO 8859-10",
            0x0001_000b => "ISO 8859-11",
            0x0001_000d => "ISO 8859-13",
            0x0001_000e => "ISO 8859-14",
            0x0001_000f => "ISO 8859-15",
            0x0001_0010 => "ISO 8859-16",
            0x0001_0020 => "ISO 646",
            0x0001_0100..=0x0001_0102 => "UCS-2",
            0x0001_0104..=0x0001_0106 => "UCS-4",
            0x0001_0109 => "UTF-16",
            0x0003_0010 | 0x0502_0001 => "EUC-JP",
            0x0004_000a => "EUC-KR",
            0x0500_0011 | 0x0502_0002 => "Shift_JIS",
            0x0501_0001 => "UTF-8",
            0x1002_0025 => "IBM-037",
            // omniORB uses the second number.
            0x1002_01f4 | 0x1002_01f8 => "IBM-500",
            0x1002_0362 => "IBM-866",
            0x1002_036e => "KOI8-R",
            0x1002_03b6 => "Big5",
            0x1002_0417 => "IBM-1047",
            0x1002_04e2 => "windows-1250",
            0x1002_04e3 => "windows-1251",
            0x1002_04e4 => "windows-1252",
            0x1002_04e5 => "windows-1253",
            0x1002_04e6 => "windows-1254",
            0x1002_04e7 => "windows-1255",
            0x1002_04e8 => "windows-1256",
            0x1002_04e9 => "windows-1257",
            0x1002_04ea => "windows-1258",
            0x1002_0567 | 0x1002_056a => "GBK",
            _ => return None,
        })
    }

    /// Returns whether all characters of the set are known to be in Unicode. If client and server have no set
    /// in common, text in such a set can be sent as UTF-8 or UTF-16.
    pub(crate) const fn is_within_unicode(self) -> bool {
        self.0 != 0 && self.name().is_some()
    }
}

impl fmt::Display for CodeSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}
