//! Generated IDL. Each set of files is either correct by construction, with known ids and constants, or has
//! one fault of a known kind and line. `ZORB_TESTS=all` tests many more sets (as in `.ci/full`).

mod behaviour;
mod constants;
mod parts;
mod site;
mod templates;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use idl_compiler::model::ConstValue;
use idl_compiler::{Compiler, Diagnostics, Memory, Model};

use site::{Fault, Number, Plan, Site};

fn compile(site: &Site) -> Result<Model, Diagnostics> {
    let files = site.files.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()));
    Compiler::default()
        .strict_names(true)
        .files(Memory::from_iter(files))
        .include("inc")
        .compile_files(["main.idl"])
}

/// All files, with numbers of lines.
fn shown(site: &Site) -> String {
    let mut all = String::new();
    for (name, text) in &site.files {
        all += &format!("--- {name}\n");
        for (number, line) in text.lines().enumerate() {
            all += &format!("{:4} {line}\n", number + 1);
        }
    }
    all
}

fn is_right(site: &Site) -> Result<(), String> {
    let model = compile(site).map_err(|errors| errors.without_warnings().render(false))?;
    for (name, id) in &site.ids {
        let found = model.find(name).map(|def| model.def(def).repository_id.as_str());
        if found != Some(id) {
            return Err(format!("{name} is {found:?}, not {id}"));
        }
    }
    for (name, number) in &site.constants {
        let found = model.find(name).and_then(|def| model.constant(def)).map(|constant| &constant.value);
        let is_it = match (found, number) {
            (Some(ConstValue::Integer(found)), Number::Integer(it)) => *found == i128::from(*it),
            (
                Some(ConstValue::Fixed { unscaled, scale }),
                Number::Fixed { unscaled: digits, scale: places },
            ) => (unscaled, scale) == (digits, places),
            _ => false,
        };
        if !is_it {
            return Err(format!("{name} is {found:?}, not {number:?}"));
        }
    }
    Ok(())
}

/// The one error is the one that was made.
fn is_wrong(site: &Site) -> Result<(), String> {
    let wanted = site.fault.as_ref().unwrap();
    let Err(errors) = compile(site) else { return Err(format!("no error, instead of {wanted:?}")) };
    let errors = errors.without_warnings();
    let found: Vec<Fault> = errors
        .iter()
        .map(|error| {
            let place = errors.sources().position(error.span().unwrap());
            Fault { code: error.code, file: place.file, line: place.line }
        })
        .collect();
    if found == [wanted.clone()] {
        Ok(())
    } else {
        Err(format!("instead of {wanted:?}:\n{}", errors.render(false)))
    }
}

#[test]
fn verdicts_are_right() {
    let mut wrong = Vec::new();
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    let all = std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all");
    for seed in 0..if all { 5_000 } else { 300 } {
        let plan = Plan { seed, classic: false, fault: None };
        let right = Site::new(plan);
        if let Err(problem) = is_right(&right) {
            wrong.push(format!("{plan:?}: {problem}\n{}", shown(&right)));
            continue;
        }
        for turn in 0..3 {
            let number = usize::try_from(seed).unwrap();
            let place = (number * 7 + turn * 13) % right.places();
            let plan = Plan { fault: Some((place, number + turn)), ..plan };
            let site = Site::new(plan);
            *kinds.entry(site.fault.as_ref().unwrap().code).or_default() += 1;
            if let Err(problem) = is_wrong(&site) {
                wrong.push(format!("{plan:?}: {problem}"));
            }
        }
    }
    assert!(kinds.len() > 35, "too few kinds of faults: {kinds:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What omniidl says of files in a folder: nothing, or its first error.
fn omniidl(folder: &Path) -> Option<String> {
    let output = Command::new("omniidl").args(["-Iinc", "main.idl"]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

fn second_opinion(plan: Plan) -> Result<(), String> {
    let site = Site::new(plan);
    match &site.fault {
        None => is_right(&site),
        Some(_) => is_wrong(&site),
    }?;
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &site.files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    match (omniidl(folder.path()), &site.fault) {
        (None, None) => Ok(()),
        (Some(said), Some(fault)) if said.contains(&format!("{}:", fault.file)) => Ok(()),
        (said, fault) => Err(format!("omniidl says {said:?} of {fault:?} in\n{}", shown(&site))),
    }
}

#[test]
fn omniidl_has_the_same_opinion() {
    if Command::new("omniidl").arg("-V").output().is_err() {
        let what = "no omniidl: scripts/install-peers.sh installs it";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
        let _ = std::io::stderr().write_all(format!("generated: SKIPPED: {what}\n").as_bytes());
        return;
    }
    let opinions = |seeds: std::ops::Range<u64>| {
        let mut wrong = Vec::new();
        for seed in seeds {
            let right = Plan { seed, classic: true, fault: None };
            let (number, places) = (usize::try_from(seed).unwrap(), Site::new(right).places());
            let fault = Some((number * 11 % places, number));
            for plan in [right, Plan { fault, ..right }] {
                wrong.extend(second_opinion(plan).err().map(|problem| format!("{plan:?}: {problem}")));
            }
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let half = scope.spawn(|| opinions(0..30));
        let mut wrong = opinions(30..60);
        wrong.extend(half.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
