//! How much machine code a step is, from the symbols of this program's own file.
//!
//! Counted for an interpretive step are the routines of its folder's files, in the copy that is measured. Where two steps have the
//! same routine the compiler may keep one for both: it counts for both. What all interpretive steps share, the heap, is not
//! counted, nor what the standard library has. Stubs are what is called from the two functions that every type of the ladder has a
//! copy of: found by the calls in the machine code itself, as the names of generic functions do not tell their types.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, ensure};
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde::Serialize;

use super::Step;

/// Where the copies of the steps' files are: as they are measured, and with calls counted.
const MEASURED: &str = "ttcp_bench::ladder::measured::";
const COUNTED: &str = "ttcp_bench::ladder::counted::";

/// What zorb's engine is made of: the same as in `scripts/interpreter-size.sh`.
const ENGINE: [&str; 5] = [
    "giop_codec::dynamic::program",
    "giop_codec::dynamic::reflect",
    "giop_codec::any::walk",
    "giop_codec::any::values",
    "giop_codec::cdr::swapped::swap_here",
];

/// Parts of the names of counted functions, mangled or not. Demangling all names of the program takes seconds without optimisation.
const KNOWN: [&str; 2] = ["ladder", "giop_codec"];

/// Where stubs of the ladder's types begin.
const STUBS: [&str; 2] = ["ttcp_bench::ladder::compiled::encode", "ttcp_bench::ladder::compiled::decode"];
/// What they call that is theirs: of the codec, and of the types.
const OF_STUBS: [&str; 2] = ["giop_codec::cdr::", "ttcp_bench::ladder::case::"];

/// The machine code of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Bytes of all functions.
    #[serde(rename = "code_bytes")]
    pub bytes: u64,
    /// How many they are.
    pub functions: usize,
}

/// The functions of this program.
#[derive(Debug)]
pub struct Functions {
    architecture: Architecture,
    functions: Vec<Function>,
    /// Their places by where they begin.
    at: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct Function {
    name: String,
    address: u64,
    code: Vec<u8>,
}

impl Functions {
    /// Reads this program's own file.
    ///
    /// # Errors
    /// It can not be read, or has no symbols.
    pub fn of_this_program() -> anyhow::Result<Functions> {
        let path = std::env::current_exe().context("cannot find this program's own file")?;
        let octets = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*octets).context("this program's own file is no object file")?;
        let mut functions = Vec::new();
        for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
            let Some(section) = symbol.section_index().and_then(|index| file.section_by_index(index).ok())
            else {
                continue;
            };
            let (address, size) = (symbol.address(), symbol.size());
            let name = symbol.name().ok().filter(|name| KNOWN.iter().any(|part| name.contains(part)));
            if let (Some(name), Ok(Some(code))) = (name, section.data_range(address, size)) {
                let name = format!("{:#}", rustc_demangle::demangle(name));
                functions.push(Function { name, address, code: code.to_vec() });
            }
        }
        ensure!(!functions.is_empty(), "this program's own file has no symbols: was it stripped?");
        let at = functions.iter().enumerate().map(|(place, function)| (function.address, place)).collect();
        Ok(Functions { architecture: file.architecture(), functions, at })
    }

    /// The machine code of a step.
    ///
    /// # Errors
    /// There is none, which is wrong: the names of functions are not what they should be.
    pub fn of(&self, step: Step) -> anyhow::Result<Size> {
        let sizes: Vec<u64> = match step {
            Step::Program => self
                .named(|name| ENGINE.iter().any(|part| name.contains(part)))
                .map(|(_, size)| size)
                .collect(),
            Step::Compiled => self.of_stubs(),
            step => self.of_files(step).into_values().collect(),
        };
        ensure!(!sizes.is_empty(), "no function of step {} was found", step.title());
        Ok(Size { bytes: sizes.iter().sum(), functions: sizes.len() })
    }

    fn named(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (usize, u64)> {
        let functions = self.functions.iter().enumerate();
        functions
            .filter(move |(_, function)| wanted(&function.name))
            .map(|(place, function)| (place, function.code.len() as u64))
    }

    /// Stubs, and what of the codec they call.
    fn of_stubs(&self) -> Vec<u64> {
        let mut left: Vec<usize> = self
            .named(|name| STUBS.iter().any(|stub| name.starts_with(stub)))
            .map(|(place, _)| place)
            .collect();
        let mut reached: BTreeSet<usize> = left.iter().copied().collect();
        while let Some(function) = left.pop().and_then(|place| self.functions.get(place)) {
            for place in self.called(function) {
                let is_theirs = self
                    .functions
                    .get(place)
                    .is_some_and(|called| OF_STUBS.iter().any(|part| called.name.contains(part)));
                if is_theirs && reached.insert(place) {
                    left.push(place);
                }
            }
        }
        reached
            .iter()
            .filter_map(|place| self.functions.get(*place))
            .map(|one| one.code.len() as u64)
            .collect()
    }

    /// The functions that a function calls or goes on into, of which the address stands in an instruction. Octets that only look like
    /// one would have to hit a function's very first octet.
    fn called(&self, function: &Function) -> Vec<usize> {
        let relative =
            |at: usize, offset: i64| function.address.wrapping_add(at as u64).wrapping_add_signed(offset);
        let targets: Vec<u64> = match self.architecture {
            Architecture::X86_64 => function
                .code
                .windows(5)
                .enumerate()
                .filter_map(|(at, octets)| match octets {
                    // call and jmp.
                    [0xe8 | 0xe9, a, b, c, d] => {
                        Some(relative(at + 5, i64::from(i32::from_le_bytes([*a, *b, *c, *d]))))
                    }
                    _ => None,
                })
                .collect(),
            Architecture::Aarch64 => function
                .code
                .as_chunks()
                .0
                .iter()
                .enumerate()
                .map(|(place, octets)| (4 * place, i32::from_le_bytes(*octets)))
                // b and bl.
                .filter(|(_, word)| matches!(*word as u32 >> 26, 0b00_0101 | 0b10_0101))
                .map(|(at, word)| relative(at, i64::from(word << 6 >> 4)))
                .collect(),
            // Then stubs are what is inlined into them.
            _ => Vec::new(),
        };
        targets.iter().filter_map(|target| self.at.get(target).copied()).collect()
    }

    /// The routines of a step's files, by file and name.
    fn of_files(&self, step: Step) -> BTreeMap<(String, usize), u64> {
        let Some((module, files)) = files(step) else { return BTreeMap::new() };
        let mut routines = self.routines(MEASURED, module);
        for (file, source) in files {
            for other in Step::ALL {
                let Some((module, theirs)) = self::files(other) else { continue };
                if !theirs.contains(&(*file, *source)) {
                    continue;
                }
                for tree in [MEASURED, COUNTED] {
                    for ((name, nth), size) in self.routines(tree, module) {
                        if name.starts_with(&format!("{file}::")) {
                            routines.entry((name, nth)).or_insert(size);
                        }
                    }
                }
            }
        }
        routines
    }

    /// The routines of a module by what follows its name, and how manieth of that name each is: generic ones have several.
    fn routines(&self, tree: &str, module: &str) -> BTreeMap<(String, usize), u64> {
        let mut routines = BTreeMap::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let prefix = format!("{tree}{module}::");
        for function in &self.functions {
            // Some manglings tell methods by `<Type>::method`.
            let name = function.name.trim_start_matches('<');
            let Some(routine) = name.strip_prefix(&prefix) else { continue };
            let nth = seen.entry(routine.to_owned()).or_default();
            routines.insert((routine.to_owned(), *nth), function.code.len() as u64);
            *nth += 1;
        }
        routines
    }
}

/// The files of a step, and whose they are.
type Files = &'static [(&'static str, &'static str)];

/// The module of a step, and its files: their names, and in whose folder they are.
fn files(step: Step) -> Option<(&'static str, Files)> {
    const ORIGINAL: Files =
        &[("cdr", "original"), ("code", "original"), ("traverse", "original"), ("visits", "original")];
    const INLINED: Files =
        &[("cdr", "inlined"), ("code", "original"), ("traverse", "original"), ("visits", "original")];
    const MERGED: Files = &[("cdr", "inlined"), ("code", "merged"), ("traverse", "merged")];
    const RECEIVER: Files =
        &[("cdr", "inlined"), ("code", "merged"), ("traverse", "merged"), ("decode", "receiver")];
    const SENDER: Files = &[
        ("cdr", "inlined"),
        ("code", "merged"),
        ("traverse", "merged"),
        ("decode", "receiver"),
        ("encode", "sender"),
    ];
    const TYPED: Files = &[
        ("cdr", "inlined"),
        ("code", "merged"),
        ("traverse", "merged"),
        ("decode", "receiver"),
        ("encode", "sender"),
        ("sequences", "typed"),
    ];
    Some(match step {
        Step::Original => ("original", ORIGINAL),
        Step::Inlined => ("inlined", INLINED),
        Step::Merged => ("merged", MERGED),
        Step::Receiver => ("receiver", RECEIVER),
        Step::Sender => ("sender", SENDER),
        Step::Typed => ("typed", TYPED),
        Step::Program | Step::Compiled | Step::Raw => return None,
    })
}
