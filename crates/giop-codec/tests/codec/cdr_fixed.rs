//! `Fixed`: its encoding, its arithmetic compared with digits computed by hand, its conversions.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::cdr_types::ORDERS;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Fixed, FixedError, Rounding};
use giop_codec::exception::{CompletionStatus, SystemExceptionKind};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use proptest::prelude::*;

const ROUNDINGS: [Rounding; 5] =
    [Rounding::Truncate, Rounding::HalfAwayFromZero, Rounding::HalfEven, Rounding::Floor, Rounding::Ceiling];

fn fixed<const D: u32, const S: u32>(text: &str) -> Fixed<D, S> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn octets<T: CdrEncode>(value: &T) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    value.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

fn decoded<const D: u32, const S: u32>(octets: &[u8]) -> Result<Fixed<D, S>, DecodeErrorKind> {
    Fixed::decode(&mut Decoder::new(octets, ByteOrder::Big, Version::V1_2)).map_err(|error| error.kind)
}

#[test]
fn octets_are_those_of_omniorb() {
    assert_eq!(octets(&fixed::<5, 2>("123.45")), [0x12, 0x34, 0x5c]);
    assert_eq!(octets(&fixed::<5, 2>("-1.5")), [0x00, 0x15, 0x0d]);
    assert_eq!(octets(&fixed::<4, 2>("12.34")), [0x01, 0x23, 0x4c]);
    assert_eq!(octets(&fixed::<6, 0>("-123")), [0x00, 0x00, 0x12, 0x3d]);
    assert_eq!(octets(&Fixed::<1, 0>::ZERO), [0x0c]);
    assert_eq!(octets(&Fixed::<31, 31>::MAX), [[0x99; 15].as_slice(), &[0x9c]].concat());
    assert_eq!(octets(&Fixed::<30, 0>::MIN), [&[0x09], [0x99; 14].as_slice(), &[0x9d]].concat());
}

#[test]
fn what_jacorb_leaves_out_is_zero() {
    assert_eq!(decoded::<5, 2>(&[0x5c]), Ok(fixed("0.05")));
    assert_eq!(decoded::<5, 2>(&[0x12, 0x3d]), Ok(fixed("-1.23")));
    assert_eq!(decoded::<5, 2>(&[0x0c]), Ok(Fixed::ZERO));
    // Bytes after the sign are not consumed.
    let mut d = Decoder::new(&[0x5c, 0x77], ByteOrder::Big, Version::V1_2);
    assert_eq!(Fixed::<5, 2>::decode(&mut d).unwrap().unscaled(), 5);
    assert_eq!(d.read_u8().unwrap(), 0x77);
}

#[test]
fn signs_of_others_are_read() {
    assert_eq!(decoded::<3, 0>(&[0x12, 0x3f]), Ok(fixed("123")), "packed decimal without a sign");
    assert_eq!(decoded::<3, 0>(&[0x00, 0x0d]), Ok(Fixed::ZERO), "there is no negative zero");
    assert_eq!(octets(&decoded::<3, 0>(&[0x00, 0x0d]).unwrap()), [0x00, 0x0c]);
}

#[test]
fn what_is_no_number_is_refused() {
    let invalid = |octets: &[u8]| decoded::<4, 2>(octets) == Err(DecodeErrorKind::InvalidFixed);
    assert!(invalid(&[0xa1, 0x23, 0x4c]), "a first half octet above 9");
    assert!(invalid(&[0x01, 0xb3, 0x4c]), "and a later one");
    assert!(invalid(&[0xcc]), "a sign is the second half");
    for sign in [0xa, 0xb, 0xe] {
        assert!(invalid(&[0x01, 0x23, 0x40 | sign]), "{sign:x} is no sign");
    }
    assert!(invalid(&[0x11, 0x23, 0x4c]), "a digit too many");
    assert!(invalid(&[0x01, 0x23, 0x45, 0x6c]), "no sign where the type ends");
    for cut in [&[][..], &[0x01], &[0x01, 0x23]] {
        assert_eq!(decoded::<4, 2>(cut), Err(DecodeErrorKind::EndOfData), "{cut:?}");
    }
    let error = Fixed::<1, 0>::decode(&mut Decoder::new(&[0xee], ByteOrder::Big, Version::V1_2)).unwrap_err();
    assert_eq!(error.offset, 0);
    let exception = error.to_system_exception(CompletionStatus::No);
    assert_eq!(exception.kind, SystemExceptionKind::Marshal);
}

#[test]
fn counts_of_sequences_are_checked_against_what_is_there() {
    let octets = [0x7f, 0xff, 0xff, 0xff, 0x1c, 0x2c];
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    let error = Vec::<Fixed<31, 0>>::decode(&mut d).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::LengthBeyondData);
}

#[test]
fn text_is_a_decimal_number() {
    for (text, shown) in
        [("1", "1.00"), ("-0.5", "-0.50"), (".5", "0.50"), ("5.", "5.00"), ("+7.10d", "7.10")]
    {
        assert_eq!(fixed::<5, 2>(text).to_string(), shown);
    }
    assert_eq!(fixed::<5, 2>("000123.450000D").to_string(), "123.45");
    assert_eq!(fixed::<3, 3>("0.001").to_string(), "0.001");
    assert_eq!(fixed::<3, 0>("-12").to_string(), "-12");
    for text in ["", "-", ".", "d", "1e5", "1 ", "--1", "1.2.3", "0x1", "١"] {
        assert_eq!(text.parse::<Fixed<5, 2>>(), Err(FixedError::NotANumber), "{text:?}");
    }
    assert_eq!("1000".parse::<Fixed<5, 2>>(), Err(FixedError::OutOfRange));
    assert_eq!("9".repeat(1000).parse::<Fixed<31, 2>>(), Err(FixedError::OutOfRange));
    assert_eq!("0.001".parse::<Fixed<5, 2>>(), Err(FixedError::Inexact));
}

#[test]
fn text_takes_width_sign_and_precision() {
    let value = fixed::<5, 2>("-2.35");
    assert_eq!(format!("[{value:8}] [{value:<8}] [{value:08}]"), "[   -2.35] [-2.35   ] [-0002.35]");
    assert_eq!(format!("{:+}", fixed::<5, 2>("2.35")), "+2.35");
    assert_eq!(format!("{value:.1} {value:.0} {value:.4} {value:9.3}"), "-2.4 -2 -2.3500    -2.350");
    assert_eq!(format!("{:.1} {:.1}", fixed::<5, 2>("2.45"), fixed::<5, 2>("9.99")), "2.4 10.0");
    assert_eq!(format!("{:.2}", fixed::<3, 0>("7")), "7.00");
    assert_eq!(format!("{:?}", Some(value)), "Some(-2.35)");
}

#[test]
fn values_compare_and_hash_as_numbers() {
    let hash = |value: Fixed<5, 2>| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    };
    let (a, b) = (fixed::<5, 2>("1.5"), fixed::<5, 2>("01.50"));
    assert_eq!(a, b);
    assert_eq!(hash(a), hash(b));
    assert!(fixed::<5, 2>("-2") < fixed("-1.99") && fixed::<5, 2>("-0.01") < Fixed::default());
    assert_eq!(a.cmp_value(fixed::<31, 30>("1.5")), Ordering::Equal);
    assert_eq!(Fixed::<31, 0>::MAX.cmp_value(Fixed::<31, 31>::MAX), Ordering::Greater);
    assert_eq!(Fixed::<31, 31>::MAX.cmp_value(Fixed::<31, 0>::MIN), Ordering::Greater);
    assert_eq!(Fixed::<31, 0>::MIN.cmp_value(Fixed::<31, 31>::MIN), Ordering::Less);
    assert_eq!((a.signum(), (-a).signum(), Fixed::<5, 2>::ZERO.signum()), (1, -1, 0));
    assert_eq!((-a).abs(), a);
}

#[test]
fn operators_do_as_idl_does_for_constants() {
    let (a, b) = (fixed::<7, 2>("20.00"), fixed::<7, 2>("3.00"));
    assert_eq!((a + b, a - b, -a), (fixed("23"), fixed("17"), fixed("-20")));
    assert_eq!((a * b, a / b, -a / b), (fixed("60"), fixed("6.66"), fixed("-6.66")));
    assert_eq!((a * 3, a / 3), (fixed("60"), fixed("6.66")));
    assert_eq!(a * fixed::<2, 1>("0.5"), fixed("10"));
    let mut c = a;
    c += b;
    c -= fixed("1");
    c *= fixed::<2, 1>("0.5");
    c *= 4;
    c /= b;
    c /= 2;
    assert_eq!(c, fixed("7.33"));
    assert_eq!([a, b, c].iter().sum::<Fixed<7, 2>>(), fixed("30.33"));
    assert_eq!([a, b].into_iter().sum::<Fixed<7, 2>>(), fixed("23"));
}

#[test]
fn what_does_not_fit_is_told() {
    let max = Fixed::<3, 1>::MAX;
    let step = fixed::<3, 1>("0.1");
    assert_eq!(max.checked_add(step), None);
    assert_eq!(Fixed::<3, 1>::MIN.checked_sub(step), None);
    assert_eq!(max.checked_mul(fixed::<2, 1>("1.1")), None);
    assert_eq!(max.checked_mul(fixed::<2, 1>("1.0")), Some(max));
    assert_eq!(max.checked_div(step), None);
    assert_eq!(max.checked_div(Fixed::<1, 0>::ZERO), None);
    assert_eq!(max.div_to::<1, 0, 5, 0>(Fixed::ZERO, Rounding::Truncate), Err(FixedError::DivisionByZero));
    // The operands with the most digits.
    let (huge, tiny) = (Fixed::<31, 0>::MAX, Fixed::<31, 31>::from_unscaled(1).unwrap());
    assert_eq!(huge.mul_to::<31, 0, 31, 0>(huge, Rounding::Truncate), Err(FixedError::OutOfRange));
    assert_eq!(huge.div_to::<31, 31, 31, 31>(tiny, Rounding::Truncate), Err(FixedError::OutOfRange));
    assert_eq!(tiny.div_to::<31, 0, 31, 0>(huge, Rounding::Truncate), Ok(Fixed::ZERO));
    assert_eq!(tiny.div_to::<31, 0, 31, 0>(huge, Rounding::Ceiling), Ok(fixed("1")));
    assert_eq!(tiny.mul_to::<31, 31, 31, 0>(tiny, Rounding::HalfEven), Ok(Fixed::ZERO));
    assert_eq!(tiny.mul_to::<31, 31, 31, 0>(tiny, Rounding::Exact), Err(FixedError::Inexact));
    assert_eq!(huge.mul_to(tiny, Rounding::Exact), Ok(Fixed::<31, 31>::MAX));
}

#[test]
#[should_panic(expected = "attempt to add fixed numbers with overflow")]
fn a_sum_that_does_not_fit_panics() {
    let _ = Fixed::<3, 1>::MAX + Fixed::MAX;
}

#[test]
#[should_panic(expected = "attempt to divide a fixed by zero")]
fn division_by_zero_panics() {
    let _ = Fixed::<3, 1>::MAX / 0;
}

#[test]
fn roundings_differ_in_the_middle_and_by_sign() {
    let all = |text| ROUNDINGS.map(|r| fixed::<5, 2>(text).rescale::<2, 0>(r).unwrap().to_string());
    assert_eq!(all("2.50"), ["2", "3", "2", "2", "3"]);
    assert_eq!(all("3.50"), ["3", "4", "4", "3", "4"]);
    assert_eq!(all("-2.50"), ["-2", "-3", "-2", "-3", "-2"]);
    assert_eq!(all("2.51"), ["2", "3", "3", "2", "3"]);
    assert_eq!(all("-2.49"), ["-2", "-2", "-2", "-3", "-2"]);
    assert_eq!(all("2.00"), ["2"; 5]);
    assert_eq!(fixed::<3, 2>("9.99").rescale::<1, 0>(Rounding::HalfEven), Err(FixedError::OutOfRange));
    assert_eq!(fixed::<3, 2>("9.90").rescale::<2, 1>(Rounding::Exact), Ok(fixed("9.9")));
    assert_eq!(fixed::<3, 2>("9.90").rescale::<31, 30>(Rounding::Exact), Ok(fixed("9.9")));
    let value = fixed::<5, 2>("-12.35");
    assert_eq!(value.round_to(1, Rounding::HalfEven), Some(fixed("-12.4")));
    assert_eq!(value.truncate_to(1), fixed("-12.3"));
    assert_eq!(value.truncate_to(0), fixed("-12"));
    assert_eq!(value.truncate_to(9), value);
    assert_eq!(Fixed::<5, 2>::MAX.round_to(1, Rounding::HalfEven), None);
}

#[test]
fn integers_convert_both_ways_where_they_fit() {
    assert_eq!(Fixed::<5, 2>::try_from(-999_i64), Ok(fixed("-999")));
    assert_eq!(Fixed::<5, 2>::try_from(1000_u32 - 24), Ok(fixed("976")));
    assert_eq!(Fixed::<5, 2>::try_from(1000_u16), Err(FixedError::OutOfRange));
    assert_eq!(Fixed::<31, 0>::try_from(u128::MAX), Err(FixedError::OutOfRange));
    assert_eq!(Fixed::<31, 0>::try_from(i128::MIN), Err(FixedError::OutOfRange));
    assert_eq!(i64::try_from(fixed::<5, 2>("-12.00")), Ok(-12));
    assert_eq!(i64::try_from(fixed::<5, 2>("-12.01")), Err(FixedError::Inexact));
    assert_eq!(u8::try_from(fixed::<5, 2>("-12")), Err(FixedError::OutOfRange));
    assert_eq!(u8::try_from(fixed::<5, 2>("255")), Ok(255));
    assert_eq!(fixed::<5, 2>("-12.51").to_integer(Rounding::HalfEven), Ok(-13));
    assert_eq!(Fixed::<31, 0>::MIN.to_integer(Rounding::Exact), Ok(Fixed::<31, 0>::MIN.unscaled()));
}

#[test]
fn floats_convert_by_their_exact_value() {
    let half_even = |value| Fixed::<5, 2>::from_f64(value, Rounding::HalfEven);
    assert_eq!(half_even(1.005), Ok(fixed("1.00")), "the float is a little less");
    assert_eq!(half_even(0.125), Ok(fixed("0.12")), "the float is exact");
    assert_eq!(half_even(-999.99), Ok(fixed("-999.99")));
    assert_eq!(half_even(999.995), Err(FixedError::OutOfRange), "the float is a little more");
    assert_eq!(half_even(1e300), Err(FixedError::OutOfRange));
    assert_eq!(half_even(5e-324), Ok(Fixed::ZERO));
    assert_eq!(Fixed::<5, 2>::from_f64(5e-324, Rounding::Ceiling), Ok(fixed("0.01")));
    assert_eq!(half_even(-0.0), Ok(Fixed::ZERO));
    assert_eq!(half_even(f64::NAN), Err(FixedError::NotANumber));
    assert_eq!(half_even(f64::NEG_INFINITY), Err(FixedError::OutOfRange));
    assert_eq!(
        Fixed::<31, 31>::from_f64(0.1, Rounding::Truncate),
        Ok(fixed("0.1000000000000000055511151231257"))
    );
    assert_eq!(Fixed::<31, 0>::from_f64(1e30, Rounding::Exact), Ok(fixed("1000000000000000019884624838656")));
    assert_eq!(fixed::<31, 31>("0.1000000000000000055511151231257").to_f64(), 0.1);
    assert_eq!(f64::from(Fixed::<31, 0>::MIN), -1e31);
    assert_eq!(f64::from(fixed::<5, 2>("-0.05")), -0.05);
}

/// Decimal digits, least significant first.
fn digits(value: u128) -> Vec<u32> {
    value.to_string().bytes().rev().map(|digit| u32::from(digit - b'0')).collect()
}

/// The product by long multiplication, without its last `cut` digits; `None` if more than 38 are left.
fn schoolbook(a: u128, b: u128, cut: usize) -> Option<u128> {
    let (a, b) = (digits(a), digits(b));
    let mut product = vec![0; a.len() + b.len() + cut + 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            product[i + j] += x * y;
        }
    }
    for i in 0..product.len() - 1 {
        product[i + 1] += product[i] / 10;
        product[i] %= 10;
    }
    product[cut..]
        .iter()
        .rev()
        .try_fold(0_u128, |all, digit| all.checked_mul(10)?.checked_add((*digit).into()))
}

fn any_fixed<const D: u32, const S: u32>() -> impl Strategy<Value = Fixed<D, S>> {
    let limit = 10_i128.pow(D);
    // Short numbers are as frequent as long ones.
    (1 - limit..limit, 0..D)
        .prop_map(|(digits, cut)| Fixed::from_unscaled(digits / 10_i128.pow(cut)).unwrap())
}

fn round_trip<const D: u32, const S: u32>(value: Fixed<D, S>, offset: usize) {
    let encoded = ORDERS.map(|order| {
        let mut e = Encoder::new(order, Version::V1_2);
        e.put_raw(&vec![7; offset]);
        vec![value, -value].encode(&mut e).unwrap();
        e.put_u8(9);
        let octets = e.into_bytes();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).at(offset);
        assert_eq!(Vec::<Fixed<D, S>>::decode(&mut d).unwrap(), [value, -value]);
        assert_eq!(d.read_u8().unwrap(), 9);
        assert_eq!(d.remaining(), 0);
        octets.slice(offset.next_multiple_of(4) + 4..)
    });
    assert_eq!(encoded[0], encoded[1], "the byte order is no matter");
    assert_eq!(encoded[0].len(), 2 * (D as usize / 2 + 1) + 1, "nothing is aligned");
}

proptest! {
    #[test]
    fn values_come_back_from_every_offset(
        a in any_fixed::<31, 2>(), b in any_fixed::<30, 30>(), c in any_fixed::<1, 0>(), offset in 0_usize..16,
    ) {
        round_trip(a, offset);
        round_trip(b, offset);
        round_trip(c, offset);
    }

    #[test]
    fn text_comes_back(a in any_fixed::<31, 2>(), b in any_fixed::<9, 9>(), c in any_fixed::<12, 0>()) {
        prop_assert_eq!(a.to_string().parse(), Ok(a));
        prop_assert_eq!(b.to_string().parse(), Ok(b));
        prop_assert_eq!(c.to_string().parse(), Ok(c));
        prop_assert_eq!(c.unscaled().to_string(), c.to_string());
    }

    #[test]
    fn octets_of_no_value_are_refused_and_others_say_the_same(octets in proptest::collection::vec(any::<u8>(), 0..5)) {
        let text: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let end = text.bytes().step_by(2).zip(text.bytes().skip(1).step_by(2)).position(|(_, low)| low > b'9');
        let number = end.filter(|end| *end < 3).map(|end| &text[..2 * end + 2]);
        let expected = number.and_then(|text| {
            let sign = match text.chars().last()? { 'c' | 'f' => "", 'd' => "-", _ => return None };
            format!("{sign}{}", &text[..text.len() - 1]).parse::<i128>().ok()
        });
        let expected = expected.filter(|value| value.abs() < 10_000);
        prop_assert_eq!(decoded::<4, 2>(&octets).ok().map(Fixed::unscaled), expected);
    }

    #[test]
    fn products_have_every_digit(a in any_fixed::<31, 10>(), b in any_fixed::<31, 25>()) {
        let sign = i128::from((a.signum() * b.signum()).signum());
        let expected = |cut| schoolbook(a.unscaled().unsigned_abs(), b.unscaled().unsigned_abs(), cut)
            .and_then(|product| i128::try_from(product).ok()).map(|product| product * sign);
        let in_31 = |value: &i128| value.unsigned_abs() < 10_u128.pow(31);
        prop_assert_eq!(
            a.mul_to::<31, 25, 31, 0>(b, Rounding::Truncate).ok().map(Fixed::unscaled),
            expected(35).filter(in_31)
        );
        prop_assert_eq!(
            a.mul_to::<31, 25, 31, 20>(b, Rounding::Truncate).ok().map(Fixed::unscaled),
            expected(15).filter(in_31)
        );
        prop_assert_eq!(a.checked_mul(b).map(Fixed::unscaled), expected(25).filter(in_31));
        // Ceiling and floor differ by one exactly if digits were cut off.
        let exact = a.mul_to::<31, 25, 31, 0>(b, Rounding::Exact);
        let (floor, ceiling) = (a.mul_to::<31, 25, 31, 0>(b, Rounding::Floor), a.mul_to::<31, 25, 31, 0>(b, Rounding::Ceiling));
        if let (Ok(floor), Ok(ceiling)) = (floor, ceiling) {
            prop_assert_eq!(ceiling.unscaled() - floor.unscaled(), i128::from(exact == Err(FixedError::Inexact)));
        }
    }

    #[test]
    fn a_quotient_times_its_divisor_is_what_was_divided(a in any_fixed::<31, 10>(), b in any_fixed::<20, 5>()) {
        prop_assume!(!b.is_zero());
        if let Some(q) = a.checked_div(b) {
            // a = q * b + rest, computed by digits in units of 10^-15.
            let product = |q: u128| schoolbook(q, b.unscaled().unsigned_abs(), 0);
            let q = q.unscaled().unsigned_abs();
            let scaled = a.unscaled().unsigned_abs().checked_mul(100_000);
            if let (Some(scaled), Some(low), Some(high)) = (scaled, product(q), product(q + 1)) {
                prop_assert!(low <= scaled && scaled < high);
            }
        } else {
            // The quotient is too large, because the divisor is far below one.
            prop_assert!(b.abs() < Fixed::try_from(1).unwrap());
        }
    }

    #[test]
    fn small_numbers_calculate_as_integers_do(a in -9999_i128..10_000, b in -9999_i128..10_000) {
        let (x, y) = (Fixed::<9, 2>::from_unscaled(a).unwrap(), Fixed::<9, 2>::from_unscaled(b).unwrap());
        prop_assert_eq!((x + y).unscaled(), a + b);
        prop_assert_eq!((x - y).unscaled(), a - b);
        prop_assert_eq!((x * y).unscaled(), a * b / 100);
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.cmp_value(Fixed::<31, 4>::from_unscaled(b).unwrap()), (a * 100).cmp(&b));
        if b != 0 {
            prop_assert_eq!((x / y).unscaled(), a * 100 / b);
            let floor: Fixed<9, 0> = x.div_to(y, Rounding::Floor).unwrap();
            prop_assert_eq!(floor.unscaled(), a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0));
        }
    }

    #[test]
    fn floats_come_back(value in any::<f64>(), small in -1e6..1e6) {
        if let Ok(fixed) = Fixed::<31, 6>::from_f64(small, Rounding::HalfEven) {
            prop_assert_eq!(fixed.to_string(), format!("{small:.6}").replace("-0.000000", "0.000000"));
            prop_assert_eq!(fixed.to_f64(), format!("{small:.6}").parse::<f64>().unwrap());
        }
        let exact = Fixed::<31, 0>::from_f64(value.trunc(), Rounding::Exact);
        prop_assert_eq!(exact.is_ok(), value.trunc().abs() < 1e31);
        if let Ok(exact) = exact {
            prop_assert_eq!(exact.to_f64(), value.trunc());
        }
    }
}
