//! Local interfaces and native types: objects that are called without an ORB and never leave the process.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use zorb::prelude::*;
use zorb::testing;
use zorb::wire::{ByteOrder, Version};
use zorb::{TcKind, minor};

/// Native types only need to be `Send`.
#[derive(Debug, PartialEq)]
pub struct Cookie(pub Box<i32>);

zorb::idl! {
    extern("::Zip::Cookie" = crate::local_objects::Cookie);
    module Zip {
        typedef sequence<octet> Buffer;
        exception Failed { string why; };
        native Cookie;
        typedef Cookie Biscuit;

        local interface Factory;
        typedef sequence<Factory> Factories;
        struct Entry { string name; Factory make; };
        exception Busy { Factory other; };

        /// A compressor of bytes.
        local interface Compressor {
            void compress(in Buffer source, inout Buffer target) raises (Failed);
            readonly attribute Factory maker;
            attribute long level;
            string<4> rename(in string<4> name);
            oneway void note(in long amount);
            Cookie bake(in Biscuit half, inout Cookie other, out Biscuit third);
        };

        interface Counted {
            long count();
            string describe(in long depth) raises (Failed);
        };

        /// Derived from interfaces of both kinds.
        local interface Counting : Compressor, Counted {
            void reset();
        };

        local interface Factory {
            const short BEST = 9;
            Compressor make(in long level) raises (Busy);
            Factories all(in Factories more, in Entry entry);
        };

        interface Oven {
            long heat(in long degrees);
            Cookie bake(in Cookie dough);
            void put(in Biscuit dough);
            Biscuit take();
        };
    };
}

#[derive(Default)]
struct Zipper {
    level: AtomicI32,
    noted: AtomicI32,
    calls: AtomicI32,
}

impl zip::CompressorServant for Zipper {
    async fn compress(&self, source: Bytes, target: Bytes) -> Result<Bytes, zip::compressor::CompressError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if source.is_empty() {
            return Err(zip::Failed { why: "empty".into() }.into());
        }
        Ok([target, source.slice(..1)].concat().into())
    }
    async fn maker(&self) -> Result<Option<zip::FactoryRef>, SystemException> {
        Ok(None)
    }
    async fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed))
    }
    async fn set_level(&self, value: i32) -> Result<(), SystemException> {
        self.level.store(value, Ordering::Relaxed);
        Ok(())
    }
    async fn rename(&self, name: &str) -> Result<Bounded<String, 4>, SystemException> {
        Ok(Bounded::new(name.to_uppercase()).unwrap())
    }
    async fn note(&self, amount: i32) -> Result<(), SystemException> {
        self.noted.fetch_add(amount, Ordering::Relaxed);
        Ok(())
    }
    async fn bake(&self, half: Cookie, other: Cookie) -> Result<(Cookie, Cookie, Cookie), SystemException> {
        Ok((Cookie(Box::new(*half.0 + *other.0)), half, other))
    }
}

impl zip::CountedServant for Zipper {
    async fn count(&self) -> Result<i32, SystemException> {
        Ok(self.calls.load(Ordering::Relaxed))
    }
    async fn describe(&self, depth: i32) -> Result<String, zip::counted::DescribeError> {
        match depth {
            0 => Err(zip::Failed { why: "no depth".into() }.into()),
            _ => Ok(format!("{depth}")),
        }
    }
}

impl zip::CountingServant for Zipper {
    async fn reset(&self) -> Result<(), SystemException> {
        self.calls.store(0, Ordering::Relaxed);
        Ok(())
    }
}

struct Making;

impl zip::FactoryServant for Making {
    async fn make(&self, level: i32) -> Result<Option<zip::CompressorRef>, zip::factory::MakeError> {
        if level > i32::from(zip::factory::BEST) {
            return Err(zip::Busy { other: Some(zip::FactoryRef::of(Making)) }.into());
        }
        let zipper = zip::CountingRef::of(Zipper { level: level.into(), ..Zipper::default() });
        Ok(Some(zipper.into()))
    }
    async fn all(
        &self,
        more: &[Option<zip::FactoryRef>],
        entry: &zip::Entry,
    ) -> Result<Vec<Option<zip::FactoryRef>>, SystemException> {
        Ok(more.iter().cloned().chain([entry.make.clone()]).collect())
    }
}

#[tokio::test]
async fn calls_go_straight_to_the_object() {
    let factory = zip::FactoryRef::of(Making);
    let zipper = factory.make(3).await.unwrap().unwrap();
    assert_eq!(zipper.level().await.unwrap(), 3);
    zipper.set_level(5).await.unwrap();
    assert_eq!(zipper.level().await.unwrap(), 5);
    let pressed = zipper.compress(&b"hello"[..], &b"x"[..]).await.unwrap();
    assert_eq!(&pressed[..], b"xh");
    match zipper.compress(Bytes::new(), Bytes::new()).await {
        Err(zip::compressor::CompressError::Failed(failed)) => assert_eq!(failed.why, "empty"),
        other => panic!("{other:?}"),
    }
    zipper.note(2).await.unwrap();
    zipper.note(3).await.unwrap();
    let servant: &Zipper = zipper.servant().unwrap();
    assert_eq!(servant.noted.load(Ordering::Relaxed), 5);
    assert!(zipper.servant::<Making>().is_none());
    assert_eq!(zipper.maker().await.unwrap(), None);
    let crate::local_objects::zip::factory::MakeError::Busy(busy) = factory.make(10).await.unwrap_err()
    else {
        panic!()
    };
    assert!(busy.other.unwrap().make(1).await.unwrap().is_some());
}

#[tokio::test]
async fn bounds_hold_as_for_calls_that_travel() {
    let zipper = zip::CompressorRef::of(Zipper::default());
    assert_eq!(*zipper.rename("abc").await.unwrap(), "ABC");
    let error = zipper.rename("abcde").await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
}

#[tokio::test]
async fn references_are_equal_where_the_object_is_one() {
    let a = zip::CountingRef::of(Zipper::default());
    let b = zip::CountingRef::of(Zipper::default());
    assert_eq!(a, a.clone());
    assert_ne!(a, b);
    assert_eq!(HashSet::from([a.clone(), a.clone(), b]).len(), 2);
    let base: zip::CompressorRef = (&a).into();
    assert_eq!(base, zip::CompressorRef::from(a.clone()));
    let maybe: Option<zip::CompressorRef> = (&a).into();
    assert_eq!(maybe, Some(base.clone()));
    assert_eq!(base.narrow::<zip::CountingRef>(), Some(a.clone()));
    assert_eq!(base.narrow::<zip::FactoryRef>(), None);
    // Activated as a base, it only has the base's interface.
    assert_eq!(zip::CompressorRef::of(Zipper::default()).narrow::<zip::CountingRef>(), None);
    assert_eq!(<zip::CountingRef as LocalReference>::REPOSITORY_ID, "IDL:Zip/Counting:1.0");
    assert!(format!("{a:?}").starts_with("CountingRef(0x"));
}

/// Code that is generic over the clients of a non-local interface.
async fn ask(counted: &impl zip::Counted) -> i32 {
    counted.count().await.unwrap()
}

#[tokio::test]
async fn inherited_operations_of_plain_interfaces_are_local_too() {
    let counting = zip::CountingRef::of(Zipper::default());
    counting.compress(&b"a"[..], Bytes::new()).await.unwrap();
    assert_eq!(ask(&counting).await, 1);
    counting.reset().await.unwrap();
    assert_eq!(counting.count().await.unwrap(), 0);
    assert_eq!(counting.describe(4).await.unwrap(), "4");
    assert!(matches!(counting.describe(0).await, Err(zip::counted::DescribeError::Failed(_))));
}

#[tokio::test]
async fn local_references_stand_in_structs_and_sequences() {
    let factory = zip::FactoryRef::of(Making);
    let other = zip::FactoryRef::of(Making);
    let entry = zip::Entry { name: "x".into(), make: Some(other.clone()) };
    assert_eq!(entry, entry.clone());
    assert_eq!(zip::Entry::default().make, None);
    let all = factory.all(&[None, Some(factory.clone())], &entry).await.unwrap();
    assert_eq!(all, [None, Some(factory), Some(other)]);
}

#[test]
fn nothing_that_holds_one_is_marshalled() {
    let factory = zip::FactoryRef::of(Making);
    let entry = zip::Entry { name: "x".into(), make: Some(factory.clone()) };
    let e = &mut Encoder::new(ByteOrder::Big, Version::V1_2);
    let results =
        [entry.encode(e), factory.encode(e), Some(factory).encode(e), None::<zip::FactoryRef>.encode(e)];
    for result in results {
        let error = SystemException::from(result.unwrap_err());
        assert_eq!(error.kind, SystemExceptionKind::Marshal);
        assert_eq!(error.minor, minor::MARSHAL_LOCAL_OBJECT);
        assert_eq!(error.completed, CompletionStatus::No);
    }
    let octets = [0; 64];
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    let error = zip::Entry::decode(&mut d).unwrap_err().to_system_exception(CompletionStatus::Yes);
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::Marshal, minor::MARSHAL_LOCAL_OBJECT));
}

#[test]
fn type_codes_say_that_a_type_is_local_or_native() {
    let biscuit = zip::biscuit_type_code();
    assert_eq!((biscuit.kind(), biscuit.id()), (TcKind::Alias, Ok("IDL:Zip/Biscuit:1.0")));
    let cookie = biscuit.content_type().unwrap();
    assert_eq!((cookie.kind(), cookie.id()), (TcKind::Native, Ok("IDL:Zip/Cookie:1.0")));
    let factory = zip::FactoryRef::type_code();
    assert_eq!((factory.kind(), factory.id()), (TcKind::LocalInterface, Ok("IDL:Zip/Factory:1.0")));
    let member = zip::Entry::type_code().member_type(1).unwrap();
    assert_eq!(member, factory);
    Any::new(zip::Entry::default()).map(drop).unwrap_err();
}

#[derive(Default)]
struct Kitchen(Mutex<Option<Cookie>>);

impl zip::OvenServant for Kitchen {
    async fn heat(&self, degrees: i32) -> Result<i32, SystemException> {
        Ok(degrees + 1)
    }
    async fn bake(&self, dough: Cookie) -> Result<Cookie, SystemException> {
        Ok(Cookie(Box::new(*dough.0 * 2)))
    }
    async fn put(&self, dough: Cookie) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = Some(dough);
        Ok(())
    }
    async fn take(&self) -> Result<Cookie, SystemException> {
        Ok(self.0.lock().unwrap().take().unwrap_or(Cookie(Box::new(0))))
    }
}

#[tokio::test]
async fn native_values_pass_by_value_inside_of_a_process() {
    let zipper = zip::CompressorRef::of(Zipper::default());
    let (sum, other, third) = zipper.bake(Cookie(Box::new(1)), Cookie(Box::new(2))).await.unwrap();
    assert_eq!((*sum.0, *other.0, *third.0), (3, 1, 2));
    let oven = testing::local::<zip::OvenRef, _>(Kitchen::default());
    assert_eq!(*oven.bake(Cookie(Box::new(4))).await.unwrap().0, 8);
    oven.put(Cookie(Box::new(7))).await.unwrap();
    assert_eq!(*oven.take().await.unwrap().0, 7);
}

#[tokio::test]
async fn native_values_do_not_travel() {
    let testing::Pair { client, server, .. } = &testing::pair();
    let oven: zip::OvenRef = server.activate_named("Oven", Kitchen::default()).unwrap();
    let oven: zip::OvenRef = client.resolve(&oven.to_string()).await.unwrap();
    assert_eq!(oven.heat(1).await.unwrap(), 2);
    for (error, completed) in [
        (oven.bake(Cookie(Box::new(4))).await.unwrap_err(), CompletionStatus::No),
        (oven.put(Cookie(Box::new(4))).await.unwrap_err(), CompletionStatus::No),
        (oven.take().await.unwrap_err(), CompletionStatus::Yes),
    ] {
        assert_eq!((error.kind, error.minor), (SystemExceptionKind::Marshal, minor::MARSHAL_LOCAL_OBJECT));
        assert_eq!(error.completed, completed);
    }
    assert_eq!(oven.heat(2).await.unwrap(), 3);
}
