//! IDL as sites have it: names that are the same in Rust, numbers of enumerators, native types.

use crate::orbs::{activate, collocated, run};
use zorb::{Any, SystemException};

idl_macros::idl! {
    no_warnings;

    native UserExceptionBase;

    module Field {
        struct Both { long aB; long a_b; };
        enum Colour { @value(10) red, green, @value(-3) blue };
        exception Broken { long code; };
        interface Writer { long write_records(in long n); };
        interface Sheet : Writer {
            attribute long log_level;
            long setLogLevel();
            long writeRecords(in long n);
        };
        valuetype Holder {
            void raise_exception() raises (UserExceptionBase);
            void raise_one() raises (Broken, UserExceptionBase);
        };
    };
}

struct Paper;

impl field::WriterServant for Paper {
    async fn write_records(&self, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}

impl field::SheetServant for Paper {
    async fn log_level(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    async fn set_log_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn set_log_level_(&self) -> Result<i32, SystemException> {
        Ok(2)
    }

    async fn write_records_(&self, n: i32) -> Result<i32, SystemException> {
        Ok(10 * n)
    }
}

#[test]
fn of_names_that_are_the_same_in_rust_the_later_one_has_an_underscore() {
    let both = field::Both { a_b: 1, a_b_: 2 };
    assert_eq!(both.a_b + both.a_b_, 3);
    let remote: field::SheetRef = activate(Paper);
    for sheet in [collocated(&remote), remote] {
        assert_eq!(run(sheet.write_records(3)).unwrap(), 3);
        assert_eq!(run(sheet.write_records_(3)).unwrap(), 30);
        run(sheet.set_log_level(5)).unwrap();
        assert_eq!(run(sheet.set_log_level_()).unwrap(), 2);
    }
}

#[test]
fn enumerators_have_the_numbers_of_their_annotations_beside_their_positions() {
    use field::Colour::{Blue, Green, Red};
    assert_eq!([Red, Green, Blue].map(field::Colour::value), [10, 11, -3]);
    assert_eq!([Red, Green, Blue].map(|colour| colour as u32), [0, 1, 2]);
}

#[test]
fn a_native_type_that_is_raised_is_any_user_exception() {
    let raised = field::holder::RaiseExceptionError::User(Any::default());
    assert!(!raised.to_string().is_empty());
    let one: field::holder::RaiseOneError = field::Broken { code: 3 }.into();
    assert_eq!(one, field::holder::RaiseOneError::Broken(field::Broken { code: 3 }));
}
