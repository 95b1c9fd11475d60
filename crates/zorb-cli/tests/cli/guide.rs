//! The documentation. The doc tests of `zorb` compile all Rust in `docs` and in `README.md`. These tests
//! check the guide, `docs/guide`: every page is in the book, every link has a target, the compiler accepts
//! the IDL, and this program accepts the command lines.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::zorb;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn source() -> PathBuf {
    Path::new(ROOT).join("docs/guide/src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages below a folder, as paths from it.
fn below(top: &Path) -> BTreeSet<String> {
    fn walk(top: &Path, folder: &Path, pages: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(top, &path, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut pages = BTreeSet::new();
    walk(top, top, &mut pages);
    pages
}

/// The pages of the guide.
fn pages() -> BTreeSet<String> {
    let mut pages = below(&source());
    assert!(pages.remove("SUMMARY.md"));
    // Not every file system tells them apart otherwise.
    let lower: BTreeSet<String> = pages.iter().map(|page| page.to_lowercase()).collect();
    assert_eq!(lower.len(), pages.len(), "two pages differ in upper and lower case alone");
    pages
}

struct Block {
    line: usize,
    language: String,
    text: String,
}

/// The code blocks of a page, and the page without them.
fn blocks(page: &str) -> (Vec<Block>, String) {
    let (mut blocks, mut prose) = (Vec::new(), String::new());
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        assert!(!line.trim_start().starts_with("~~~"), "line {}: blocks stand between ```", number + 1);
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                let language = language.to_owned();
                open = Some(Block { line: number + 1, language, text: String::new() });
            }
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    (blocks, prose)
}

/// Whether rustdoc takes a block for Rust: one that says nothing of its language, too.
fn is_rust(language: &str) -> bool {
    tags(language).all(|tag| {
        ["rust", "should_panic", "no_run", "compile_fail", "test_harness", "standalone_crate"].contains(&tag)
            || ["ignore", "edition"].iter().any(|known| tag.starts_with(known))
    })
}

/// Whether rustdoc only shows such a block; `ignore-x86_64` and its like are for some targets alone.
fn is_ignored(language: &str) -> bool {
    tags(language).any(|tag| tag.starts_with("ignore"))
}

fn tags(language: &str) -> impl Iterator<Item = &str> {
    language.split([',', ' ', '\t']).filter(|tag| !tag.is_empty())
}

/// What stands in `](...)`, where it is no code.
fn links(prose: &str) -> Vec<String> {
    let text: String = prose.split('`').step_by(2).collect();
    text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of a page: its headings as mdBook and GitHub write them.
fn anchors(prose: &str) -> BTreeSet<String> {
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// A page of the reference is another file of the repository.
fn included(path: &Path) -> Option<PathBuf> {
    if path.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = read(path);
    let file = text.strip_prefix("{{#include ")?.trim_end().strip_suffix("}}")?;
    Some(path.parent()?.join(file))
}

#[test]
fn every_page_is_in_the_book_and_every_link_leads_somewhere() {
    let pages = pages();
    let listed: Vec<String> = links(&read(&source().join("SUMMARY.md")));
    let listed: BTreeSet<String> = listed.into_iter().filter(|link| !link.is_empty()).collect();
    assert_eq!(pages, listed, "SUMMARY.md has not the pages that are there");
    let mut wrong = Vec::new();
    for page in &pages {
        // Links of an included page are valid at its own place; those to other pages of the book are also
        // valid in the book.
        let path = source().join(page);
        let real = included(&path).unwrap_or_else(|| path.clone());
        let (_, prose) = blocks(&read(&real));
        for link in links(&prose) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let mut target = if file.is_empty() { real.clone() } else { real.parent().unwrap().join(file) };
            if real == path
                && !target.canonicalize().unwrap_or_default().starts_with(source().canonicalize().unwrap())
            {
                wrong.push(format!("{page}: {link} is not in the book"));
                continue;
            }
            if !target.exists() {
                wrong.push(format!("{page}: {link}: no such file"));
                continue;
            }
            // An included page may link to other included pages, but not to files outside the book.
            let shown =
                |page: &String| included(&source().join(page)).and_then(|file| file.canonicalize().ok());
            if real != path
                && !pages.iter().filter_map(shown).any(|file| file == target.canonicalize().unwrap())
            {
                wrong.push(format!("{page}: {link} is not in the book"));
                continue;
            }
            target = included(&target).unwrap_or(target);
            if !anchor.is_empty() && !anchors(&blocks(&read(&target)).1).contains(anchor) {
                wrong.push(format!("{page}: {link}: no such heading"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_block_of_rust_is_compiled() {
    let root = Path::new(ROOT);
    let compiled = read(&root.join("src/guide.rs"));
    let readme = compiled.contains("include_str!(\"../README.md\")");
    let mut all: Vec<(PathBuf, bool)> = vec![(root.join("README.md"), readme)];
    for page in below(&root.join("docs")) {
        all.push((root.join("docs").join(&page), compiled.contains(&format!("\"{page}\"\n"))));
    }
    let (mut blocks_of_rust, mut wrong) = (0, Vec::new());
    for (path, is_compiled) in all {
        for Block { line, language, .. } in blocks(&read(&path)).0 {
            let at = format!("{}:{line}", path.display());
            if is_ignored(&language) {
                wrong.push(format!("{at}: nothing compiles a block of `{language}`"));
            } else if is_rust(&language) {
                blocks_of_rust += 1;
                if !is_compiled {
                    wrong.push(format!("{at}: src/guide.rs has not the page"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(blocks_of_rust > 40);
}

#[test]
fn every_block_of_code_is_checked() {
    let mut checked = 0;
    for page in pages() {
        let path = source().join(&page);
        if included(&path).is_some() {
            continue;
        }
        for Block { line, language, text } in blocks(&read(&path)).0 {
            let at = format!("{page}:{line}");
            match &*language {
                // Those of all pages are looked at by the test above.
                rust if is_rust(rust) => {}
                "idl" => {
                    let run = zorb(&["idl", "check", "-"], &text);
                    assert_eq!(run.code, 0, "{at}: {}", run.err);
                }
                "console" => text.lines().for_each(|line| command(&at, line)),
                "toml" | "cpp" | "java" => {}
                other => panic!("{at}: nothing checks a block of `{other}`"),
            }
            checked += 1;
        }
    }
    assert!(checked > 20);
    let idl = source().join("bank.idl");
    assert_eq!(zorb(&["idl", "check", idl.to_str().unwrap()], "").code, 0);
}

/// A command line of `zorb`, or of `idlc`, has subcommands and options that there are.
fn command(at: &str, line: &str) {
    let Some(line) = line.strip_prefix("$ ") else { return };
    let line = line.strip_suffix(" &").unwrap_or(line);
    let mut words = words(line).into_iter();
    let mut args = match &*words.next().unwrap() {
        "zorb" => Vec::new(),
        "idlc" => vec!["idl".to_owned()],
        _ => return,
    };
    // Arguments after `--` are for the ORB.
    args.extend(words.take_while(|word| word != "--"));
    // Whatever comes before it has to be right, and nothing is done.
    args.push("--help".to_owned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = zorb(&args, "");
    assert!(run.code == 0 && run.out.contains("Usage"), "{at}: {line}: {}", run.err);
}

/// Splits as a shell does, as far as the guide needs it: blanks and single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn wrong_command_lines_are_found() {
    for wrong in [&["ior", "dumb", "x", "--help"][..], &["ping", "x", "--counts", "3", "--help"]] {
        assert_eq!(zorb(wrong, "").code, 2, "{wrong:?}");
    }
    assert_eq!(
        words("zorb call x '{\"a b\": 1}' --idl f"),
        ["zorb", "call", "x", "{\"a b\": 1}", "--idl", "f"]
    );
    assert_eq!(links("[a](b.md#c) and `[x](y)`, ![i](j.svg)"), ["b.md#c", "j.svg"]);
    assert!(anchors("## `any` and type codes\n").contains("any-and-type-codes"));
}

#[test]
fn rust_is_what_rustdoc_takes_for_it() {
    for rust in ["", "rust", "rust,no_run", "no_run", "edition2021", "rust, should_panic", "rust,ignore"] {
        assert!(is_rust(rust), "{rust}");
    }
    for other in ["text", "idl", "console", "rust-script", "toml"] {
        assert!(!is_rust(other), "{other}");
    }
    assert!(is_ignored("rust,ignore") && is_ignored("ignore-wasm32") && !is_ignored("rust,no_run"));
    let (found, prose) = blocks("- a list\n  ```rust\n  code();\n  ```\nand [a link](x.md)\n");
    assert_eq!((found.len(), found[0].line, found[0].language.as_str()), (1, 2, "rust"));
    assert_eq!(links(&prose), ["x.md"]);
}
