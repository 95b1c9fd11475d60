//! The options `derive` and `default_bodies`, `extern` with paths of all kinds, and names in comments.

use std::collections::BTreeSet;

use crate::orbs::{activate, collocated, run};
use zorb::{CompletionStatus, SystemException, SystemExceptionKind};

mod derives {
    pub(crate) use std::cmp::PartialOrd as Ordered;

    idl_macros::idl! {
        crate = crate::runtime,
        derive(PartialOrd, Eq, std::fmt::Debug, Default, "M::Key" = Ord, "::M::P*" = ::core::marker::Copy);
        module M {
            // Names of traits are names like all others.
            struct Ord { long x; };
            struct Key { string name; long number; };
            struct Point { short x; short y; };
            struct Eq { sequence<Key> keys; };
            union Paper switch (boolean) { case TRUE: long number; case FALSE: Point place; };
            exception PartialOrd { long code; };
            enum Color { RED, GREEN };
            interface Keys { Key first(); struct Inner { Color c; }; };
        };
    }

    pub(crate) mod relative {
        idl_macros::idl! {
            crate = crate::runtime, derive("A::B::Deep" = super::Ordered, "Flat" = self::Also);
            module A { module B { struct Deep { long x; }; }; };
            struct Flat { long x; };
        }

        pub(crate) use super::Ordered as Also;
    }
}

mod bodies {
    idl_macros::idl! {
        default_bodies, crate = crate::runtime;
        module Bank {
            exception Broke { long missing; };
            typedef sequence<long> Sums;
            struct Slip { long sum; };
            interface Base { readonly attribute long count; };
            interface Account : Base {
                attribute string owner;
                long take(in string why, in Sums sums, inout Slip slip, out long left) raises (Broke);
                oneway void note(in string text);
            };
        };
    }
}

mod some_bodies {
    idl_macros::idl! {
        default_bodies("Bank::Account::owner", "Shop*"), crate = crate::runtime;
        module Bank { interface Account { attribute string owner; long take(); }; };
        interface ShopWindow { void look(); };
    }
}

mod alone {
    // The crate `zorb` of this test.
    mod zorb {
        pub(crate) use ::zorb::__private;
    }

    idl_macros::idl! { default_bodies, crate = crate::options::alone::zorb; interface Idle { void f(); }; }
}

/// What has other Rust names than the IDL would give it.
mod vendor {
    pub(crate) mod odd {
        idl_macros::idl! {
            crate = crate::runtime, rename("Money" = "Cash", "Teller" = "Clerk", "Currency" = "Unit");
            struct Money { long cents; };
            enum Currency { EUR, USD };
            interface Teller { struct Slip { long number; }; Slip serve(); };
        }
    }

    pub(crate) mod near {
        // `self` and `super` are those of the place where the macro stands, however deep a use is.
        idl_macros::idl!(
            r#"
            #include "tests/idl/teller.idl"
            module A { module B {
                struct Pay { Money sum; Currency unit; Teller who; Teller::Slip slip; };
                interface Head : Teller { Money all(in Money sum, in Currency unit, in Teller::Slip slip); };
            }; };
            typedef Money Same;
            const Currency MINE = USD;
            "#,
            extern(
                "Money" = super::odd::Cash,
                "Currency" = super::super::vendor::odd::Unit,
                "Teller" = self::inner::Clerk,
            ),
            include_policy = extern,
            crate = crate::runtime,
        );

        pub(crate) mod inner {
            pub(crate) use super::super::odd::*;
        }
    }
}

mod comments {
    idl_macros::idl!(
        r#"
        //@rust_name("Konto")
        interface Account {
            attribute long a;
            void set_a();
            //@rust_name("take_out") @non_nil
            Account take(//@rust_name("how_much")
                         in long sum);
            // @rust_name("no annotation but for the blank")
            //@key is of others
            void plain();
        };
        "#,
        crate = crate::runtime,
        rename("Account::set_a" = "assign_a"),
    );
}

#[test]
fn types_derive_what_is_asked_for_and_nothing_twice() {
    use derives::m::{Color, Eq, Key, Ord, Paper, PartialOrd, Point};
    let key = |name: &str| Key { name: name.into(), number: 1 };
    assert_eq!(BTreeSet::from([key("b"), key("a")]).first().unwrap().name, "a");
    assert!(Ord { x: 1 } < Ord { x: 2 } && Eq { keys: vec![] } < Eq { keys: vec![key("a")] });
    let point = Point { x: 1, y: 2 };
    let (paper, moved) = (Paper::Place(point), point);
    let (first, second) = (paper, paper);
    assert!(first == second && moved == point && Paper::Number(7) < paper);
    let error = PartialOrd { code: 1 };
    let copy = error;
    assert!(error == copy && Color::Red < Color::Green);
    assert!(derives::m::keys::Inner { c: Color::Red } < derives::m::keys::Inner { c: Color::Green });
    assert!(derives::relative::a::b::Deep { x: 1 } < derives::relative::a::b::Deep { x: 2 });
    assert!(derives::relative::Flat { x: 1 } < derives::relative::Flat { x: 2 });
}

struct Lazy;

impl bodies::bank::BaseServant for Lazy {
    async fn count(&self) -> Result<i32, SystemException> {
        Ok(5)
    }
}
impl bodies::bank::AccountServant for Lazy {}
impl alone::IdleServant for Lazy {}
impl some_bodies::ShopWindowServant for Lazy {}
impl some_bodies::bank::AccountServant for Lazy {
    async fn take(&self) -> Result<i32, SystemException> {
        Ok(1)
    }
}

fn assert_not_implemented(error: &SystemException) {
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::NoImplement, CompletionStatus::No));
}

// clause: exc.kind.no_implement
#[test]
fn what_a_servant_leaves_out_is_not_implemented() {
    use bodies::bank::{AccountRef, Slip, account::TakeError};
    let remote: AccountRef = activate(Lazy);
    for account in [collocated(&remote), remote] {
        assert_eq!(run(account.count()).unwrap(), 5);
        assert_not_implemented(&run(account.owner()).unwrap_err());
        assert_not_implemented(&run(account.set_owner("x")).unwrap_err());
        match run(account.take("x", vec![1], Slip { sum: 1 })) {
            Err(TakeError::System(error)) => assert_not_implemented(&error),
            other => panic!("{other:?}"),
        }
    }
    let some: some_bodies::bank::AccountRef = activate(Lazy);
    assert_eq!(run(some.take()).unwrap(), 1);
    assert_not_implemented(&run(some.owner()).unwrap_err());
    let window: some_bodies::ShopWindowRef = activate(Lazy);
    assert_not_implemented(&run(window.look()).unwrap_err());
    let idle: alone::IdleRef = activate(Lazy);
    assert_not_implemented(&run(idle.f()).unwrap_err());
}

struct Clerk;

impl vendor::odd::ClerkServant for Clerk {
    async fn serve(&self) -> Result<vendor::odd::clerk::Slip, SystemException> {
        Ok(vendor::odd::clerk::Slip { number: 1 })
    }
}

impl vendor::near::a::b::HeadServant for Clerk {
    async fn all(
        &self,
        sum: &vendor::odd::Cash,
        _unit: vendor::odd::Unit,
        _slip: &vendor::odd::clerk::Slip,
    ) -> Result<vendor::odd::Cash, SystemException> {
        Ok(sum.clone())
    }
}

#[test]
fn what_is_elsewhere_has_the_name_that_its_path_ends_with() {
    let head: vendor::near::a::b::HeadRef = activate(Clerk);
    let who: vendor::odd::ClerkRef = head.clone().into();
    let sum: vendor::near::Same = vendor::odd::Cash { cents: 9 };
    let slip = run(who.serve()).unwrap();
    let pay = vendor::near::a::b::Pay { sum, unit: vendor::near::MINE, who: Some(who), slip };
    assert_eq!(pay.unit, vendor::odd::Unit::Usd);
    assert_eq!(run(head.all(&pay.sum, pay.unit, &pay.slip)).unwrap(), pay.sum);
}

struct Konto;

impl comments::KontoServant for Konto {
    async fn a(&self) -> Result<i32, SystemException> {
        Ok(1)
    }
    async fn set_a(&self, _value: i32) -> Result<(), SystemException> {
        Ok(())
    }
    async fn assign_a(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn take_out(&self, how_much: i32) -> Result<comments::KontoRef, SystemException> {
        let _ = how_much;
        Err(SystemException::no_resources())
    }
    async fn plain(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn names_in_comments_count() {
    let konto: comments::KontoRef = activate(Konto);
    run(konto.assign_a()).unwrap();
    assert_eq!(run(konto.take_out(3)).unwrap_err().kind, SystemExceptionKind::NoResources);
}
