//! Escaping of text from peers for output on a terminal or in a log.

use core::fmt::{self, Debug, Display, Formatter, Write};

/// Defines the constructor of [`Printable`] and [`OneLine`] and the methods that limit their length.
macro_rules! limited_text {
    ($what:literal, $text:ty, $max:literal) => {
        #[doc = concat!("The maximum number of bytes of a ", $what, " that are shown by default.")]
        pub const MAX_BYTES: usize = $max;

        #[doc = concat!("Shows at most the first [`MAX_BYTES`](Self::MAX_BYTES) bytes of a ", $what, ".")]
        pub const fn new(text: &'a $text) -> Self {
            Self { text, max_bytes: Self::MAX_BYTES }
        }

        #[doc = concat!("Shows at most the first `max_bytes` bytes of the ", $what, ".")]
        #[must_use]
        pub const fn max_bytes(self, max_bytes: usize) -> Self {
            Self { max_bytes, ..self }
        }

        #[doc = concat!("Shows the whole ", $what, ".")]
        #[must_use]
        pub const fn whole(self) -> Self {
            self.max_bytes(usize::MAX)
        }
    };
}

/// Text from a peer for display, such as a repository id, a host or the text of an exception.
///
/// `Display` writes it on one line and escapes everything that a terminal would interpret or hide:
///
/// * Printable characters are unchanged, including `ü` and `漢`.
/// * Line breaks, carriage returns and tabs become `\n`, `\r` and `\t`.
/// * Other ASCII control characters become escapes like `\x1b`.
/// * Other control, bidirectional and invisible characters become escapes like `\u{202e}`.
/// * A backslash is doubled, so that different texts look different: `\x1b` is one character, `\\x1b` is a
///   backslash and three more.
/// * The rest of a text over [`MAX_BYTES`](Self::MAX_BYTES) is only counted: `… and 199,744 more bytes`.
///
/// `Debug` adds double quotes around the text and escapes a quote inside as `\"`.
///
/// Use [`OneLine`] for text that already contains escapes, such as a formatted `Printable`.
///
/// ```
/// use giop_codec::Printable;
///
/// let host = "\u{1b}[2Jüber\u{202e}\n";
/// assert_eq!(Printable::new(host).to_string(), r"\x1b[2Jüber\u{202e}\n");
/// assert_eq!(Printable::new("1234567890").max_bytes(4).to_string(), "1234… and 6 more bytes");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Printable<'a> {
    text: &'a str,
    max_bytes: usize,
}

impl<'a> Printable<'a> {
    limited_text!("text", str, 256);

    #[cold]
    fn write(&self, f: &mut Formatter<'_>, quoted: bool) -> fmt::Result {
        let mut out =
            Escaper { doubles_backslashes: true, escapes_quotes: quoted, ..Escaper::new(f, self.max_bytes) };
        out.write_str(self.text)?;
        if quoted {
            out.out.write_char('"')?;
        }
        out.finish()
    }
}

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl Debug for Printable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.write(f, true)
    }
}

/// A message that may contain text from peers, for display on one line.
///
/// `Display` escapes what [`Printable`] escapes, except backslashes, and may therefore be applied more than
/// once. Programs apply it to every message that they write to a terminal or log. Of a message longer than
/// [`MAX_BYTES`](Self::MAX_BYTES), the first bytes are shown and the rest is counted.
///
/// ```
/// use giop_codec::{OneLine, Printable};
///
/// let message = format!("no such host: {}", Printable::new("\u{7}"));
/// assert_eq!(OneLine::new(&message).to_string(), r"no such host: \x07");
/// assert_eq!(OneLine::new("two\nlines").to_string(), r"two\nlines");
/// ```
#[derive(Clone, Copy)]
pub struct OneLine<'a, T: ?Sized = str> {
    text: &'a T,
    max_bytes: usize,
}

impl<'a, T: Display + ?Sized> OneLine<'a, T> {
    limited_text!("message", T, 4096);
}

impl<T: Display + ?Sized> Display for OneLine<'_, T> {
    #[cold]
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Escaper::new(f, self.max_bytes);
        write!(out, "{}", self.text)?;
        out.finish()
    }
}

impl<T: Display + ?Sized> Debug for OneLine<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// A writer that escapes text up to a limit and counts the bytes beyond it.
struct Escaper<'a, 'f> {
    out: &'a mut Formatter<'f>,
    doubles_backslashes: bool,
    escapes_quotes: bool,
    is_at_start: bool,
    bytes_left: usize,
    hidden_bytes: usize,
}

impl<'a, 'f> Escaper<'a, 'f> {
    fn new(out: &'a mut Formatter<'f>, bytes_left: usize) -> Self {
        let (doubles_backslashes, escapes_quotes, is_at_start) = (false, false, true);
        Self { out, doubles_backslashes, escapes_quotes, is_at_start, bytes_left, hidden_bytes: 0 }
    }

    fn finish(self) -> fmt::Result {
        let plural = match self.hidden_bytes {
            0 => return Ok(()),
            1 => "",
            _ => "s",
        };
        write!(self.out, "… and {} more byte{plural}", grouped(self.hidden_bytes))
    }

    fn escape(&mut self, c: char) -> fmt::Result {
        match c {
            '\n' => self.out.write_str("\\n"),
            '\r' => self.out.write_str("\\r"),
            '\t' => self.out.write_str("\\t"),
            '\\' | '"' => write!(self.out, "\\{c}"),
            c if c.is_ascii() => write!(self.out, "\\x{:02x}", u32::from(c)),
            c => write!(self.out, "\\u{{{:x}}}", u32::from(c)),
        }
    }

    fn is_written_unchanged(&self, c: char) -> bool {
        match c {
            '\\' => !self.doubles_backslashes,
            '"' => !self.escapes_quotes,
            // At the start, a combining character would combine with the program's own text before it.
            c if self.is_at_start && !c.is_ascii() => is_printable(c) && c.escape_debug().len() == 1,
            c => is_printable(c),
        }
    }
}

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let Some(left) = self.bytes_left.checked_sub(c.len_utf8()) else {
                (self.bytes_left, self.hidden_bytes) = (0, self.hidden_bytes.saturating_add(rest.len()));
                return Ok(());
            };
            self.bytes_left = left;
            if self.is_written_unchanged(c) {
                self.out.write_char(c)?
            } else {
                self.escape(c)?
            }
            self.is_at_start = false;
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Returns whether a character is visible (alone, or as an accent on the character before it) or a space.
/// [`Printable`] leaves these characters unchanged, except backslashes and accents at the start.
pub fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{9f}' => false,
        c if INVISIBLE.iter().any(|range| range.contains(&c)) => false,
        c => {
            // The standard library's `{:?}` must leave the character unchanged inside a text. It escapes
            // format characters, separators, private use and unassigned characters.
            let mut text = [b'a'; 5];
            let len = text.get_mut(1..).map_or(0, |rest| c.encode_utf8(rest).len());
            let text = text.get(..=len).and_then(|text| core::str::from_utf8(text).ok());
            text.is_some_and(|text| text.escape_debug().count() == 2)
        }
    }
}

/// Characters without a glyph that `{:?}` leaves unchanged: fillers, joiners and variation selectors.
const INVISIBLE: &[core::ops::RangeInclusive<char>] = &[
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0100}'..='\u{e01ef}',
];

/// Formats a number with a comma between thousands: `199,744`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_terminal_interprets_or_hides_is_escaped() {
        let hostile = "\u{1b}]0;t\u{7}\u{1b}[2J\r\n\t\0\u{7f}\u{85}\u{9b}2J\u{a0}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{202e}\u{2028}\
                       \u{2066}\u{2069}\u{feff}\u{fe0f}\u{3164}\u{e0041}\u{e000}";
        let shown = Printable::new(hostile).to_string();
        assert_eq!(
            shown,
            r"\x1b]0;t\x07\x1b[2J\r\n\t\x00\x7f\u{85}\u{9b}2J\u{a0}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{202e}\u{2028}\u{2066}\u{2069}\u{feff}\u{fe0f}\u{3164}\u{e0041}\u{e000}"
        );
        assert_eq!(OneLine::new(hostile).to_string(), shown);
        assert_eq!(OneLine::new(&shown).to_string(), shown, "escaping again changes nothing");
    }

    #[test]
    fn letters_of_all_languages_stay() {
        let text = "über, naïve, Ελληνικά, русский, 漢字, عربى, e\u{301}, 🦀 'a' \"b\"";
        assert_eq!(Printable::new(text).to_string(), text);
        assert_eq!(
            Printable::new("\u{301}x").to_string(),
            r"\u{301}x",
            "it would combine with the text before it"
        );
    }

    #[test]
    fn different_texts_look_different() {
        assert_eq!(Printable::new("\\x1b").to_string(), r"\\x1b");
        assert_eq!(Printable::new("\u{1b}").to_string(), r"\x1b");
        assert_eq!(format!("{:?}", Printable::new("a\"\\\n")), r#""a\"\\\n""#);
        assert_eq!(OneLine::new(r"a\/b").to_string(), r"a\/b", "names have their own backslashes");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_the_rest_is_counted() {
        let long = "a".repeat(200_000);
        assert_eq!(Printable::new(&long).to_string(), format!("{}… and 199,744 more bytes", &long[..256]));
        assert_eq!(Printable::new("aüb").max_bytes(2).to_string(), "a… and 3 more bytes");
        assert_eq!(Printable::new("ab").max_bytes(1).to_string(), "a… and 1 more byte");
        assert_eq!(Printable::new("ab").max_bytes(2).to_string(), "ab");
        assert_eq!(format!("{:?}", Printable::new("ab").max_bytes(1)), "\"a\"… and 1 more byte");
        assert_eq!(Printable::new(&long).whole().to_string(), long);
        let parts = format_args!("{}{}", "ü", "b").to_string();
        assert_eq!(
            OneLine::new(&format_args!("{}{}", parts, 12345)).max_bytes(1).to_string(),
            "… and 8 more bytes"
        );
        assert_eq!(OneLine::new(&long).to_string().len(), 4096 + "… and 195,904 more bytes".len());
    }

    #[test]
    fn no_character_is_both_printable_and_a_control_or_format_character() {
        let bidi = [
            '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
            '\u{2069}',
        ];
        for c in ('\0'..=char::MAX).filter(|c| c.is_control()).chain(bidi) {
            assert!(!is_printable(c), "{c:?}");
        }
    }
}
