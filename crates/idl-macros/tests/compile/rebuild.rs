//! Cargo builds again when a file that an IDL file includes changes, and only then.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn check(root: &Path, target: &Path) -> (bool, String) {
    let Output { status, stderr, .. } = Command::new(env!("CARGO"))
        .args(["check", "--offline"])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_TERM_COLOR", "never")
        .output()
        .unwrap();
    (status.success(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn a_change_of_an_included_file_is_seen() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rebuild");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let manifest = format!(
        "[package]\nname = \"rebuild\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\nidl-macros = {{ path = {here:?} }}\n"
    );
    write(&root.join("Cargo.toml"), &manifest);
    std::fs::copy(here.join("../../Cargo.lock"), root.join("Cargo.lock")).unwrap();
    write(
        &root.join("src/lib.rs"),
        "//! Test.\nidl_macros::idl!(\"idl/main.idl\", include = [\"idl/inc\"]);\n/// Known.\npub const SUM: i32 = TWICE + 1;\n",
    );
    write(&root.join("idl/main.idl"), "#include <deep.idl>\nconst long TWICE = 2 * ONCE;\n");
    write(&root.join("idl/inc/deep.idl"), "#include \"deeper.idl\"\n");
    let deeper = root.join("idl/inc/deeper.idl");
    write(&deeper, "const long ONCE = 4;\n");

    let (good, text) = check(&root, target);
    assert!(good, "{text}");
    let (good, text) = check(&root, target);
    assert!(good && !text.contains("Checking rebuild"), "nothing changed: {text}");
    // Cargo compares times, which some file systems keep to the second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    write(&deeper, "const short ONCE = Nope;\n");
    let (good, text) = check(&root, target);
    assert!(!good && text.contains("`Nope` is not declared"), "{text}");
    assert!(text.contains("included from idl/inc/deep.idl:1:10"), "{text}");
    write(&deeper, "const short ONCE = 5;\n");
    let (good, text) = check(&root, target);
    assert!(good, "{text}");
}
