//! `zorb new`: the files of a project. With `ZORB_TESTS=all`, as in `.ci/full`, cargo checks the project.
//! This takes a minute, because it compiles zorb with other features than the tests do. The test `skeleton`
//! compiles servants as they are in projects.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const BANK: &str = "#include \"parts/money.idl\"
#include <limits.idl>
module Bank {
    exception Broke { Money::Amount missing; };
    interface Account {
        readonly attribute Money::Amount balance;
        void withdraw(in Money::Amount amount) raises (Broke);
        oneway void remark(in string text);
    };
    interface Teller { Account open(in string owner); };
    local interface Observer { void seen(); };
};
";

fn zorb(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zorb")).current_dir(folder).args(args).output().unwrap()
}

/// A folder with an IDL of three files.
fn with_idl() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("idl/bank.idl", BANK.to_owned()),
        ("idl/parts/money.idl", "module Money { typedef double Amount; };\n".to_owned()),
        ("common/limits.idl", "const long MOST = 80;\n".to_owned()),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The files below a folder.
fn files(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_project_has_the_idl_a_server_a_client_and_servants() {
    let folder = with_idl();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let args = ["new", "my-bank", "--idl", "idl/bank.idl", "-I", "common", "--zorb-path", root];
    let output = zorb(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let project = folder.path().join("my-bank");
    let files = files(&project);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            ".gitignore",
            "Cargo.toml",
            "README.md",
            "idl/bank.idl",
            "idl/limits.idl",
            "idl/parts/money.idl",
            "src/bin/client.rs",
            "src/bin/server.rs",
            "src/lib.rs",
            "src/servants.rs",
        ]
    );
    assert!(files["src/lib.rs"].contains("zorb::idl!(\"idl/bank.idl\", include = [\"idl\"]);"));
    let server = &files["src/bin/server.rs"];
    for line in [
        "use my_bank::{idl, servants};",
        "let _: idl::bank::AccountRef = orb.activate_named(\"Account\", servants::AccountImpl)?;",
        "let _: idl::bank::TellerRef = orb.activate_named(\"Teller\", servants::TellerImpl)?;",
        "orb.run_until(zorb::signal::shutdown()).await?;",
    ] {
        assert!(server.contains(line), "{line}\n{server}");
    }
    // Nothing leads to a local object.
    assert!(
        !server.contains("Observer") && files["src/servants.rs"].contains("ObserverServant for ObserverImpl")
    );
    assert!(files["src/servants.rs"].contains("impl crate::idl::bank::AccountServant for AccountImpl"));
    assert!(files["src/bin/client.rs"].contains("orb.resolve(\"corbaloc::127.0.0.1:2900/Account\")"));
    let manifest = &files["Cargo.toml"];
    assert!(manifest.contains("name = \"my-bank\"") && manifest.contains("zorb = { path = \""), "{manifest}");

    // A project is not made over another.
    let again = zorb(folder.path(), &args);
    assert_eq!(again.status.code(), Some(3));
    assert!(String::from_utf8(again.stderr).unwrap().contains("is not empty"));

    if std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all") {
        let lock = Path::new(root).join("Cargo.lock");
        if lock.exists() {
            fs::copy(lock, project.join("Cargo.lock")).unwrap();
        }
        let check = Command::new(env!("CARGO"))
            .current_dir(&project)
            .args(["check", "--offline", "--all-targets"])
            .env("CARGO_TARGET_DIR", Path::new(root).join("target"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&check.stderr);
        assert!(check.status.success() && !told.contains("warning"), "{told}");
    }
}

#[test]
fn without_a_path_the_published_crate_is_named() {
    let folder = with_idl();
    let output = zorb(folder.path(), &["new", "teller", "--idl", "idl/bank.idl", "-I", "common"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = fs::read_to_string(folder.path().join("teller/Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("zorb = \"{}\"", env!("CARGO_PKG_VERSION"))), "{manifest}");
}

#[test]
fn what_can_not_become_a_project_leaves_nothing() {
    let folder = with_idl();
    fs::write(folder.path().join("broken.idl"), "interface I { void f() };").unwrap();
    fs::write(folder.path().join("data.idl"), "struct S { long a; };").unwrap();
    for (name, idl, code, why) in [
        ("x", "broken.idl", 1, "expected `;` after this operation"),
        ("x", "data.idl", 1, "does not define an interface"),
        ("x", "missing.idl", 1, "cannot read"),
        ("9x", "data.idl", 2, "a name must start with a letter"),
        ("../x", "data.idl", 2, "a name must start with a letter"),
    ] {
        let output = zorb(folder.path(), &["new", name, "--idl", idl]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{name} {idl}: {told}");
        assert!(told.contains(why) && !folder.path().join("x").exists(), "{told}");
    }
}
