//! IDL with Rust's own names, in a module and in a function: generated code compiles and runs, with all lints
//! enabled that a user may have. `tests/edition-*` compile this file in the earlier editions.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    unused,
    nonstandard_style,
    future_incompatible
)]
#![deny(rust_2018_idioms, rust_2018_compatibility, rust_2021_compatibility, rust_2024_compatibility)]
#![deny(unused_qualifications, single_use_lifetimes, trivial_casts, unused_results, let_underscore_drop)]
#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[allow(tail_expr_drop_order, if_let_rescope, let_underscore_drop, unused_results)]
#[path = "../orbs/mod.rs"]
mod orbs;

/// The IDL.
pub mod tricky {
    idl_macros::idl! {
        module Option {
            exception Result { };
            exception System { string why; };
            exception Err { string self; };
            struct Vec { string self; long type; };
            enum Box { Some, None, _Default };
            enum Keyword { super, crate, match };
            union _String switch (long) { case 1: Box match; case 2: case 3: string x; };
            interface Self {
                typedef sequence<octet> match;
                const long async = 1;
                attribute Vec type;
                void crate(in string self, in match data, in Self other, inout Vec v, out long l)
                    raises (Result, System, Err);
                void f(in Box a, in _String b, in Vec c);
            };
            interface Ok : Self { oneway void await(in long Err); };
            valuetype Flow;
            abstract valuetype Probe { long offer(in string self); attribute boolean Casts; };
            valuetype Value : Probe {
                struct Progress { long u32; };
                public Flow base; public long match, type; private Progress state; public string part[2];
                Value Implemented(in Value self, out Progress e) raises (Err);
                factory new(in long self, in Value Value) raises (Result, Err);
                factory _default();
            };
            valuetype Flow : Value, Probe { public sequence<Flow> d; };
            valuetype Bare { };
            abstract interface Values {
                Values clone(in Values either);
                Value operations(in long held, inout Probe upcast);
                attribute boolean get;
            };
            abstract interface Local : Values { void as_abstract(); };
            valuetype Skeleton supports Local { public Values Values; public sequence<Local> held; };
            interface W : Local { };
            valuetype Pin string;
            interface S : Ok { void N(in string e, in string d, in string request, in string servant); };
        };
        module u32 { module core { module std {
            struct u8 { octet o; short v; };
            const double f64 = 1.5;
            interface zorb { void v1(in string str); };
        }; }; };
        interface Send { };
        interface Sync : Send { };
        interface Clone : Sync { Clone as_object(in Clone from_object); void fmt(in long f); void narrow(); };
        struct i32 { long bool; };
        @zero_copy struct IntoBytes { double f64; long u8[2]; };
        typedef sequence<IntoBytes> Seq;
        typedef i32 usize;
        enum std { core };
        struct _Fixed { unsigned long long type; sequence<i32> super; };
    }
}

impl tricky::r#option::ProbeOps for tricky::r#option::Value {
    fn offer(&self, self_: &str) -> Result<i32, zorb::SystemException> {
        Ok(self_.len() as i32)
    }

    fn casts(&self) -> Result<bool, zorb::SystemException> {
        Ok(true)
    }

    fn set_casts(&self, _: bool) -> Result<(), zorb::SystemException> {
        Ok(())
    }
}

impl tricky::r#option::ValuesOps for tricky::r#option::Skeleton {
    fn clone(
        &self,
        either: Option<tricky::r#option::ValuesRef>,
    ) -> Result<Option<tricky::r#option::ValuesRef>, zorb::SystemException> {
        Ok(either)
    }

    fn operations(
        &self,
        held: i32,
        upcast: Option<giop_codec::value::Value<tricky::r#option::Probe>>,
    ) -> Result<
        (
            Option<giop_codec::value::Value<tricky::r#option::Value>>,
            Option<giop_codec::value::Value<tricky::r#option::Probe>>,
        ),
        zorb::SystemException,
    > {
        assert_eq!(held, 1);
        Ok((None, upcast))
    }

    fn get(&self) -> Result<bool, zorb::SystemException> {
        Ok(true)
    }

    fn set_get(&self, _: bool) -> Result<(), zorb::SystemException> {
        Ok(())
    }
}

impl tricky::r#option::LocalOps for tricky::r#option::Skeleton {
    fn as_abstract(&self) -> Result<(), zorb::SystemException> {
        Ok(())
    }
}

impl tricky::r#option::SkeletonOps for tricky::r#option::Skeleton {}

#[test]
fn values_may_be_named_as_rust_does() {
    use tricky::r#option::{LocalRef, Skeleton, ValuesRef};
    let handle = LocalRef::from(Skeleton::default());
    assert!(orbs::run(handle.get()).unwrap());
    assert_eq!(orbs::run(handle.clone(&handle)).unwrap(), Some(ValuesRef::from(&handle)));
    assert_eq!(
        orbs::run(handle.operations(1, None::<giop_codec::value::Value<Probe>>)).unwrap(),
        (None, None)
    );
    orbs::run(handle.as_abstract()).unwrap();
    use tricky::r#option::{Bare, Flow, Pin, Probe, ProbeOps, Value, ValueOps};
    let value = Value { r#match: 1, ..Value::default() };
    let flow = Flow { base: value.clone(), d: vec![Some(Flow::default().into())] };
    let handle = giop_codec::value::Value::new(value).upcast::<Probe>();
    assert_eq!(handle.get().operations::<dyn ProbeOps>().unwrap().offer("four").unwrap(), 4);
    assert!(handle.get().operations::<dyn ValueOps>().is_none());
    assert_eq!(giop_codec::value::Value::new(flow).upcast::<Value>().get().r#match, 1);
    assert_ne!(Pin(String::from("x")), Pin::default());
    assert_eq!(Bare, Bare::default());
}

/// The very same names as in another invocation beside it.
pub mod beside {
    idl_macros::idl! { module Option { struct None { long x; }; }; }
    idl_macros::idl! { module Result { struct None { long x; }; }; }
}

/// Inside of a function.
pub fn inside() -> f64 {
    idl_macros::idl! {
        module Bank {
            exception Poor { long x; };
            interface Account { readonly attribute double balance; void take(in double d) raises (Poor); };
        };
        typedef Bank::Account Konto;
    }

    struct Servant;

    impl bank::AccountServant for Servant {
        async fn balance(&self) -> Result<f64, zorb::SystemException> {
            Ok(1.5)
        }

        async fn take(&self, d: f64) -> Result<(), bank::account::TakeError> {
            if d > 0.0 { Err(bank::Poor { x: 1 }.into()) } else { Ok(()) }
        }
    }

    let account: KontoRef = orbs::activate(Servant);
    assert_eq!(orbs::run(account.take(1.0)), Err(konto::TakeError::Poor(bank::Poor { x: 1 })));
    orbs::run(account.balance()).unwrap()
}

/// A servant.
#[derive(Debug)]
pub struct Servant;

impl tricky::r#option::SelfServant for Servant {
    async fn r#type(&self) -> Result<tricky::r#option::Vec, zorb::SystemException> {
        Ok(tricky::r#option::Vec { self_: String::from("self"), r#type: 1 })
    }

    async fn set_type(&self, value: &tricky::r#option::Vec) -> Result<(), zorb::SystemException> {
        assert_eq!(value.r#type, 2);
        Ok(())
    }

    async fn crate_(
        &self,
        self_: &str,
        data: tricky::r#option::self_::Match,
        other: Option<tricky::r#option::SelfRef>,
        v: tricky::r#option::Vec,
    ) -> Result<(tricky::r#option::Vec, i32), tricky::r#option::self_::CrateError> {
        if self_ == "raise" {
            return Err(tricky::r#option::Err { self_: self_.to_owned() }.into());
        }
        assert!(other.is_some());
        Ok((v, data.len() as i32))
    }

    async fn f(
        &self,
        a: tricky::r#option::Box,
        b: &tricky::r#option::String,
        c: &tricky::r#option::Vec,
    ) -> Result<(), zorb::SystemException> {
        assert_eq!((a, b.discriminator(), c.r#type), (tricky::r#option::Box::None, 1, 3));
        Ok(())
    }
}

#[test]
fn idl_may_name_its_things_as_rust_does() {
    use tricky::r#option::{Box, SelfRef, Vec, self_};
    let object: SelfRef = orbs::activate(Servant);
    let value = orbs::run(object.r#type()).unwrap();
    orbs::run(object.set_type(&Vec { r#type: 2, ..value.clone() })).unwrap();
    let (back, length) = orbs::run(object.crate_("", vec![1, 2], &object, value.clone())).unwrap();
    assert_eq!((back, length), (value, 2));
    let error = orbs::run(object.crate_("raise", vec![], None, Vec::default())).unwrap_err();
    assert_eq!(error.to_string(), "Option::Err: self \"raise\"");
    assert!(matches!(error, self_::CrateError::Err(_)));
    let union = tricky::r#option::String::Match(Box::Some);
    orbs::run(object.f(Box::None, &union, &Vec { r#type: 3, ..Vec::default() })).unwrap();
    assert_eq!(self_::ASYNC, 1);
    assert_eq!(tricky::Usize { bool: 1 }, tricky::I32 { bool: 1 });
    assert_eq!(tricky::r#option::Keyword::Super as u8, 0);
    assert_eq!(tricky::u32::core::std::F64, 1.5);
    assert_eq!(beside::r#option::None { x: 1 }.x, beside::result::None { x: 1 }.x);
}

#[test]
fn idl_may_stand_in_a_function() {
    assert_eq!(inside(), 1.5);
}
