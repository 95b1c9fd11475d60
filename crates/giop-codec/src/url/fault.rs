//! Errors with a position and a kind for grammars of `nom`.

use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult, Offset, Parser};

/// The result of a rule of a grammar: the rest of the input and the value.
pub(super) type ParseResult<'a, T, K> = IResult<&'a str, T, Fault<'a, K>>;

/// The input at the position of an error, and the kind of the error.
///
/// Without them a rule does not match, and the next alternative is tried. With them the text is invalid.
pub(super) struct Fault<'a, K>(Option<(&'a str, K)>);

impl<'a, K> ParseError<&'a str> for Fault<'a, K> {
    fn from_error_kind(_: &'a str, _: ErrorKind) -> Self {
        Self(None)
    }

    fn append(_: &'a str, _: ErrorKind, other: Self) -> Self {
        other
    }
}

/// Creates the error of an invalid text.
#[cold]
pub(super) fn fault<K>(at: &str, kind: K) -> Err<Fault<'_, K>> {
    Err::Failure(Fault(Some((at, kind))))
}

/// Makes the text invalid if the rule does not match: the error is at the beginning of the rule.
pub(super) fn expect<'a, T, K>(
    mut rule: impl Parser<&'a str, Output = T, Error = Fault<'a, K>>,
    kind: impl Fn(&str) -> K,
) -> impl FnMut(&'a str) -> ParseResult<'a, T, K> {
    move |input| match rule.parse(input) {
        Err(Err::Error(_)) => Err(fault(input, kind(input))),
        result => result,
    }
}

/// Applies a rule like [`expect`] to `input`, a part of `text`. An error has the number of its character in
/// `text`, starting at 1.
pub(super) fn apply<'a, T, K>(
    text: &str,
    input: &'a str,
    mut rule: impl Parser<&'a str, Output = T, Error = Fault<'a, K>>,
    kind: impl Fn(&str) -> K,
) -> Result<T, (usize, K)> {
    let (at, kind) = match rule.parse(input) {
        Ok((_, value)) => return Ok(value),
        Err(Err::Failure(Fault(Some(fault)))) => fault,
        Err(_) => (input, kind(input)),
    };
    let offset = text.offset(at);
    Err((text.char_indices().take_while(|(before, _)| *before < offset).count() + 1, kind))
}
