//! Every operation `T echo_x (in T a, inout T b, out T c)` with the samples of `../omniorb/checks_echo.cc`.

use zorb::prelude::*;

use super::checks::{Check, Context, Failure, Outcome, each_pair, expect};
use super::extras::interop::{FarLongLong, FarULong, FarULongLong, FarUShort};
use super::types::interop::names::{self, Words};
use super::types::interop::*;

/// `by_value!(checks; op: samples...)`: `a` is passed by value.
macro_rules! by_value {
    ($checks:ident; $($op:ident: $($value:expr),+;)+) => {
        $($checks.push(Check::new(stringify!($op), |x: Context| async move {
            each_pair(vec![$($value),+], |a, b| { let peer = x.peer.clone(); async move { peer.$op(a, b).await } }).await
        }));)+
    };
}

/// `by_reference!(checks; op: samples...)`: `a` is borrowed.
macro_rules! by_reference {
    ($checks:ident; $($op:ident: $($value:expr),+;)+) => {
        $($checks.push(Check::new(stringify!($op), |x: Context| async move {
            each_pair(vec![$($value),+], |a, b| { let peer = x.peer.clone(); async move { peer.$op(&a, b).await } }).await
        }));)+
    };
}

/// `extras!(checks; op: samples...)`: operations of `extras.idl`.
macro_rules! extras {
    ($checks:ident; $($op:ident: $($value:expr),+;)+) => {
        $($checks.push(Check::new(stringify!($op), |x: Context| async move {
            let Some(extras) = x.extras else {
                return Err(Failure::Skipped("the server has no extras.idl".to_owned()));
            };
            each_pair(vec![$($value),+], |a, b| { let extras = extras.clone(); async move { extras.$op(&a, b).await } }).await
        }));)+
    };
}

/// Returns these checks.
pub fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    scalars(&mut checks);
    texts(&mut checks);
    structs(&mut checks);
    unions(&mut checks);
    arrays(&mut checks);
    sequences(&mut checks);
    decimals(&mut checks);
    extras(&mut checks);
    checks.push(Check::new("properties", properties));
    checks.push(Check::new("discriminators", discriminators));
    checks
}

fn scalars(checks: &mut Vec<Check>) {
    by_value! { checks;
        echo_short: 0x0102, -32768, 32767, -2;
        echo_ushort: 0x0102, 65535, 0;
        echo_long: 0x0102_0304, i32::MIN, i32::MAX, -3;
        echo_ulong: 0x0102_0304, u32::MAX, 0;
        echo_longlong: 0x0102_0304_0506_0708, i64::MIN, i64::MAX, -4;
        echo_ulonglong: 0x0102_0304_0506_0708, u64::MAX, 0;
        echo_octet: 1, 255, 0;
        echo_boolean: true, false;
        echo_char: Char(b'A'), Char(b'z'), Char(0), Char(b'~');
        echo_float: 1.5, -0.0, f32::MAX, f32::INFINITY;
        echo_double: 1.5, -0.0, f64::MAX, f64::from_bits(1), f64::NEG_INFINITY;
        echo_color: Color::Red, Color::Blue, Color::Green;
        echo_tiny: 0x0102, -5;
        echo_stamp: 0x0102_0304_0506_0708, 1;
        echo_paint: Color::Green, Color::Blue;
    }
}

fn texts(checks: &mut Vec<Check>) {
    by_reference! { checks;
        echo_string: "hello".to_owned(), String::new(), "A longer Line, of 33 characters ...".to_owned();
        echo_text: "alias".to_owned(), "Of String".to_owned();
        echo_code: code("sixteen letters!"), code("Ab"), code("");
        echo_wstring: wide("Hello"), wide("Grüße, 漢字 €"), wide(""), wide("clef \u{1d11e}"), WString::from_units([0x41, 0xD83D]), WString::from_units([0xDE00, 0x42]);
        echo_wchar_seq: vec![WChar(65), WChar(0x20ac), WChar(66)], vec![WChar(0xe9)], vec![];
        echo_wstring_seq: vec![wide("One"), wide(""), wide("€")], vec![wide("Two")], vec![];
        echo_caption: caption("Narrow", "Wide €", 'ü'), caption("", "", 'x');
        echo_wide_choice: WideChoice::Text("Wide €".into()), WideChoice::Letter(WChar(0x20ac)),
            WideChoice::Narrow(0, "Narrow".to_owned());
    }
    by_value! { checks;
        echo_wchar: WChar(65), WChar(0x20ac), WChar(0x6f22), WChar(0);
    }
}

fn structs(checks: &mut Vec<Check>) {
    by_reference! { checks;
        echo_point: point(1, -2), point(0x0102_0304, i32::MIN);
        echo_mixed: mixed(1), mixed(2), mixed(200);
        echo_person: person("Ada", 36, Color::Green), person("", -1, Color::Blue);
        echo_team: team(3), team(0), team(4);
        echo_tree: tree(1, 3), tree(2, 0), tree(3, 1);
        echo_place: point(7, 8), point(-9, 0);
        echo_squad: team(1), team(2);
        echo_words: words(1, "Function", true, names::Result::Err), words(-2, "", false, names::Result::Ok);
    }
}

fn unions(checks: &mut Vec<Check>) {
    by_reference! { checks;
        echo_by_long: by_long(1), by_long(2), by_long(3), by_long(0);
        echo_by_color: ByColor::Count(5), ByColor::Spot(point(1, 2)), ByColor::Other(Color::Blue);
        echo_all_colors: AllColors::R(7), AllColors::G(0.5), AllColors::S("Sky".to_owned());
        echo_by_boolean: ByBoolean::Yes("Yes".to_owned()), ByBoolean::No(-1);
        echo_maybe: Maybe::Some(person("Some", 1, Color::Red)), Maybe::Other(false);
        echo_by_char: ByChar::Number(77), ByChar::People(Char(b'b'), vec![person("Bob", 2, Color::Blue)]),
            ByChar::People(Char(b'c'), vec![]), ByChar::Other(Char(0), 9);
        echo_by_short: ByShort::Grid(matrix(0.5)), ByShort::List([1, 2, 3].into()), ByShort::Other(0);
        echo_by_ushort: ByUShort::Flag(true), ByUShort::Letter(Char(b'q'));
        echo_by_ulong: ByULong::Inner(ByBoolean::No(3)), ByULong::Rest(5, "Rest".to_owned());
        echo_by_longlong: ByLongLong::Before(-6), ByLongLong::After(6.5);
        echo_by_ulonglong: ByULongLong::Most("Most".to_owned()), ByULongLong::Rest(0, mixed(3));
        echo_by_long_seq: vec![by_long(1), by_long(3), by_long(0)], vec![by_long(2)], vec![];
        echo_variant: by_long(0), by_long(1);
        echo_wrapped:
            Wrapped { before: 1, choice: by_long(0), more: vec![by_long(1), by_long(2)], after: 2 },
            Wrapped { before: 3, choice: by_long(3), more: vec![], after: 4 };
    }
}

fn arrays(checks: &mut Vec<Check>) {
    by_reference! { checks;
        echo_long_array: [1, 2, 3], [-1, 0, 0x0102_0304];
        echo_octet_array: [1, 2, 3, 4, 5, 6, 7], [255, 0, 255, 0, 255, 0, 1];
        echo_matrix: matrix(0.25), matrix(-100.0);
        echo_point_array: [point(1, 2), point(3, 4)], [point(-1, -2), point(0, 0)];
        echo_string_array: ["One".to_owned(), "Two".to_owned()], [String::new(), "last".to_owned()];
        echo_person_grid: grid(1), grid(50);
        echo_seq_array: [[1].into(), [2, 3].into()], [Seq::default(), [4, 5, 6].into()];
        echo_matrix_seq: vec![matrix(1.0), matrix(-0.5)], vec![];
        echo_big_array: big(1), big(-65537);
        echo_triple: [4, 5, 6], [0, -1, 1];
    }
}

fn sequences(checks: &mut Vec<Check>) {
    by_value! { checks;
        echo_short_seq: [1, -2, 0x0304].into(), [-32768].into(), Seq::default();
        echo_ushort_seq: [1, 65535].into(), [0].into(), Seq::default();
        echo_long_seq: [1, -2, 0x0102_0304].into(), Seq::default(), (0..100).map(|i| i * i).collect();
        echo_ulong_seq: [1, u32::MAX].into(), [0].into(), Seq::default();
        echo_longlong_seq: [1, i64::MIN].into(), [0x0102_0304_0506_0708].into(), Seq::default();
        echo_ulonglong_seq: [1, u64::MAX].into(), Seq::default();
        echo_octet_seq: Bytes::from_static(&[1, 2, 255]), Bytes::new(), (0..1000).map(|i| i as u8).collect();
        echo_char_seq: [Char(b'a'), Char(b'B'), Char(b'c')].into(), [Char(b'~')].into(), Seq::default();
        echo_float_seq: [1.5, -0.25].into(), Seq::default(), [f32::MAX].into();
        echo_double_seq: [1.5, -0.25].into(), Seq::default(), [f64::MAX, f64::from_bits(1), f64::INFINITY].into();
    }
    by_reference! { checks;
        echo_boolean_seq: vec![true, false, true], vec![false], vec![];
        echo_string_seq: vec!["a".to_owned(), "Bcd".to_owned(), String::new()], vec![], vec!["one".to_owned()];
        echo_color_seq: vec![Color::Red, Color::Blue, Color::Green], vec![Color::Green], vec![];
        echo_point_seq: vec![point(1, 2), point(3, 4)], vec![], (0..50).map(|i| point(i, -i)).collect();
        echo_mixed_seq: vec![mixed(1), mixed(2), mixed(3)], vec![], (0..10).map(mixed).collect();
        echo_person_seq: vec![person("Ada", 36, Color::Green), person("", 0, Color::Red)], vec![],
            vec![person("Bob", 5, Color::Blue)];
        echo_long_seq_seq: vec![[1, 2].into(), Seq::default(), [3].into()], vec![], vec![Seq::default()];
        echo_few_codes: few([code("One"), code("sixteen letters!"), code("")].to_vec()), few(vec![]), few(vec![code("Two")]);
    }
    checks.push(Check::new("echo_few_longs", |x| async move {
        let few = |longs: &[i32]| FewLongs::new(longs.into()).expect("few");
        let values = vec![few(&[1, 2, 3, 4]), few(&[]), few(&[5])];
        each_pair(values, |a, b| {
            let peer = x.peer.clone();
            async move { peer.echo_few_longs(a.into_inner(), b).await }
        })
        .await
    }));
    checks.push(Check::new("echo_few_octets", |x| async move {
        let few = |octets: &'static [u8]| FewOctets::new(Bytes::from_static(octets)).expect("few");
        let values = vec![few(&[1, 2, 3, 4, 5, 6, 7, 8]), few(&[]), few(&[9])];
        each_pair(values, |a, b| {
            let peer = x.peer.clone();
            async move { peer.echo_few_octets(a.into_inner(), b).await }
        })
        .await
    }));
}

fn decimals(checks: &mut Vec<Check>) {
    by_value! { checks;
        echo_money: decimal("1234567.89"), decimal("-0.05"), Money::ZERO, Money::MIN;
        echo_part: decimal("0.1234"), decimal("-0.0001"), Part::MAX;
        echo_huge: Huge::MAX, decimal("-1"), Huge::ZERO;
    }
    by_reference! { checks;
        echo_bill: bill(3, "19.90", "0.25", "1234567890123456789012345678901"), bill(0, "-0.01", "0", "-7");
        echo_money_seq: vec![decimal("1.5"), decimal("-2.25"), Money::ZERO], vec![], vec![Money::MAX];
        echo_part_array: [decimal("0.5"), decimal("-0.0625")], [Part::ZERO, decimal("0.001")];
    }
}

/// Adds the checks that JacORB does not support.
fn extras(checks: &mut Vec<Check>) {
    extras! { checks;
        echo_wide_code: wide_code("8 wide €"), wide_code("Ab"), wide_code("");
        echo_far_ushort: FarUShort::Letter(Char(b'x')), FarUShort::Flag(true);
        echo_far_ulong: FarULong::Last("Last".to_owned()), FarULong::Middle(8);
        echo_far_longlong: FarLongLong::Before(-7), FarLongLong::After(0.5), FarLongLong::Between(-1, "Between".to_owned());
        echo_far_ulonglong: FarULongLong::Last("Last".to_owned()), FarULongLong::Middle(9);
    }
}

/// Properties of a context: those in the context clause, by name and by prefix.
async fn properties(x: Context) -> Outcome {
    let Some(extras) = x.extras else {
        return Err(Failure::Skipped("the server has no extras.idl".to_owned()));
    };
    let none = extras.properties("none ", &::zorb::Context::new()).await?;
    expect(none == ("none ".to_owned(), 0), || format!("without properties: {none:?}"))?;
    let context = [("user", "ann"), ("net.host", "h"), ("net.port", "7"), ("nets", "no"), ("other", "no")];
    let some = extras.properties("", &context.into_iter().collect()).await?;
    expect(some == ("net.host=h;net.port=7;user=ann;".to_owned(), 3), || format!("the properties: {some:?}"))
}

/// Discriminators that select the default, or no member, are distinct values.
async fn discriminators(x: Context) -> Outcome {
    if x.server == "JacORB" || crate::java_ee::SERVERS.contains(&x.server.as_str()) {
        let why = "known defect of JacORB's IDL compiler, which makes the stubs of all Java peers: its unions forget \
                   discriminators of default members and of no member";
        return Err(Failure::Skipped(why.to_owned()));
    }
    let peer = &x.peer;
    let by_long = ByLong::C(-9, 0.5);
    each_pair(vec![by_long], |a, b| async move { peer.echo_by_long(&a, b).await }).await?;
    let by_char = ByChar::Other(Char(b'z'), 1);
    each_pair(vec![by_char], |a, b| async move { peer.echo_by_char(&a, b).await }).await?;
    let by_short = ByShort::Other(-32768);
    each_pair(vec![by_short], |a, b| async move { peer.echo_by_short(&a, b).await }).await?;
    let by_ulong = ByULong::Rest(6, "Six".to_owned());
    each_pair(vec![by_ulong], |a, b| async move { peer.echo_by_ulong(&a, b).await }).await?;
    let by_ulonglong = ByULongLong::Rest(u64::MAX, mixed(9));
    each_pair(vec![by_ulonglong], |a, b| async move { peer.echo_by_ulonglong(&a, b).await }).await
}

// ------------------------------------------------------------------ samples

fn code(text: &str) -> Code {
    text.try_into().expect("short")
}

fn wide_code(text: &str) -> super::extras::interop::WideCode {
    text.try_into().expect("short")
}

fn few(codes: Vec<Code>) -> FewCodes {
    FewCodes::new(codes).expect("few")
}

fn decimal<const DIGITS: u32, const SCALE: u32>(text: &str) -> Fixed<DIGITS, SCALE> {
    text.parse().expect("a decimal number")
}

fn bill(items: u8, total: &str, share: &str, code: &str) -> Bill {
    let number = -i32::from(items);
    Bill { items, total: decimal(total), number, share: decimal(share), code: decimal(code) }
}

fn wide(text: &str) -> WString {
    text.into()
}

fn point(x: i32, y: i32) -> Point {
    Point { x, y }
}

fn person(name: &str, age: i32, favourite: Color) -> Person {
    Person { name: name.to_owned(), age, favourite }
}

fn color(i: i32) -> Color {
    [Color::Red, Color::Green, Color::Blue][i as usize % 3]
}

/// A struct of fixed layout with every alignment.
pub fn mixed(n: i32) -> Mixed {
    Mixed {
        tag: n as u8,
        weight: f64::from(n) * 1.5,
        delta: -n as i16,
        total: i64::from(n) << 40,
        mark: Char(b'a' + (n % 26) as u8),
        flag: n % 2 == 1,
        ratio: n as f32 / 4.0,
        port: (65535 - n) as u16,
        mask: 0x8000_0000 + n as u32,
        stamp: 0x0102_0304_0506_0708 + n as u64,
        tail: (255 - n) as u8,
    }
}

fn big(factor: i32) -> BigArray {
    std::array::from_fn::<i32, 1500, _>(|i| i as i32 * factor).into()
}

fn matrix(first: f64) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| first + (3 * row + column) as f64))
}

fn team(n: i32) -> Team {
    Team {
        lead: person("Grace", n, Color::Green),
        members: (0..n).map(|i| person(if i % 2 == 1 { "Ada" } else { "" }, i, color(i))).collect(),
        origin: point(n, -n),
        goal: point(100 * n, 0),
        label: code(if n % 2 == 1 { "Odd" } else { "Even number team" }),
        scores: FewLongs::new((0..n % 5).map(|i| 10 * i).collect()).expect("few"),
        digest: std::array::from_fn(|i| (16 * n) as u8 + i as u8),
        table: std::array::from_fn(|row| std::array::from_fn(|column| 1000 * n + (2 * row + column) as i32)),
    }
}

fn tree(value: i32, depth: i32) -> Tree {
    Tree { value, children: (0..depth).map(|i| tree(10 * value + i, depth - 1)).collect() }
}

fn caption(narrow: &str, wide: &str, mark: char) -> Caption {
    Caption { narrow: narrow.to_owned(), wide: wide.into(), mark: mark.try_into().expect("one unit") }
}

fn by_long(discriminator: i32) -> ByLong {
    match discriminator {
        1 => ByLong::A(0x0102),
        2 | 3 => ByLong::B(discriminator, "Union".to_owned()),
        _ => ByLong::C(discriminator, 2.5),
    }
}

fn grid(n: i32) -> PersonGrid {
    std::array::from_fn(|row| {
        std::array::from_fn(|column| {
            let i = (2 * row + column) as i32;
            person(if i == 0 { "" } else { "Someone" }, n + i, color(i))
        })
    })
}

fn words(r#type: i32, r#fn: &str, r#loop: bool, outcome: names::Result) -> Words {
    Words { r#type, r#fn: r#fn.to_owned(), r#loop, class: names::Option { some: -r#type, outcome } }
}
