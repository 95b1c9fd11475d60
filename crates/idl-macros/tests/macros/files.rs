//! IDL in files: includes, macros, several files, and definitions that are elsewhere.

mod common {
    idl_macros::idl!("tests/idl/common/money.idl", no_warnings);
}

/// Everything that is included is compiled in.
mod whole {
    idl_macros::idl!("tests/idl/shop.idl", include = ["tests/idl/common"], define = ["MOST=5"], no_warnings);
}

/// What `money.idl` defines is in `common`.
mod referring {
    idl_macros::idl!(
        "tests/idl/shop.idl",
        "tests/idl/till.idl",
        include = "tests/idl/common",
        define = ["MOST=5 + 1"],
        extern("::Common" = crate::files::common::common),
        include_policy = extern,
        no_warnings,
    );
}

/// Single definitions, by their own paths.
mod single {
    idl_macros::idl!(
        r#"
        #include "tests/idl/common/money.idl"
        struct Both { Common::Money money; Common::Currency unit; };
        const Common::Currency MINE = Common::USD;
        "#,
        extern("Common::Money" = crate::files::common::common::Money, "::Common::Currency" = crate::files::common::common::Currency),
        include_policy = extern,
        no_warnings,
    );
}

#[test]
fn included_definitions_are_compiled_in() {
    use whole::{common, shop};
    let item = shop::Item { name: "x".into(), price: common::Money { cents: 5 }, ..Default::default() };
    assert_eq!((item.price.cents, shop::LIMIT), (5, 5));
    assert_eq!(common::USUAL, common::Currency::Eur);
    assert_eq!(common::Extra::default().unit, common::Currency::Eur);
}

#[test]
fn included_definitions_are_referred_to() {
    use referring::{common, shop, till};
    // The very types of the other invocation.
    let money = crate::files::common::common::Money { cents: 7 };
    let item = shop::Item { name: "x".into(), price: money.clone(), steps: vec![money.clone()] };
    let items: till::Items = vec![item];
    assert_eq!((items[0].price.cents, shop::LIMIT), (7, 6));
    // What the file itself adds to the module is here.
    assert_eq!(common::Extra { money, ..Default::default() }.money.cents, 7);
    let both = single::Both { unit: single::MINE, ..Default::default() };
    assert_eq!(both.unit, crate::files::common::common::Currency::Usd);
}

#[test]
fn ids_keep_the_prefixes_of_their_files() {
    use zorb::Reference;
    assert_eq!(common::common::NamedRef::REPOSITORY_ID, "IDL:common.example.org/Common/Named:1.0");
    assert_eq!(referring::shop::StallRef::REPOSITORY_ID, "IDL:shop.example.org/Shop/Stall:1.0");
}

/// A servant of an interface whose base is elsewhere serves the base as well.
struct Stall;

impl crate::files::common::common::NamedServant for Stall {
    async fn name(&self) -> Result<String, zorb::SystemException> {
        Ok("stall".into())
    }

    async fn cost(
        &self,
        _kind: crate::files::common::common::named::Kind,
        _unit: crate::files::common::common::Currency,
    ) -> Result<crate::files::common::common::Money, crate::files::common::common::named::CostError> {
        Err(crate::files::common::common::Refused::default().into())
    }
}

impl referring::shop::StallServant for Stall {
    async fn pay(
        &self,
        sum: &crate::files::common::common::Money,
        what: referring::shop::Item,
    ) -> Result<
        (crate::files::common::common::Amounts, referring::shop::Item),
        referring::shop::stall::PayError,
    > {
        Ok((vec![sum.clone()], what))
    }

    async fn other(
        &self,
        _kind: crate::files::common::common::named::Kind,
    ) -> Result<Option<crate::files::common::common::NamedRef>, zorb::SystemException> {
        Ok(None)
    }
}

#[test]
fn references_convert_to_bases_that_are_elsewhere() {
    fn converts<D: Into<crate::files::common::common::NamedRef>>() {}
    fn serves<S: zorb::Reference>()
    where
        referring::shop::StallRef: Into<S>,
    {
    }
    converts::<referring::shop::StallRef>();
    serves::<crate::files::common::common::NamedRef>();
    fn is_servant<S: crate::files::common::common::NamedServant + referring::shop::StallServant>(
        _servant: S,
    ) {
    }
    is_servant(Stall);
    // The name of the base's type is known in the derived interface's scope.
    assert_eq!(referring::shop::stall::Kind::Large, crate::files::common::common::named::Kind::Large);
}
