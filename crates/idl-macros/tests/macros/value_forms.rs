//! Value types in unusual forms: as servants, inside interfaces, custom ones that fail, with annotations and
//! derives.

use std::collections::HashSet;

use crate::orbs::{activate, collocated, run};
use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::value::CustomMarshal;
use giop_codec::value::{Factories, GraphBuilder, Value, ValueForm};
use giop_codec::{ByteOrder, DecodeErrorKind, EncodeErrorKind, Version};
use giop_codec::{DecodeError, EncodeError};
use idl_macros::idl;
use zorb::SystemException;

idl! {
    derive(Eq, "F::Badge" = Hash, "F::Badge" = PartialOrd),
    rename("F::Cup::fill::howMuch" = "amount", "F::Cup::fill" = "pour", "F::Cup::size" = "volume", "F::Cup" = "Mug");

    module F {
        valuetype Step { public long by; private Step before; };
        valuetype Name string;
        interface Counter {
            exception Stuck { Step at; };
            readonly attribute long total;
            long count(in Step step, in Name name) raises (Stuck);
        };
        valuetype Tally supports Counter { public long start; };
        valuetype Badge string;
        struct Worn { Badge badge; Tally tally; };
        valuetype Cup {
            @default(3) public long size;
            @range(min = 1, max = 5) private short handles;
            @default("tea") public string content;
            public long fillLevel;
            factory fill(in long howMuch);
        };
        custom valuetype Blob {
            public long kind;
            public Blob again;
            public string text;
        };
        valuetype Shelf { public Blob first; public Cup cup; public Blob second; };
    };
}

use f::*;

fn factories() -> Factories {
    let mut factories = Factories::default();
    factories.register::<Blob>();
    factories.register::<Mug>();
    factories
}

fn encode(value: &impl CdrEncode, order: ByteOrder) -> Result<Bytes, EncodeError> {
    let mut e = Encoder::new(order, Version::V1_2);
    value.encode(&mut e).map(|()| e.into_bytes())
}

fn decode<T: CdrDecode>(octets: &Bytes, order: ByteOrder) -> Result<T, DecodeError> {
    let factories = factories();
    let mut d = Decoder::from_bytes(octets, order, Version::V1_2).with_context(&factories);
    let value = T::decode(&mut d)?;
    assert_eq!(d.remaining(), 0);
    Ok(value)
}

impl CounterServant for Tally {
    async fn total(&self) -> Result<i32, SystemException> {
        Ok(self.start)
    }

    async fn count(
        &self,
        step: Option<Value<Step>>,
        name: Option<Value<Name>>,
    ) -> Result<i32, counter::CountError> {
        match (&step, name) {
            (Some(step), Some(_)) => Ok(self.start + step.get().by),
            _ => Err(counter::Stuck { at: step }.into()),
        }
    }
}

#[test]
fn a_state_that_supports_an_interface_may_be_an_object_of_it() {
    let object: CounterRef = activate(Tally { start: 40 });
    for object in [collocated(&object), object] {
        assert_eq!(run(object.total()).unwrap(), 40);
        let step = Step { by: 2, before: None };
        assert_eq!(run(object.count(step.clone(), Name("n".to_owned()))).unwrap(), 42);
        let error = run(object.count(step.clone(), None::<Value<Name>>)).unwrap_err();
        assert_eq!(error, counter::CountError::Stuck(counter::Stuck { at: step.into() }));
    }
    // And a value still.
    assert_eq!(Value::new(Tally { start: 1 }).get().start, 1);
}

impl MugFactory for Mug {
    fn pour(amount: i32) -> Result<Mug, SystemException> {
        Ok(Mug { fill_level: amount, ..Mug::default() })
    }
}

#[test]
fn annotations_and_options_reach_states() {
    let mug = Mug::pour(4).unwrap();
    assert_eq!((mug.volume, mug.content.as_str(), mug.fill_level), (3, "tea", 4));
    assert_eq!(mug.handles.get(), 1);
    let octets = encode(&Some(Value::new(mug.clone())), ByteOrder::Big).unwrap();
    assert_eq!(decode::<Option<Value<Mug>>>(&octets, ByteOrder::Big).unwrap(), mug.into());
    // Tag, size, and six handles.
    let many = Bytes::from_static(&[
        0x7f, 0xff, 0xff, 0, 0, 0, 0, 3, 0, 6, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    assert!(decode::<Option<Value<Mug>>>(&many, ByteOrder::Big).is_err());

    // Derived where the user asked for it.
    fn is_eq<T: Eq>(_: &T) {}
    let worn = Worn { badge: Badge("x".to_owned()).into(), tally: None };
    is_eq(&worn);
    let badges: HashSet<Badge> = [Badge("a".to_owned()), Badge("a".to_owned())].into();
    assert!(badges.len() == 1 && Badge("a".to_owned()) < Badge("b".to_owned()));
}

/// Marshals a `Blob`, with the error that its `kind` selects.
impl CustomMarshal for Blob {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        if self.kind == 1 {
            return Err(EncodeErrorKind::Unrepresentable.into());
        }
        self.kind.encode(e)?;
        self.again.encode(e)?;
        self.text.encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.kind = CdrDecode::decode(d)?;
        self.again = CdrDecode::decode(d)?;
        match self.kind {
            2 => return Ok(()),
            3 => return Err(d.error(DecodeErrorKind::Malformed)),
            _ => self.text = CdrDecode::decode(d)?,
        }
        if self.kind == 4 {
            let _ = d.read_u8()?;
        }
        // Whatever is in another value is not there yet.
        assert_eq!(self.again.as_ref().map_or(0, |again| again.get().kind), 0);
        Ok(())
    }
}

fn blob(kind: i32) -> Value<Blob> {
    Value::new(Blob { kind, again: None, text: "text".to_owned() })
}

fn shelf(first: Value<Blob>) -> Option<Value<Shelf>> {
    Shelf { first: Some(first.clone()), cup: Mug::default().into(), second: Some(first) }.into()
}

#[test]
fn errors_of_custom_values_leave_other_values_intact() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let good = shelf(blob(0));
        let octets = encode(&good, order).unwrap();
        let back = decode::<Option<Value<Shelf>>>(&octets, order).unwrap();
        assert_eq!(back, good);
        let back = back.unwrap();
        assert!(back.get().first.as_ref().unwrap().is_same(back.get().second.as_ref().unwrap()));
        for cut in 0..octets.len() {
            assert!(decode::<Option<Value<Shelf>>>(&octets.slice(..cut), order).is_err(), "cut at {cut}");
        }
        assert_eq!(encode(&shelf(blob(1)), order).unwrap_err().kind, EncodeErrorKind::Unrepresentable);
        // What it leaves is skipped: the rest comes as it was.
        let back =
            decode::<Option<Value<Shelf>>>(&encode(&shelf(blob(2)), order).unwrap(), order).unwrap().unwrap();
        assert_eq!(back.get().first.as_ref().unwrap().get().text, "");
        assert_eq!(back.get().cup, Mug::default().into());
        // The value cannot read more than it wrote, though bytes follow.
        assert!(decode::<Option<Value<Shelf>>>(&encode(&shelf(blob(4)), order).unwrap(), order).is_err());
        let refused = decode::<Option<Value<Shelf>>>(&encode(&shelf(blob(3)), order).unwrap(), order);
        assert_eq!(refused.unwrap_err().kind, DecodeErrorKind::Malformed);
    }
}

#[test]
fn custom_values_may_hold_themselves() {
    let mut graph = GraphBuilder::new();
    let first = graph.reserve::<Blob>();
    let second = graph.add(Blob { kind: 6, again: Some(first.clone()), text: "second".to_owned() });
    assert!(graph.set(&first, Blob { kind: 5, again: Some(second), text: "first".to_owned() }));
    let ring = Some(graph.finish(&first));
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = encode(&ring, order).unwrap();
        // The outer one looks at the inner one before that is whole.
        let back = decode::<Option<Value<Blob>>>(&octets, order).unwrap();
        assert_eq!(back, ring);
        let back = back.unwrap();
        let second = back.get().again.clone().unwrap();
        assert!(second.get().again.as_ref().unwrap().is_same(&back));
        assert_eq!(format!("{back:?}"), format!("{:?}", ring.as_ref().unwrap()));
    }
    // A chain as deep as constructed types may be nested, and one deeper.
    let chain = |length| {
        (1..length).fold(blob(0), |again, _| Value::new(Blob { again: Some(again), ..Blob::default() }))
    };
    let octets = encode(&Some(chain(60)), ByteOrder::Big).unwrap();
    assert!(decode::<Option<Value<Blob>>>(&octets, ByteOrder::Big).is_ok());
    assert_eq!(encode(&Some(chain(80)), ByteOrder::Big).unwrap_err().kind, EncodeErrorKind::DepthLimit);
    assert_eq!(<Blob as ValueForm>::REPOSITORY_ID, "IDL:F/Blob:1.0");
}
