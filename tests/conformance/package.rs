//! The published packages: the files in each, their sizes, and the validity of metadata and links.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REPOSITORY: &str = "https://github.com/zorb-rs/zorb";
/// Prefixes of links to files of the repository.
const FILES: [&str; 3] = [
    "https://github.com/zorb-rs/zorb/blob/main/",
    "https://github.com/zorb-rs/zorb/tree/main/",
    "https://raw.githubusercontent.com/zorb-rs/zorb/main/",
];

/// Maximum number of files and bytes of a package.
const MAX_FILES: usize = 250;
const MAX_BYTES: u64 = 3 << 20;

struct Package {
    name: String,
    folder: PathBuf,
    manifest: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all packages without `publish = false`.
fn packages() -> Vec<Package> {
    let mut folders = vec![root().to_owned()];
    folders.extend(fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()));
    let mut packages = Vec::new();
    for folder in folders {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
        if !manifest.contains("publish = false") {
            packages.push(Package { name: name.to_owned(), folder, manifest });
        }
    }
    assert!(packages.len() >= 10, "the packages are found");
    packages
}

fn files(package: &Package) -> Vec<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--allow-dirty", "--offline", "-p", &package.name]).current_dir(root());
    let listed = cargo.output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn packages_hold_sources_and_nothing_large() {
    for package in packages() {
        let files = files(&package);
        // Files that cargo generates are not on the disk.
        let size = |file: &String| fs::metadata(package.folder.join(file)).map_or(0, |found| found.len());
        let bytes: u64 = files.iter().map(size).sum();
        assert!(files.len() <= MAX_FILES, "{} has {} files", package.name, files.len());
        assert!(bytes <= MAX_BYTES, "{} has {bytes} bytes", package.name);
        for needed in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml"] {
            assert!(files.iter().any(|file| file == needed), "{} lacks {needed}", package.name);
        }
        let stray = files.iter().find(|file| file.starts_with("benchmarks/") || file.starts_with("fuzz/"));
        assert_eq!(stray, None, "{}", package.name);
        // Files that the compiler reads in addition to Rust are in the source directory.
        let in_sources = |file: &&String| file.starts_with("src/");
        assert!(files.iter().filter(in_sources).count() > 0, "{} has no sources", package.name);
    }
}

#[test]
fn every_package_says_where_it_comes_from() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains(&format!("repository = \"{REPOSITORY}\"")));
    for package in packages() {
        for field in [
            "description = ".to_owned(),
            "repository.workspace = true".to_owned(),
            "homepage.workspace = true".to_owned(),
            "license.workspace = true".to_owned(),
            "readme = \"README.md\"".to_owned(),
            format!("documentation = \"https://docs.rs/{}\"", package.name),
            "[package.metadata.docs.rs]".to_owned(),
            "include = [".to_owned(),
        ] {
            assert!(package.manifest.contains(&field), "{} lacks `{field}`", package.name);
        }
    }
}

#[test]
fn links_of_readmes_work_outside_the_repository() {
    let mut checked = 0;
    for package in packages() {
        let readme = fs::read_to_string(package.folder.join("README.md")).unwrap();
        for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(link.starts_with("https://"), "{}: {link} is relative", package.name);
            if let Some(file) = FILES.iter().find_map(|base| link.strip_prefix(base)) {
                let file = file.split('#').next().expect("the part before a #");
                assert!(root().join(file).exists(), "{}: {link} leads to no file", package.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "links are found");
}
