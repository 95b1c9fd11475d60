//! The size of each step's machine code, from the symbols of this program's own file.
//!
//! * For an interpretive step, the routines of its directory's files are counted, in the measured copy. Where
//!   two steps have the same routine, the compiler may merge both; it then counts for both. The heap, which
//!   all interpretive steps share, and the standard library are not counted.
//! * For stubs, the functions are counted that are called from the two functions of which every type of the
//!   ladder has a copy. They are found by the call instructions, because the names of generic functions do
//!   not contain their types.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, ensure};
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde::Serialize;

use super::Step;

/// Modules of the copies of the steps' files: for measuring, and with counted calls.
const MEASURED: &str = "ttcp_bench::ladder::measured::";
const COUNTED: &str = "ttcp_bench::ladder::counted::";

/// The modules of zorb's engine: the same as in `scripts/interpreter-size.sh`.
const ENGINE: [&str; 6] = [
    "giop_codec::program",
    "giop_codec::typecode::compile",
    "giop_codec::walk",
    "giop_codec::dynamic::program",
    "giop_codec::dynamic::reflect",
    "giop_codec::cdr::swapped::swap_here",
];

/// Parts of the names of counted functions, mangled or not. Demangling all names of the program takes seconds
/// without optimisation.
const KNOWN: [&str; 2] = ["ladder", "giop_codec"];

/// Entry points of the stubs of the ladder's types.
const STUBS: [&str; 2] = ["ttcp_bench::ladder::compiled::encode", "ttcp_bench::ladder::compiled::decode"];
/// Called functions that belong to stubs: those of the codec, and of the types.
const OF_STUBS: [&str; 2] = ["giop_codec::cdr::", "ttcp_bench::ladder::case::"];

/// The machine code of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Size of all functions, bytes.
    #[serde(rename = "code_bytes")]
    pub bytes: u64,
    /// Number of functions.
    pub functions: usize,
}

/// The functions of this program.
#[derive(Debug)]
pub struct Functions {
    architecture: Architecture,
    functions: Vec<Function>,
    /// Indices of the functions by start address.
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
    /// It cannot be read, or has no symbols.
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

    /// Returns the size of a step's machine code.
    ///
    /// # Errors
    /// There is none, because the names of functions are not the expected ones.
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

    /// Returns the sizes of stubs and of the codec functions that they call.
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

    /// Returns the functions that a function calls or jumps to by an address in an instruction. Bytes that
    /// only look like such an address are harmless unless they point exactly to the start of a function.
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
            // On other processors, only what is inlined into the entry points counts as stub.
            _ => Vec::new(),
        };
        targets.iter().filter_map(|target| self.at.get(target).copied()).collect()
    }

    /// Returns the sizes of the routines of a step's files, by file and name.
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

    /// Returns the sizes of a module's routines by the rest of the name, and by an index among equal names:
    /// generic routines have several instances.
    fn routines(&self, tree: &str, module: &str) -> BTreeMap<(String, usize), u64> {
        let mut routines = BTreeMap::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let prefix = format!("{tree}{module}::");
        for function in &self.functions {
            // Some manglings name methods `<Type>::method`.
            let name = function.name.trim_start_matches('<');
            let Some(routine) = name.strip_prefix(&prefix) else { continue };
            let nth = seen.entry(routine.to_owned()).or_default();
            routines.insert((routine.to_owned(), *nth), function.code.len() as u64);
            *nth += 1;
        }
        routines
    }
}

/// The files of a step, and the directory of each.
type Files = &'static [(&'static str, &'static str)];

/// Returns the module of a step, and its files: their names, and the directory that contains them.
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
