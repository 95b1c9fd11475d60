//! [`WString`] and [`WStr`]: wide text that preserves every UTF-16 unit.

use core::cmp::Ordering;
use core::fmt::{self, Write as _};
use std::borrow::Cow;

/// An IDL `wstring`: UTF-16 text that may contain lone halves of surrogate pairs. Such halves result when
/// Java, C++ or Windows programs split text between the two units of a character.
///
/// Every unit is preserved. Text without lone halves is stored as a `String`, so that
/// [`as_str`](WString::as_str) needs no conversion. Values are ordered by characters, not by units.
///
/// ```
/// use giop_codec::cdr::WString;
/// let text = WString::from("café");
/// assert_eq!(text.as_str(), Ok("café"));
///
/// let cut = WString::from_units([0x41, 0xD83D]); // the first half of an emoji
/// assert!(cut.as_str().is_err());
/// assert_eq!(cut.to_string_lossy(), "A\u{fffd}");
/// assert_eq!(cut.units().collect::<Vec<_>>(), [0x41, 0xD83D]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WString(Owned);

/// The content of a [`WString`]. `Units` contains a lone half, so that each text has one representation.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Owned {
    Text(String),
    Units(Box<[u16]>),
}

/// A borrowed [`WString`], or borrowed text that is sent as an IDL `wstring`.
///
/// A stub that takes `impl Into<WStr>` accepts `&str`, `&String` and `&WString`. Servants get a `WStr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WStr<'a>(Borrowed<'a>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Borrowed<'a> {
    Text(&'a str),
    Units(&'a [u16]),
}

/// The error of wide text that is not a `str`, because it contains a lone half of a surrogate pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "wide text has half of a surrogate pair ({unit:#06x}) at unit {at}: `to_string_lossy` replaces it, `units` returns all units"
)]
pub struct LoneSurrogate {
    /// Index of the first lone half, in UTF-16 units.
    pub at: usize,
    /// The lone half, from 0xD800 to 0xDFFF.
    pub unit: u16,
}

impl WString {
    /// Creates a wide string from text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Owned::Text(text.into()))
    }

    /// Creates a wide string from UTF-16 units, which may include lone halves of surrogate pairs.
    pub fn from_units(units: impl IntoIterator<Item = u16>) -> Self {
        let units: Vec<u16> = units.into_iter().collect();
        match String::from_utf16(&units) {
            Ok(text) => Self(Owned::Text(text)),
            Err(_) => Self(Owned::Units(units.into())),
        }
    }

    /// Borrows the text.
    #[inline]
    pub fn as_wstr(&self) -> WStr<'_> {
        match &self.0 {
            Owned::Text(text) => WStr(Borrowed::Text(text)),
            Owned::Units(units) => WStr(Borrowed::Units(units)),
        }
    }

    /// Returns the text as `str` without copying it.
    ///
    /// # Errors
    /// The text contains a lone half of a surrogate pair.
    #[inline]
    pub fn as_str(&self) -> Result<&str, LoneSurrogate> {
        self.as_wstr().as_str()
    }

    /// Returns the text with U+FFFD for each lone half of a surrogate pair. Borrows it if there is none.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        self.as_wstr().to_string_lossy()
    }

    /// Converts the text to a `String` without copying it.
    ///
    /// # Errors
    /// Returns the text unchanged if it contains a lone half of a surrogate pair.
    pub fn into_string(self) -> Result<String, Self> {
        match self.0 {
            Owned::Text(text) => Ok(text),
            Owned::Units(_) => Err(self),
        }
    }

    /// Returns the UTF-16 units.
    pub fn units(&self) -> impl Iterator<Item = u16> + Clone + '_ {
        self.as_wstr().units()
    }

    /// Returns whether there are no characters.
    pub fn is_empty(&self) -> bool {
        self.as_wstr().is_empty()
    }
}

impl<'a> WStr<'a> {
    /// Creates a wide string from borrowed text.
    pub const fn new(text: &'a str) -> Self {
        Self(Borrowed::Text(text))
    }

    /// Returns the text as `str`.
    ///
    /// # Errors
    /// The text contains a lone half of a surrogate pair.
    #[inline]
    pub fn as_str(self) -> Result<&'a str, LoneSurrogate> {
        match self.0 {
            Borrowed::Text(text) => Ok(text),
            Borrowed::Units(units) => Err(first_lone_surrogate(units)),
        }
    }

    /// Returns the text with U+FFFD for each lone half of a surrogate pair. Borrows it if there is none.
    pub fn to_string_lossy(self) -> Cow<'a, str> {
        match self.0 {
            Borrowed::Text(text) => Cow::Borrowed(text),
            Borrowed::Units(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }

    /// Copies the text.
    pub fn to_wstring(self) -> WString {
        WString(match self.0 {
            Borrowed::Text(text) => Owned::Text(text.to_owned()),
            Borrowed::Units(units) => Owned::Units(units.into()),
        })
    }

    /// Returns the text and the units, of which one is empty, so that iterators over both have one type.
    fn parts(self) -> (&'a str, &'a [u16]) {
        match self.0 {
            Borrowed::Text(text) => (text, &[]),
            Borrowed::Units(units) => ("", units),
        }
    }

    /// Returns the UTF-16 units.
    pub fn units(self) -> impl Iterator<Item = u16> + Clone + 'a {
        let (text, units) = self.parts();
        text.encode_utf16().chain(units.iter().copied())
    }

    pub(crate) fn has_nul(self) -> bool {
        match self.0 {
            Borrowed::Text(text) => text.as_bytes().contains(&0),
            Borrowed::Units(units) => units.contains(&0),
        }
    }

    /// Returns the code points of the text. A lone half of a surrogate pair counts as a code point.
    pub(super) fn code_points(self) -> impl Iterator<Item = u32> + Clone + 'a {
        let (text, units) = self.parts();
        let decoded_units = char::decode_utf16(units.iter().copied())
            .map(|c| c.map_or_else(|half| half.unpaired_surrogate().into(), u32::from));
        text.chars().map(u32::from).chain(decoded_units)
    }

    /// Returns whether there are no characters.
    pub fn is_empty(self) -> bool {
        matches!(self.0, Borrowed::Text(""))
    }
}

#[cold]
fn first_lone_surrogate(units: &[u16]) -> LoneSurrogate {
    let mut at = 0;
    for c in char::decode_utf16(units.iter().copied()) {
        match c {
            Ok(c) => at += c.len_utf16(),
            Err(half) => return LoneSurrogate { at, unit: half.unpaired_surrogate() },
        }
    }
    LoneSurrogate { at, unit: 0 }
}

impl Default for WString {
    fn default() -> Self {
        Self::new("")
    }
}

impl Default for WStr<'_> {
    fn default() -> Self {
        Self::new("")
    }
}

macro_rules! conversions {
    ($($source:ty => $target:ty, |$text:ident| $result:expr;)*) => {$(
        impl<'a> From<$source> for $target {
            #[inline]
            fn from($text: $source) -> Self {
                $result
            }
        }
    )*};
}

conversions! {
    &'a str => WStr<'a>, |text| WStr::new(text);
    &'a String => WStr<'a>, |text| WStr::new(text);
    &'a WString => WStr<'a>, |text| text.as_wstr();
    &'a str => WString, |text| WString::new(text);
    WStr<'a> => WString, |text| text.to_wstring();
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl FromIterator<u16> for WString {
    fn from_iter<I: IntoIterator<Item = u16>>(units: I) -> Self {
        Self::from_units(units)
    }
}

impl FromIterator<char> for WString {
    fn from_iter<I: IntoIterator<Item = char>>(chars: I) -> Self {
        Self::new(chars.into_iter().collect::<String>())
    }
}

impl TryFrom<WString> for String {
    type Error = LoneSurrogate;

    fn try_from(text: WString) -> Result<Self, LoneSurrogate> {
        match text.0 {
            Owned::Text(text) => Ok(text),
            Owned::Units(units) => Err(first_lone_surrogate(&units)),
        }
    }
}

impl PartialOrd for WStr<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WStr<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Borrowed::Text(a), Borrowed::Text(b)) => a.cmp(b),
            _ => self.code_points().cmp(other.code_points()),
        }
    }
}

impl PartialOrd for WString {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WString {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_wstr().cmp(&other.as_wstr())
    }
}

macro_rules! comparisons {
    ($($a:ty, $b:ty, |$x:ident, $y:ident| $equal:expr;)*) => {$(
        impl PartialEq<$b> for $a {
            fn eq(&self, other: &$b) -> bool {
                let ($x, $y) = (self, other);
                $equal
            }
        }

        impl PartialEq<$a> for $b {
            fn eq(&self, other: &$a) -> bool {
                let ($x, $y) = (other, self);
                $equal
            }
        }
    )*};
}

comparisons! {
    WString, str, |a, b| a.as_wstr() == WStr::new(b);
    WString, &str, |a, b| a.as_wstr() == WStr::new(b);
    WString, String, |a, b| a.as_wstr() == WStr::new(b);
    WString, WStr<'_>, |a, b| a.as_wstr() == *b;
    WStr<'_>, str, |a, b| *a == WStr::new(b);
    WStr<'_>, &str, |a, b| *a == WStr::new(b);
    WStr<'_>, String, |a, b| *a == WStr::new(b);
}

impl fmt::Display for WStr<'_> {
    /// Writes the text with U+FFFD for each lone half of a surrogate pair.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_string_lossy())
    }
}

impl fmt::Debug for WStr<'_> {
    /// Writes the text like `str`; a lone half of a surrogate pair is written as `\u{d83d}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = match self.0 {
            Borrowed::Text(text) => return text.fmt(f),
            Borrowed::Units(units) => units,
        };
        f.write_char('"')?;
        for c in char::decode_utf16(units.iter().copied()) {
            match c {
                Ok('\'') => f.write_char('\'')?,
                Ok(c) => write!(f, "{}", c.escape_debug())?,
                Err(half) => write!(f, "\\u{{{:x}}}", half.unpaired_surrogate())?,
            }
        }
        f.write_char('"')
    }
}

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_wstr().fmt(f)
    }
}

impl fmt::Debug for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_wstr(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::{LoneSurrogate, WStr, WString};

    #[test]
    fn one_text_has_one_form() {
        let pair = [0xD83D, 0xDE00];
        assert_eq!(WString::from_units(pair), "\u{1F600}");
        assert_eq!(WString::from_units(pair), WString::from("\u{1F600}"));
        assert_ne!(WString::from_units([0xD83D]), "\u{fffd}");
        assert_eq!(WString::from_units([]), WString::default());
    }

    #[test]
    fn halves_are_kept_and_found() {
        for (units, at, lossy) in [
            (&[0xD83D][..], 0, "\u{fffd}"),
            (&[0xDE00, 0xD83D], 0, "\u{fffd}\u{fffd}"),
            (&[0x41, 0xD83D, 0xDE00, 0xDC00, 0x42], 3, "A\u{1F600}\u{fffd}B"),
        ] {
            let text = WString::from_units(units.iter().copied());
            assert_eq!(text.as_str(), Err(LoneSurrogate { at, unit: units[at] }));
            assert_eq!(text.to_string_lossy(), lossy);
            assert_eq!(text.to_string(), lossy);
            assert!(text.units().eq(units.iter().copied()));
            assert!(!text.is_empty());
            assert_eq!(text.as_wstr().to_wstring(), text);
            assert_eq!(text.clone().into_string(), Err(text));
        }
    }

    #[test]
    fn the_order_is_that_of_the_characters() {
        let text = |units: &[u16]| WString::from_units(units.iter().copied());
        // U+FFFD is above every half. U+10000 is above both, although its UTF-16 units are not.
        let all = [
            text(&[]),
            text(&[0x41]),
            text(&[0x41, 0xD800]),
            text(&[0x41, 0xDFFF]),
            text(&[0x41, 0xFFFD]),
            text(&[0x41, 0xD800, 0xDC00]),
        ];
        assert!(all.is_sorted());
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn debug_shows_every_unit() {
        assert_eq!(format!("{:?}", WStr::new("a\"\n'")), r#""a\"\n'""#);
        assert_eq!(format!("{:?}", WString::from_units([0x61, 0x22, 0xDC01, 0x27])), r#""a\"\u{dc01}'""#);
        assert_eq!(format!("[{:>3}]", WString::from("a")), "[  a]");
    }
}
