//! The echo operations: the result and `c` are `a`; `b` is returned transformed.

use zorb::Context;
use zorb::prelude::*;

use super::extras::interop as extras;
use super::servant::PeerServer;
use super::transform::Transform;
use super::types::interop::names::Words;
use super::types::interop::*;

/// The result of an echo.
pub type Echo<T> = Result<(T, T, T), SystemException>;

fn echo<T: Clone + Transform>(a: T, mut b: T) -> Echo<T> {
    b.transform();
    Ok((a.clone(), b, a))
}

/// `by_value! { op: T }`: `a` and `b` are of the same type.
macro_rules! by_value {
    ($($op:ident: $t:ty),* $(,)?) => {
        $(async fn $op(&self, a: $t, b: $t) -> Echo<$t> {
            echo(a, b)
        })*
    };
}

/// `by_reference! { op: Borrowed => T }`: `a` is borrowed, of the borrowed form of `b`'s type.
macro_rules! by_reference {
    ($($op:ident: $borrowed:ty => $t:ty),* $(,)?) => {
        $(async fn $op(&self, a: &$borrowed, b: $t) -> Echo<$t> {
            echo(a.to_owned().into(), b)
        })*
    };
}

/// Like `by_reference!` for bounded types, with `a` in the unbounded form.
macro_rules! bounded {
    ($($op:ident: $unbounded:ty => $t:ty),* $(,)?) => {
        $(async fn $op(&self, a: $unbounded, b: $t) -> Echo<$t> {
            let a = a.try_into().or_system_exception(SystemExceptionKind::Internal)?;
            echo(a, b)
        })*
    };
}

/// Operations that return their argument plus one.
macro_rules! plus_one {
    ($($op:ident)*) => {
        $(async fn $op(&self, a: i32) -> Result<i32, SystemException> {
            Ok(a + 1)
        })*
    };
}

impl ScalarsServant for PeerServer {
    by_value! {
        echo_short: i16,
        echo_ushort: u16,
        echo_long: i32,
        echo_ulong: u32,
        echo_longlong: i64,
        echo_ulonglong: u64,
        echo_octet: u8,
        echo_boolean: bool,
        echo_char: Char,
        echo_float: f32,
        echo_double: f64,
        echo_color: Color,
        echo_tiny: Tiny,
        echo_stamp: Stamp,
        echo_paint: Paint,
    }

    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn plus_one(&self, a: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(1))
    }

    async fn set_out(&self) -> Result<i32, SystemException> {
        Ok(4711)
    }

    async fn negate(&self, b: i32) -> Result<i32, SystemException> {
        Ok(b.wrapping_neg())
    }

    async fn divide(&self, a: i32, b: i32) -> Result<(i32, i32), SystemException> {
        if b == 0 {
            return Err(SystemException::bad_param());
        }
        Ok((a.wrapping_div(b), a.wrapping_rem(b)))
    }

    async fn many(
        &self,
        number: i32,
        word: &str,
        mut scale: f64,
        mut words: StringSeq,
    ) -> Result<scalars::ManyReply, SystemException> {
        scale.transform();
        words.transform();
        let shade = match number % 3 {
            0 => Color::Red,
            1 => Color::Green,
            _ => Color::Blue,
        };
        let result = number + word.len() as i32;
        let spot = Point { x: number, y: -number };
        Ok(scalars::ManyReply { result, scale, words, even: number % 2 == 0, shade, spot })
    }

    async fn constants(&self) -> Result<scalars::ConstantsReply, SystemException> {
        Ok(scalars::ConstantsReply {
            result: ANSWER,
            max_code_value: MAX_CODE,
            lowest_value: LOWEST,
            highest_value: HIGHEST,
            mask_value: MASK,
            far_away_value: FAR_AWAY,
            biggest_value: BIGGEST,
            lucky_value: LUCKY,
            enabled_value: ENABLED,
            letter_value: LETTER,
            greeting_value: GREETING.to_owned(),
            half_value: HALF,
            ratio_value: RATIO,
            favourite_value: FAVOURITE,
        })
    }
}

impl TextsServant for PeerServer {
    by_reference! { echo_string: str => String, echo_text: str => Text }
    bounded! { echo_code: &str => Code }

    async fn join(&self, parts: &[String], glue: &str) -> Result<String, SystemException> {
        Ok(parts.join(glue))
    }

    async fn repeat(&self, piece: &str, times: u32) -> Result<String, SystemException> {
        Ok(piece.repeat(times as usize))
    }
}

impl WideTextsServant for PeerServer {
    by_value! { echo_wchar: WChar }
    bounded! { echo_wstring: WStr<'_> => WString }
    by_reference! {
        echo_wchar_seq: [WChar] => WCharSeq,
        echo_wstring_seq: [WString] => WStringSeq,
        echo_caption: Caption => Caption,
        echo_wide_choice: WideChoice => WideChoice,
    }

    async fn wide_greeting(&self) -> Result<(WString, WChar), SystemException> {
        Ok((WIDE_GREETING.into(), EURO))
    }
}

impl StructsServant for PeerServer {
    by_reference! {
        echo_point: Point => Point,
        echo_mixed: Mixed => Mixed,
        echo_person: Person => Person,
        echo_team: Team => Team,
        echo_tree: Tree => Tree,
        echo_place: Place => Place,
        echo_squad: Squad => Squad,
    }
}

impl UnionsServant for PeerServer {
    by_reference! {
        echo_by_long: ByLong => ByLong,
        echo_by_color: ByColor => ByColor,
        echo_all_colors: AllColors => AllColors,
        echo_by_boolean: ByBoolean => ByBoolean,
        echo_maybe: Maybe => Maybe,
        echo_by_char: ByChar => ByChar,
        echo_by_short: ByShort => ByShort,
        echo_by_ushort: ByUShort => ByUShort,
        echo_by_ulong: ByULong => ByULong,
        echo_by_longlong: ByLongLong => ByLongLong,
        echo_by_ulonglong: ByULongLong => ByULongLong,
        echo_by_long_seq: [ByLong] => ByLongSeq,
        echo_variant: Variant => Variant,
        echo_wrapped: Wrapped => Wrapped,
    }
}

impl ArraysServant for PeerServer {
    by_reference! {
        echo_long_array: LongArray => LongArray,
        echo_octet_array: OctetArray => OctetArray,
        echo_matrix: Matrix => Matrix,
        echo_point_array: PointArray => PointArray,
        echo_string_array: StringArray => StringArray,
        echo_person_grid: PersonGrid => PersonGrid,
        echo_seq_array: SeqArray => SeqArray,
        echo_matrix_seq: [Matrix] => MatrixSeq,
        echo_big_array: BigArray => BigArray,
        echo_triple: Triple => Triple,
    }
}

impl DecimalsServant for PeerServer {
    by_value! { echo_money: Money, echo_part: Part, echo_huge: Huge }
    by_reference! { echo_bill: Bill => Bill, echo_money_seq: [Money] => MoneySeq, echo_part_array: PartArray => PartArray }
}

impl SequencesServant for PeerServer {
    by_value! {
        echo_short_seq: ShortSeq,
        echo_ushort_seq: UShortSeq,
        echo_long_seq: LongSeq,
        echo_ulong_seq: ULongSeq,
        echo_longlong_seq: LongLongSeq,
        echo_ulonglong_seq: ULongLongSeq,
        echo_octet_seq: OctetSeq,
        echo_char_seq: CharSeq,
        echo_float_seq: FloatSeq,
        echo_double_seq: DoubleSeq,
    }
    by_reference! {
        echo_boolean_seq: [bool] => BooleanSeq,
        echo_string_seq: [String] => StringSeq,
        echo_color_seq: [Color] => ColorSeq,
        echo_point_seq: [Point] => PointSeq,
        echo_mixed_seq: [Mixed] => MixedSeq,
        echo_person_seq: [Person] => PersonSeq,
        echo_long_seq_seq: [LongSeq] => LongSeqSeq,
    }
    bounded! {
        echo_few_longs: LongSeq => FewLongs,
        echo_few_octets: OctetSeq => FewOctets,
    }

    async fn echo_few_codes(&self, a: &[Code], b: FewCodes) -> Echo<FewCodes> {
        echo(FewCodes::new(a.to_vec()).or_system_exception(SystemExceptionKind::Internal)?, b)
    }
}

impl super::types::interop::names::KeywordsServant for PeerServer {
    by_reference! { echo_words: Words => Words }

    async fn r#impl(&self) -> Result<i32, SystemException> {
        Ok(self.state().word)
    }

    async fn set_impl(&self, value: i32) -> Result<(), SystemException> {
        self.state().word = value;
        Ok(())
    }

    plus_one! {
        r#type r#match r#loop r#fn self_ crate_ super_ r#move r#async r#await new delete class template namespace
        r#final synchronized package narrow drop with_timeout default interface
    }
}

/// The servant of `extras.idl`.
pub struct ExtrasServer;

impl extras::ExtrasServant for ExtrasServer {
    bounded! { echo_wide_code: WStr<'_> => extras::WideCode }
    by_reference! {
        echo_far_ushort: extras::FarUShort => extras::FarUShort,
        echo_far_ulong: extras::FarULong => extras::FarULong,
        echo_far_longlong: extras::FarLongLong => extras::FarLongLong,
        echo_far_ulonglong: extras::FarULongLong => extras::FarULongLong,
    }

    async fn properties(&self, before: &str, context: &Context) -> Result<(String, i32), SystemException> {
        let text: String = context.iter().map(|(name, value)| format!("{name}={value};")).collect();
        Ok((format!("{before}{text}"), context.len() as i32))
    }
}
