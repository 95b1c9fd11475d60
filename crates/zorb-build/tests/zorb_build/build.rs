//! What a build script writes, prints and reports.

use std::path::Path;

use zorb_build::{Config, IncludePolicy};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// Messages with the folder taken out.
fn plain(folder: &Path, text: impl ToString) -> String {
    text.to_string().replace(&*folder.to_string_lossy(), "DIR")
}

const BASE: (&str, &str) = ("inc/base.idl", "module Base { struct Money { long cents; }; };");
const BANK: (&str, &str) = (
    "bank.idl",
    "#include <base.idl>\ninterface Account { attribute Base::Money money; void put(in Base::Money sum); };\n#warning soon gone",
);

#[test]
fn the_output_stands_in_the_folder_and_cargo_watches_every_file() {
    let folder =
        folder(&[BASE, BANK, ("shop.idl", "#include \"bank.idl\"\nstruct Shop { Account a[LIMIT]; };")]);
    let at = |name: &str| folder.path().join(name);
    let config = Config::new()
        .include(at("inc"))
        .files([at("shop.idl"), at("bank.idl")])
        .define("LIMIT=3")
        .output("all");
    let output = config.clone().generate().unwrap();
    let lines: Vec<String> = output.cargo_lines.iter().map(|line| plain(folder.path(), line)).collect();
    assert_eq!(
        lines,
        [
            "cargo:rerun-if-changed=DIR/shop.idl",
            "cargo:rerun-if-changed=DIR/bank.idl",
            "cargo:rerun-if-changed=DIR/inc/base.idl",
            "cargo:warning=DIR/bank.idl:3:1: soon gone",
        ]
    );
    assert!(
        output.rust.contains("pub struct Shop") && output.rust.contains("pub struct Money"),
        "{}",
        output.rust
    );
    config.clone().out_dir(folder.path()).compile().unwrap();
    let written = at("all.rs");
    assert_eq!(std::fs::read_to_string(&written).unwrap(), output.rust);

    // A file that would not change is not written, so that nothing is built again.
    let mut permissions = std::fs::metadata(&written).unwrap().permissions();
    permissions.set_readonly(true);
    let before = std::fs::metadata(&written).unwrap().modified().unwrap();
    std::fs::set_permissions(&written, permissions).unwrap();
    config.out_dir(folder.path()).compile().unwrap();
    assert_eq!(std::fs::metadata(&written).unwrap().modified().unwrap(), before);
}

#[test]
fn included_definitions_can_be_elsewhere() {
    let folder = folder(&[BASE, BANK]);
    let at = |name: &str| folder.path().join(name);
    let config = Config::new().include(at("inc")).file(at("bank.idl")).include_policy(IncludePolicy::Extern);
    let output =
        config.clone().external("::Base", "::common::base").runtime("crate::orb").generate().unwrap();
    assert_eq!(output.name, "bank");
    assert!(output.rust.contains("::common::base::Money") && !output.rust.contains("pub struct Money"));
    assert!(output.rust.contains("crate::orb::__private::v1") && !output.rust.contains("::zorb::"));
    let error = config.generate().unwrap_err();
    insta::assert_snapshot!("extern_is_missing", plain(folder.path(), error));
}

#[test]
fn types_derive_more_and_servants_need_less() {
    let folder =
        folder(&[("a.idl", "struct A { long x; }; struct B { A a; }; interface I { void f(); void g(); };")]);
    let config = Config::new().file(folder.path().join("a.idl"));
    let output = config
        .clone()
        .derive("serde::Serialize")
        .derive_for("B", "Ord")
        .default_bodies_of("I::g")
        .generate()
        .unwrap();
    assert_eq!(output.rust.matches("#[derive(serde::Serialize").count(), 2, "{}", output.rust);
    assert!(output.rust.contains("#[derive(serde::Serialize, ::core::cmp::Ord)]"), "{}", output.rust);
    assert_eq!(output.rust.matches("SystemException::no_implement()").count(), 1);
    let output = config.clone().default_bodies().generate().unwrap();
    assert_eq!(output.rust.matches("SystemException::no_implement()").count(), 2);
    let message = |config: Config| config.generate().unwrap_err().to_string();
    assert_eq!(message(config.clone().derive("a b")), "`a b` is not a Rust path");
    assert_eq!(
        message(config.clone().derive_for("C", "Eq").default_bodies_of("A").runtime("self::orb")),
        "`derive_for`: `C` is not the name of a type that can derive traits\n\
         `default_bodies_of`: `A` is not the name of an interface, operation or attribute\n\
         `runtime`: the path of the crate must not start with `self` or `super`: use `::` or `crate`"
    );
    let hybrid = config.clone().interpretive().adaptive_of("B", 7).uses("all").generate().unwrap().rust;
    let hybrid: String = hybrid.split_whitespace().collect();
    for part in ["Uses::new(\"B\",7", "pubfnall()", "__private::v1::read_interpreted("] {
        assert!(hybrid.contains(part), "{part}: {hybrid}");
    }
    assert_eq!(
        message(config.clone().interpretive_of("C").adaptive_of("I", 1).adaptive_of("B", 0).uses("b c")),
        "`interpretive_of`: `C` is not the name of a struct, exception, union, enum or interface\n\
         `adaptive_of`: `I` is not the name of a struct, exception, union or enum\n\
         `adaptive_of`: the number of uses must be at least 1\n\
         `uses`: `b c` is not an identifier"
    );
}

#[test]
fn errors_are_drawn_for_people() {
    let folder =
        folder(&[("a.idl", "#include \"b.idl\"\nstruct A { Nope x; };"), ("b.idl", "struct A { long x; };")]);
    let error = Config::new().file(folder.path().join("a.idl")).generate().unwrap_err();
    insta::assert_snapshot!("errors", plain(folder.path(), format!("{error:?}")));
}

#[test]
fn options_that_fit_nothing_are_errors() {
    let folder = folder(&[("a.idl", "struct A { long x; };")]);
    let config = || Config::new().file(folder.path().join("a.idl"));
    let error = config().rename("B", "C").rename("A", "x y").external("::A", "::a").generate().unwrap_err();
    insta::assert_snapshot!("options", error.to_string());
    let message = |config: Config| plain(folder.path(), config.generate().unwrap_err());
    assert_eq!(message(config().external("::A", "a b")), "`a b` is not a Rust path");
    assert_eq!(message(Config::new()), "there is no IDL file; add one with `file`");
    assert!(message(Config::new().file(folder.path().join("no.idl"))).contains("cannot read `DIR/no.idl`"));
    let error = config().out_dir(folder.path().join("no/such")).compile().unwrap_err();
    assert!(plain(folder.path(), error).starts_with("cannot write DIR/no/such/a.rs: "));
}
