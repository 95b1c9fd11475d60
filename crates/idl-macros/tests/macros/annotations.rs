//! Annotations that are acted on: what they make of members, and values of them over the wire.

use crate::octets::{decoded, encoded, round_trip};
use crate::orbs::{activate, collocated, run};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use idl_macros::idl;
use zorb::{Any, Bounded, Fixed, RangeError, Ranged, SystemException, Typed, Value, WString};

idl! {
    module Shop {
        const long STEPS = 3;
        enum Colour { red, green, @default_literal blue };
        @range(min = 0, max = 100) typedef octet Percent;
        typedef Percent Share;
        typedef sequence<Percent> Percents;
        @min(-1.5) typedef float Level;
        @range(min = 0, max = 99.99d) typedef fixed<5, 2> Price;
        typedef long Rows[2];
        const Share HALF = 50;
        const Price LOW = 0.05d;
        const Level DEEP = -1.5;
        interface Till;

        struct Item {
            @optional string note;
            /// How many there are.
            @range(min = 1, max = STEPS * 2) @default(STEPS) short count;
            Share discount;
            @optional @max(10) @default(4) octet rating;
            @unit("m") double length;
        };
        struct Defaults {
            @default(7) octet a;
            @default("text") string b;
            @default("abc") string<5> c;
            @default("wü") wstring d;
            @default('x') char e;
            @default(TRUE) boolean f;
            @default(-0.25) float g;
            @default(1) double h;
            @default(1.5) fixed<3, 2> i;
            @default(green) Colour j;
            Colour k;
            @default(0.5) long double l;
            @default(60) Share m;
            @default(-5) long long n;
            @default('x') wchar o;
            @default("abc") wstring<4> p;
            @optional(FALSE) long q;
            @min(5) unsigned long r;
            @max(-5) int8 s;
            Price t;
            @default(10.5) Price u;
            @default(1) Level v;
        };
        struct Options {
            @optional long a; @optional Item b; @optional sequence<octet> c; @optional Rows d; @optional Till e;
            @optional @non_nil Till f; @optional any g; @optional Percent h; @optional Share i; @optional Colour j;
        };
        struct Lists { Percents a; Percent b[3]; Share c[5000]; map<Percent, Level> d; sequence<Item> e; sequence<Share, 2> f; };
        struct Fixed8 { Percent a; long b; };
        union Choice switch (long) { case 1: Share a; case 2: @min(3) long b; default: Item c; };
        struct First : Item { @optional long more; @default(9) long nine; };
        @zero_copy struct Plain { @default(7) long a; @default(0.5) float b; long c[2]; };
        exception Refused { @optional string why; @max(5) @default(2) long code; };

        valuetype Ticket {
            @default(7) public long number;
            @range(min = 2, max = 4) public short rows;
            @default("seat") private string<8> name;
            public Percent discount;
            public Item what;
        };
        @min(3) valuetype Level3 long;
        valuetype Percentage Percent;

        interface Till {
            Ticket stamp(in Ticket one, in Level3 level, inout Percentage part);
            Percent price(in Item what, in Percent at, inout Percents all, out Options rest) raises (Refused);
            Choice pick(@range(min = 1, max = 3) in long index, in Options options);
            attribute Percent rate;
            @range(min = -1, max = 1) attribute short sign;
            const boolean YES = TRUE;
            @oneway(YES) void note(in Percent what);
            @oneway(FALSE) long count();
        };
    };
}

use shop::*;

#[test]
fn defaults_are_those_of_the_idl() {
    let found = Defaults::default();
    assert_eq!(
        (found.a, found.b.as_str(), found.c.as_str(), found.d.as_str().unwrap()),
        (7, "text", "abc", "w\u{fc}")
    );
    assert_eq!((char::from(found.e), found.f, found.g, found.h), ('x', true, -0.25, 1.0));
    assert_eq!(found.i, "1.5".parse().unwrap());
    assert_eq!((found.j, found.k), (Colour::Green, Colour::Blue));
    assert_eq!((found.l.to_f64(), *found.m, found.n, found.o), (0.5, 60, -5, 'x'.try_into().unwrap()));
    assert_eq!((found.p.as_str(), found.q), (Ok("abc"), 0));
    // Without a default the number in the range that is nearest to zero.
    assert_eq!((*found.r, *found.s, *found.t, *found.v), (5, -5, Fixed::default(), 1.0));
    assert_eq!(found.u.to_string(), "10.50");
    let item = Item::default();
    assert_eq!((item.note, *item.count, *item.discount), (None, 3, 0));
    assert_eq!(item.rating, Some(4.try_into().unwrap()));
    assert_eq!((First::default().nine, First::default().more, *First::default().count), (9, None, 3));
    assert_eq!((Plain::default().a, Plain::default().b, Plain::default().c), (7, 0.5, [0, 0]));
    assert_eq!(*Refused::default().code, 2);
}

#[test]
fn numbers_are_checked_where_they_are_built() {
    assert_eq!(Percent::new(100).unwrap().get(), 100);
    let error: RangeError = Percent::new(101).unwrap_err();
    assert_eq!(error.to_string(), "number is out of its range, 0 to 100");
    assert!(Level::try_from(-1.6).is_err() && Level::try_from(f32::NAN).is_err());
    assert!(Level::try_from(f32::INFINITY).is_ok());
    assert!(Price::try_from("99.99".parse::<Fixed<5, 2>>().unwrap()).is_ok());
    let error = Price::try_from("100".parse::<Fixed<5, 2>>().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "number is out of its range, 0.00 to 99.99");
    assert_eq!((*HALF, LOW.to_string(), *DEEP), (50, "0.05".to_owned(), -1.5));
    // Bounds are part of the type, names are not.
    let same: Ranged<u8, 0, 100> = HALF;
    assert_eq!(same, Share::new(50).unwrap());
}

#[test]
fn numbers_are_checked_where_they_are_received() {
    assert_eq!(encoded(&HALF), [50]);
    assert_eq!(decoded::<Percent>(&[101]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Percents>(&[0, 0, 0, 2, 5, 100]).unwrap(), [5, 100].map(|n| n.try_into().unwrap()));
    assert_eq!(decoded::<Percents>(&[0, 0, 0, 2, 5, 255]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Fixed8>(&[101, 0, 0, 0, 0, 0, 0, 0]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Choice>(&[0, 0, 0, 2, 0, 0, 0, 2]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Refused>(&[0, 0, 0, 0, 0, 0, 0, 6]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Level>(&f32::NAN.to_be_bytes()), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Price>(&[0x10, 0x00, 0x0c]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Price>(&[0x00, 0x00, 0x1d]), Err(DecodeErrorKind::OutOfRange));
    assert_eq!(decoded::<Price>(&[0x09, 0x99, 0x9c]).unwrap().to_string(), "99.99");
    let mut d = Decoder::new(&[0, 0, 0, 1, 101], ByteOrder::Big, Version::V1_2);
    let error = Percents::decode(&mut d).unwrap_err();
    assert_eq!(error.to_string(), "number is out of the range of its IDL type (at byte 4)");
}

#[test]
fn what_is_missing_travels_as_an_empty_sequence() {
    let item = Item { note: Some("n".into()), rating: None, length: 0.5, ..Item::default() };
    assert_eq!(
        encoded(&item),
        [
            &[0, 0, 0, 1, 0, 0, 0, 2, b'n', 0][..],
            &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0],
            &0.5_f64.to_be_bytes()
        ]
        .concat()
    );
    assert_eq!(
        decoded::<Refused>(&[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]),
        Err(DecodeErrorKind::BoundExceeded)
    );
    round_trip(&item);
    round_trip(&Defaults::default());
    round_trip(&First { more: Some(5), ..First::default() });
    round_trip(&Refused { why: Some(String::new()), ..Refused::default() });
    round_trip(&Options::default());
    round_trip(&options());
    round_trip(&Lists::default());
    round_trip(&Lists {
        a: vec![HALF, Percent::max_value()],
        b: [HALF; 3],
        d: [(HALF, DEEP)].into(),
        e: vec![item.clone(), Item::default()],
        f: Bounded::new(vec![HALF]).unwrap(),
        ..Lists::default()
    });
    round_trip(&Fixed8 { a: HALF, b: 5 });
    round_trip(&[Choice::A(HALF), Choice::B(3.try_into().unwrap()), Choice::C(9, item)]);
    round_trip(&vec![Plain::default(); 3]);
}

fn options() -> Options {
    Options {
        a: Some(1),
        b: Some(Item::default()),
        c: Some(vec![1, 2].into()),
        d: Some([3, 4]),
        e: Some(None),
        f: None,
        g: Some(Any::new(5_i32).unwrap()),
        h: Some(HALF),
        i: None,
        j: Some(Colour::Red),
    }
}

#[test]
fn type_codes_match_the_wire() {
    let item = Item { note: Some("n".into()), ..Item::default() };
    let any = Any::new(&item).unwrap();
    assert_eq!(
        any.type_code().to_string(),
        "struct Shop::Item { sequence<string, 1> note; short count; Shop::Share discount; sequence<octet, 1> rating; double length; }"
    );
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut e = Encoder::new(order, Version::V1_2);
        any.encode(&mut e).unwrap();
        let octets = e.into_bytes();
        let received = Any::decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)).unwrap();
        assert_eq!(received.get::<Item>().unwrap(), item);
    }
    let refused = Any::new(&Refused { why: Some("x".into()), ..Refused::default() }).unwrap();
    assert_eq!(refused.get::<Refused>().unwrap().why.as_deref(), Some("x"));
    assert_eq!(percent_type_code().to_string(), "typedef octet Shop::Percent");
    // A number that any sender may have put in is checked where it is taken out.
    let wrong = Any::with_type(&percent_type_code(), 101_u8).unwrap();
    assert!(wrong.get::<Percent>().is_err() && wrong.get::<u8>().is_ok());
    assert_eq!(<Options as Typed>::type_code().member_count().unwrap(), 10);
}

#[test]
fn values_have_them_too() {
    let ticket = Ticket::default();
    assert_eq!((ticket.number, *ticket.rows, ticket.name.as_str(), *ticket.discount), (7, 2, "seat", 0));
    assert_eq!((*Level3::default().0, *Percentage::default().0), (3, 0));
    let remote: TillRef = activate(MyTill);
    for till in [collocated(&remote), remote] {
        run(async {
            let one =
                Ticket { discount: HALF, what: Item { note: None, ..Item::default() }, ..Ticket::default() };
            let (back, part) =
                till.stamp(one.clone(), Level3(9.try_into().unwrap()), Percentage(HALF)).await.unwrap();
            assert_eq!(*back.unwrap().get(), Ticket { number: 9, ..one });
            assert_eq!(*part.unwrap().get().0, 50);
        });
    }
}

struct MyTill;

impl TillServant for MyTill {
    async fn stamp(
        &self,
        one: Option<Value<Ticket>>,
        level: Option<Value<Level3>>,
        part: Option<Value<Percentage>>,
    ) -> Result<(Option<Value<Ticket>>, Option<Value<Percentage>>), SystemException> {
        let level = level.unwrap().get().0;
        let mut ticket = one.unwrap().get().clone();
        ticket.number = level.get();
        Ok((Some(Value::new(ticket)), part))
    }

    async fn price(
        &self,
        what: &Item,
        at: Percent,
        mut all: Percents,
    ) -> Result<(Percent, Percents, Options), till::PriceError> {
        if what.note.is_none() {
            return Err(Refused { why: None, ..Refused::default() }.into());
        }
        all.push(at);
        Ok((HALF, all, options()))
    }

    async fn pick(&self, index: Ranged<i32, 1, 3>, options: &Options) -> Result<Choice, SystemException> {
        assert_eq!(options.a, Some(1));
        Ok(Choice::B((index.get() + 3).try_into().unwrap()))
    }

    async fn rate(&self) -> Result<Percent, SystemException> {
        Ok(HALF)
    }

    async fn set_rate(&self, value: Percent) -> Result<(), SystemException> {
        assert_eq!(*value, 7);
        Ok(())
    }

    async fn sign(&self) -> Result<Ranged<i16, -1, 1>, SystemException> {
        Ok(Ranged::min_value())
    }

    async fn set_sign(&self, value: Ranged<i16, -1, 1>) -> Result<(), SystemException> {
        assert_eq!(*value, 0);
        Ok(())
    }

    async fn note(&self, _: Percent) -> Result<(), SystemException> {
        Ok(())
    }

    async fn count(&self) -> Result<i32, SystemException> {
        Ok(5)
    }
}

#[test]
fn calls_pass_them() {
    let remote: TillRef = activate(MyTill);
    for till in [collocated(&remote), remote] {
        run(async {
            let item = Item { note: Some(String::new()), ..Item::default() };
            let (at, all, rest) = till.price(&item, HALF, vec![Percent::default()]).await.unwrap();
            assert_eq!((at, all), (HALF, vec![Percent::default(), HALF]));
            assert_eq!(rest, options());
            let error = till.price(&Item::default(), HALF, Percents::default()).await.unwrap_err();
            assert!(matches!(error, till::PriceError::Refused(refused) if refused.why.is_none()));
            let picked = till.pick(2.try_into().unwrap(), &options()).await.unwrap();
            assert_eq!(picked, Choice::B(5.try_into().unwrap()));
            assert_eq!(till.rate().await.unwrap(), HALF);
            till.set_rate(7.try_into().unwrap()).await.unwrap();
            assert_eq!(*till.sign().await.unwrap(), -1);
            till.set_sign(0.try_into().unwrap()).await.unwrap();
            till.note(HALF).await.unwrap();
            assert_eq!(till.count().await.unwrap(), 5);
        });
    }
    let _ = WString::default();
}

idl! {
    @rust_name("renamed") module M {
        @rust_name("Broken") exception E2 { @rust_name("reason") string why; };
        @rust_name("Deed") interface I {
            @rust_name("Inner") struct T { @rust_name("first") long x; };
            @rust_name("perform") long f(@rust_name("how_often") in long a, @rust_name("back") out long b, out long c, out long d) raises (E2);
            @rust_name("weight") attribute long w;
        };
        @rust_name("Shade") enum E3 { @rust_name("Crimson") RED, GREEN };
        @rust_name("Either") union U switch (long) { case 1: @rust_name("Count") long a; default: string b; };
        @rust_name("Metres") typedef double D;
        @rust_name("LIMIT") const long C = 5;
        @rust_name("Packed") bitset B { @rust_name("low") bitfield<3> a; bitfield<5> b; };
        @rust_name("Permissions") bitmask K { @rust_name("MAY_READ") r, w };
        @rust_name("State") valuetype V {
            @rust_name("seen") public long s;
            @rust_name("compute") long g(@rust_name("input") in long a);
            @rust_name("build") factory make(@rust_name("start") in long a);
        };
        @rust_name("Boxed") valuetype W string;
    };
}

struct Deeds;

impl renamed::DeedServant for Deeds {
    async fn perform(
        &self,
        how_often: i32,
    ) -> Result<renamed::deed::PerformReply, renamed::deed::PerformError> {
        match how_often {
            0 => Err(renamed::Broken { reason: "none".into() }.into()),
            n => Ok(renamed::deed::PerformReply { result: n, back: 1, c: 2, d: 3 }),
        }
    }

    async fn weight(&self) -> Result<i32, SystemException> {
        Ok(renamed::LIMIT)
    }

    async fn set_weight(&self, value: i32) -> Result<(), SystemException> {
        assert_eq!(value, 4);
        Ok(())
    }
}

impl renamed::StateOps for renamed::State {
    fn compute(&self, input: i32) -> Result<i32, SystemException> {
        Ok(self.seen + input)
    }
}

impl renamed::StateFactory for renamed::State {
    fn build(start: i32) -> Result<renamed::State, SystemException> {
        Ok(renamed::State { seen: start })
    }
}

#[test]
fn whatever_has_a_name_in_rust_can_have_another() {
    use renamed::{Boxed, DeedRef, Either, Metres, Packed, Permissions, Shade, StateFactory, StateOps, deed};
    let deeds: DeedRef = activate(Deeds);
    run(async {
        let reply = deeds.perform(7).await.unwrap();
        assert_eq!((reply.result, reply.back), (7, 1));
        let error = deeds.perform(0).await.unwrap_err();
        assert!(matches!(error, deed::PerformError::Broken(broken) if broken.reason == "none"));
        deeds.set_weight(4).await.unwrap();
        assert_eq!(deeds.weight().await.unwrap(), 5);
    });
    assert_eq!(deed::Inner { first: 1 }, deed::Inner { first: 1 });
    assert_eq!((Shade::Crimson as u32, Shade::Green as u32), (0, 1));
    assert_eq!(Either::Count(5).discriminator(), 1);
    let metres: Metres = 1.5;
    assert_eq!(Any::new(metres).unwrap().get::<f64>().unwrap(), 1.5);
    assert_eq!(Packed::default().with_low(5).unwrap().bits(), 5);
    assert_eq!(Permissions::MAY_READ | Permissions::W, Permissions::all());
    assert_eq!(renamed::State::build(2).unwrap().compute(3).unwrap(), 5);
    assert_eq!(Boxed("b".into()), Boxed::from("b".to_owned()));
    // On the wire, and in type codes, are the names of the IDL.
    assert_eq!(<Shade as Typed>::type_code().to_string(), "enum M::E3 { RED, GREEN }");
    assert_eq!(renamed::metres_type_code().name().unwrap(), "D");
}
