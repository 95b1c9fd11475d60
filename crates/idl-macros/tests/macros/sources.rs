//! The forms of the macro: tokens, text, files, each with and without options.

use idl_macros::idl;
use zorb::{Char, Reference};

mod text {
    idl_macros::idl!(
        r#"
        module Wide { const wstring TEXT = L"a\x62"; const char LETTER = '\101'; };
        "#,
        crate = crate::runtime
    );
}

mod tokens {
    idl_macros::idl! {
        crate = crate::runtime;
        /// Documented.
        module Plain { const wstring TEXT = L "ab"; const char LETTER = 'A'; };
    }
}

mod short_file {
    idl_macros::idl!(
        "tests/idl/clock.idl",
        no_warnings,
        crate = crate::runtime,
        rename("Clock::Settable::set_time" = "assign_time", "Clock::Time" = "Moment")
    );
}

mod long_file {
    idl_macros::idl!(
        crate = crate::runtime,
        file = "tests/idl/clock.idl",
        no_warnings,
        rename("Clock::Settable::set_time" = "assign_time"),
    );
}

mod chosen {
    idl_macros::idl! {
        crate = crate::runtime, non_nil("M::*");
        module M { interface I { }; struct S { I i; }; };
    }
}

/// What a macro passes on stands in groups with invisible delimiters.
macro_rules! passed_on {
    ($name:ident, $file:literal, $option:expr, $runtime:path) => {
        mod $name {
            idl_macros::idl!($file, no_warnings, include = [$option], crate = $runtime);
        }
    };
}

passed_on!(passed, "tests/idl/clock.idl", "tests/idl", crate::runtime);

/// Nothing in it.
mod empty {
    idl_macros::idl!();
}

#[test]
fn macros_may_pass_all_of_it_on() {
    assert_eq!(std::any::type_name::<passed::clock::Time>().rsplit("::").next(), Some("Time"));
}

#[test]
fn text_and_tokens_mean_the_same() {
    assert_eq!(text::wide::TEXT, tokens::plain::TEXT);
    let letters: [u8; 2] = [text::wide::LETTER.into(), tokens::plain::LETTER.into()];
    assert_eq!(letters, *b"AA");
}

#[test]
fn a_file_is_found_from_the_directory_of_the_crate() {
    use long_file::clock;
    assert_eq!(clock::NAME, "Uhr   €");
    assert_eq!((clock::BELL, clock::OCTAL), (Char(7), "AB"));
    assert_eq!(clock::FaceRef::REPOSITORY_ID, "IDL:times.example.org/Clock/Face:1.0");
    assert_eq!(
        clock::Time { hours: 1, minutes: 2 },
        clock::Time { hours: 1, ..clock::Time { hours: 0, minutes: 2 } }
    );
}

#[test]
fn names_can_be_chosen_where_the_file_cannot_be_edited() {
    struct Servant;
    impl short_file::clock::SettableServant for Servant {
        async fn time(&self) -> Result<short_file::clock::Moment, zorb::SystemException> {
            Ok(short_file::clock::Moment::default())
        }
        async fn set_time(&self, value: &short_file::clock::Moment) -> Result<(), zorb::SystemException> {
            assert_eq!(value.hours, 1);
            Ok(())
        }
        async fn assign_time(&self, t: &short_file::clock::Moment) -> Result<(), zorb::SystemException> {
            assert_eq!(t.hours, 2);
            Ok(())
        }
    }
    let clock: short_file::clock::SettableRef = crate::orbs::activate(Servant);
    let at = |hours| short_file::clock::Moment { hours, minutes: 0 };
    crate::orbs::run(clock.set_time(&at(1))).unwrap();
    crate::orbs::run(clock.assign_time(&at(2))).unwrap();
    assert_eq!(crate::orbs::run(clock.time()).unwrap(), at(0));
}

#[test]
fn options_stand_before_inline_idl() {
    struct Servant;
    impl chosen::m::IServant for Servant {}
    let i: chosen::m::IRef = crate::orbs::activate(Servant);
    let s = chosen::m::S { i: i.clone() };
    assert_eq!(s.i, i);
}

#[test]
fn the_macro_can_stand_in_a_function_more_than_once() {
    idl!("struct Here { long x; };", crate = crate::runtime);
    idl!("struct There { long y; };", crate = crate::runtime);
    assert_eq!(Here { x: 1 }.x, There { y: 1 }.y);
}
