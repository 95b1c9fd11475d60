//! The size of each step's machine code, from the symbols of this program's own file.
//!
//! * For a step that interprets type codes, the routines in its files are counted, as they are compiled for
//!   measurements. If two steps have the same routine, the compiler may merge the copies. The remaining one
//!   then counts for both. The heap, which all these steps share, and the standard library are not counted.
//! * For zorb's interpreter, all functions of its modules are counted.
//! * For stubs, the functions `encode` and `decode` of each type are counted, and the codec's functions that
//!   they call. Call instructions show these, because the names of generic functions do not contain types.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, ensure};
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde::Serialize;

use super::Step;

// The modules with the two copies of the steps' files, for measurements and with counted calls.
const TIMING_COPY: &str = "ttcp_bench::ladder::steps_for_timing::";
const COUNTING_COPY: &str = "ttcp_bench::ladder::steps_for_counting::";

/// The modules of zorb's interpreter. `scripts/interpreter-size.sh` has the same list with a few exceptions.
const PROGRAM_MODULES: [&str; 6] = [
    "giop_codec::program",
    "giop_codec::typecode::compile",
    "giop_codec::walk",
    "giop_codec::dynamic::program",
    "giop_codec::dynamic::reflect",
    "giop_codec::cdr::byte_swap::swap_in_place",
];

/// Parts of the mangled names of functions that may be counted. Only these names are demangled, because
/// demangling all names takes seconds without optimisation.
const COUNTED_NAME_PARTS: [&str; 2] = ["ladder", "giop_codec"];

/// The functions with which the stubs of a type start.
const STUB_ENTRY_POINTS: [&str; 2] =
    ["ttcp_bench::ladder::compiled::encode", "ttcp_bench::ladder::compiled::decode"];
/// Parts of the names of called functions that count as parts of the stubs.
const STUB_NAME_PARTS: [&str; 2] = ["giop_codec::cdr::", "ttcp_bench::ladder::case::"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct CodeSize {
    #[serde(rename = "code_bytes")]
    pub(crate) bytes: u64,
    pub(crate) functions: usize,
}

/// The functions of a program that may be counted.
#[derive(Debug)]
pub(crate) struct Functions {
    architecture: Architecture,
    functions: Vec<Function>,
    /// Indices of the functions by start address.
    by_address: BTreeMap<u64, usize>,
}

#[derive(Debug)]
struct Function {
    name: String,
    address: u64,
    code: Vec<u8>,
}

impl Functions {
    pub(crate) fn of_this_program() -> anyhow::Result<Functions> {
        let path = std::env::current_exe().context("cannot find this program's own file")?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*bytes).context("this program's own file is not an object file")?;
        let mut functions = Vec::new();
        for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
            let Some(section) = symbol.section_index().and_then(|index| file.section_by_index(index).ok())
            else {
                continue;
            };
            let (address, size) = (symbol.address(), symbol.size());
            let name =
                symbol.name().ok().filter(|name| COUNTED_NAME_PARTS.iter().any(|part| name.contains(part)));
            if let (Some(name), Ok(Some(code))) = (name, section.data_range(address, size)) {
                let name = format!("{:#}", rustc_demangle::demangle(name));
                functions.push(Function { name, address, code: code.to_vec() });
            }
        }
        ensure!(!functions.is_empty(), "this program's own file has no symbols: was it stripped?");
        let by_address =
            functions.iter().enumerate().map(|(index, function)| (function.address, index)).collect();
        Ok(Functions { architecture: file.architecture(), functions, by_address })
    }

    /// Returns the size of a step's machine code. Fails if no function of the step is found.
    pub(crate) fn size_of_step(&self, step: Step) -> anyhow::Result<CodeSize> {
        let sizes: Vec<u64> = match step {
            Step::Program => self
                .select(|name| PROGRAM_MODULES.iter().any(|part| name.contains(part)))
                .map(|(_, size)| size)
                .collect(),
            Step::Compiled => self.stub_sizes(),
            step => self.routine_sizes(step).into_values().collect(),
        };
        ensure!(!sizes.is_empty(), "no function of step {} was found", step.title());
        Ok(CodeSize { bytes: sizes.iter().sum(), functions: sizes.len() })
    }

    fn select(&self, is_selected: impl Fn(&str) -> bool) -> impl Iterator<Item = (usize, u64)> {
        let functions = self.functions.iter().enumerate();
        functions
            .filter(move |(_, function)| is_selected(&function.name))
            .map(|(index, function)| (index, function.code.len() as u64))
    }

    /// Returns the sizes of the stubs, and of the codec's functions that they call.
    fn stub_sizes(&self) -> Vec<u64> {
        let mut left: Vec<usize> = self
            .select(|name| STUB_ENTRY_POINTS.iter().any(|stub| name.starts_with(stub)))
            .map(|(index, _)| index)
            .collect();
        let mut reached: BTreeSet<usize> = left.iter().copied().collect();
        while let Some(function) = left.pop().and_then(|index| self.functions.get(index)) {
            for index in self.called_functions(function) {
                let is_of_stubs = self
                    .functions
                    .get(index)
                    .is_some_and(|called| STUB_NAME_PARTS.iter().any(|part| called.name.contains(part)));
                if is_of_stubs && reached.insert(index) {
                    left.push(index);
                }
            }
        }
        reached
            .iter()
            .filter_map(|index| self.functions.get(*index))
            .map(|one| one.code.len() as u64)
            .collect()
    }

    /// Returns the indices of functions to which a function has direct calls or jumps. Other bytes that look
    /// like such an instruction are harmless, unless they refer exactly to the start of a function.
    fn called_functions(&self, function: &Function) -> Vec<usize> {
        let relative =
            |at: usize, offset: i64| function.address.wrapping_add(at as u64).wrapping_add_signed(offset);
        let targets: Vec<u64> = match self.architecture {
            Architecture::X86_64 => function
                .code
                .windows(5)
                .enumerate()
                .filter_map(|(at, bytes)| match bytes {
                    // The instructions `call` and `jmp`.
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
                .map(|(index, bytes)| (4 * index, i32::from_le_bytes(*bytes)))
                // The instructions `b` and `bl`.
                .filter(|(_, word)| matches!(*word as u32 >> 26, 0b00_0101 | 0b10_0101))
                .map(|(at, word)| relative(at, i64::from(word << 6 >> 4)))
                .collect(),
            // On other processors, called functions are not found.
            _ => Vec::new(),
        };
        targets.iter().filter_map(|target| self.by_address.get(target).copied()).collect()
    }

    /// Returns the sizes of the routines in a step's files, with the keys of [`routines`](Self::routines).
    fn routine_sizes(&self, step: Step) -> BTreeMap<(String, usize), u64> {
        let Some((module, files)) = files(step) else { return BTreeMap::new() };
        let mut routines = self.routines(TIMING_COPY, module);
        for (file, source) in files {
            for other in Step::ALL {
                let Some((module, other_files)) = self::files(other) else { continue };
                if !other_files.contains(&(*file, *source)) {
                    continue;
                }
                for copy in [TIMING_COPY, COUNTING_COPY] {
                    for ((name, nth), size) in self.routines(copy, module) {
                        if name.starts_with(&format!("{file}::")) {
                            routines.entry((name, nth)).or_insert(size);
                        }
                    }
                }
            }
        }
        routines
    }

    /// Returns the sizes of the routines in a module. A key consists of the name in the module and an index
    /// among equal names, because a generic routine has several instances.
    fn routines(&self, copy: &str, module: &str) -> BTreeMap<(String, usize), u64> {
        let mut routines = BTreeMap::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let prefix = format!("{copy}{module}::");
        for function in &self.functions {
            // In some mangling schemes, the names of methods have the form `<Type>::method`.
            let name = function.name.trim_start_matches('<');
            let Some(routine) = name.strip_prefix(&prefix) else { continue };
            let nth = seen.entry(routine.to_owned()).or_default();
            routines.insert((routine.to_owned(), *nth), function.code.len() as u64);
            *nth += 1;
        }
        routines
    }
}

/// The modules of a step, and for each module the directory with its file.
type Files = &'static [(&'static str, &'static str)];

/// Returns the name of a step's module, and the modules in it.
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
        Step::ReceiverSplit => ("receiver", RECEIVER),
        Step::SenderSplit => ("sender", SENDER),
        Step::Typed => ("typed", TYPED),
        Step::Program | Step::Compiled | Step::Raw => return None,
    })
}
