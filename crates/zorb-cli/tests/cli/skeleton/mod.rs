//! `zorb idl skeleton`: what it prints is compiled here, for all types in all directions, and answers calls.
//!
//! `BLESS=1 cargo test -p zorb-cli --test cli skeleton` writes the files that are compiled anew.

// Items of skeletons are for other crates than this.
#![allow(dead_code)]

use std::io::Write;
use std::process::{Command, Stdio};

use zorb::SystemExceptionKind;
use zorb::testing::local;

mod page;

/// What the native type of the IDL is, for each of the two modules that have it.
#[derive(Clone, Debug, Default)]
pub struct Handle;

#[derive(Clone, Debug, Default)]
pub struct OtherHandle;

mod rich {
    zorb::idl!("tests/cli/skeleton/rich.idl", extern("::Rich::Handle" = crate::skeleton::Handle));

    include!("rich.rs");
}

/// Where the IDL is in another module than the skeleton.
mod apart {
    pub(crate) mod idl {
        zorb::idl!("tests/cli/skeleton/rich.idl", extern("::Rich::Handle" = crate::skeleton::OtherHandle));
    }

    include!("apart.rs");
}

mod names {
    // The IDL has a module `zorb` of its own.
    ::zorb::idl!("tests/cli/skeleton/names.idl");

    include!("names.rs");
}

/// Runs `zorb idl` with text on its standard input.
fn idl(args: &[&str], text: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .arg("idl")
        .args(args)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compares the output of `zorb idl skeleton` with a file that is compiled above.
fn is_what_is_printed(file: &str, args: &[&str]) {
    let path = format!("{}/tests/cli/skeleton/{file}", env!("CARGO_MANIFEST_DIR"));
    let run = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/skeleton"))
        .args(["idl", "skeleton"])
        .args(args)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    assert_eq!(printed, std::fs::read_to_string(&path).unwrap(), "{file}: BLESS=1 writes it anew");
}

#[test]
fn every_type_in_every_direction_is_printed_as_it_is_compiled_here() {
    let handle = "::Rich::Handle=crate::skeleton::Handle";
    is_what_is_printed("rich.rs", &["--extern", handle, "rich.idl"]);
    is_what_is_printed("apart.rs", &["--extern", handle, "--module", "self::idl", "rich.idl"]);
}

#[test]
fn names_of_the_idl_hide_no_types_of_signatures() {
    is_what_is_printed("names.rs", &["names.idl"]);
}

#[test]
fn interfaces_are_chosen_by_name() {
    servants_are(&["--interface", "Rich::Account"], &["AccountImpl;"]);
    servants_are(&["--interface", "Other::*", "--interface", "Rich::Texts"], &["TextsImpl;", "AccountImpl;"]);
}

fn servants_are(args: &[&str], expected: &[&str]) {
    let run = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/skeleton"))
        .args(["idl", "skeleton", "--extern", "::Rich::Handle=crate::skeleton::Handle", "rich.idl"])
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8(run.stdout).unwrap();
    let structs: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("pub struct ")).collect();
    assert_eq!(structs, expected);
}

#[test]
fn what_no_interface_has_is_an_error_of_the_options() {
    for (args, why) in [
        (
            &["--interface", "Rich::Nothing"][..],
            "there is no interface for remote objects with the name `Rich::Nothing`",
        ),
        (
            &["--interface", "Rich::Shown"],
            "there is no interface for remote objects with the name `Rich::Shown`",
        ),
        (&["--module", "a b"], "`a b` is not a Rust path"),
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_zorb"))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/skeleton"))
            .args(["idl", "skeleton", "--extern", "::Rich::Handle=crate::skeleton::Handle", "rich.idl"])
            .args(args)
            .output()
            .unwrap();
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(2) && run.stdout.is_empty() && told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn printed_servants_answer_no_implement() {
    let kinds: rich::rich::DerivedRef = local(rich::DerivedImpl);
    assert_eq!(kinds.count().await.unwrap_err().kind, SystemExceptionKind::NoImplement);
    let rich::rich::kinds::FailsError::System(error) = kinds.fails(1).await.unwrap_err() else { panic!() };
    assert_eq!(error.kind, SystemExceptionKind::NoImplement);
    let texts: apart::idl::rich::TextsRef = local(apart::TextsImpl);
    assert_eq!(texts.a_string("a", String::new()).await.unwrap_err().kind, SystemExceptionKind::NoImplement);
    let odd: names::zorb::ResultRef = local(names::ResultImpl);
    assert_eq!(
        odd.get(&names::Bytes::default(), None, "").await.unwrap_err().kind,
        SystemExceptionKind::NoImplement
    );
}
