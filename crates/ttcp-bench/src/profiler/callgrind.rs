//! `callgrind`, a tool of valgrind. It provides the instructions of each function outside the kernel, the
//! number of its calls, and the chains of its callers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::groups::chain_start_globs;
use super::{Cost, Profile, last_line, normalised_name, unknown_function_in};

/// Maximum number of callers in a chain. Longer chains are truncated.
const MAX_CALLERS: u32 = 200;

/// The tool `callgrind`, which is installed and works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callgrind;

/// What callgrind recorded about one execution of a program.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    pub(crate) profile: Profile,
    pub(crate) chains: Vec<Chain>,
}

/// A function with one chain of its callers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chain {
    /// The function, its caller, the caller of this caller, and so on.
    pub(crate) functions: Vec<String>,
    /// Number of calls of the function through this chain.
    pub(crate) calls: u64,
    /// Number of system calls that the function itself made.
    pub(crate) system_calls: u64,
}

impl Callgrind {
    pub(crate) fn find() -> Result<Callgrind, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"]);
        match command.stdin(Stdio::null()).output() {
            Ok(out) if out.status.success() => Ok(Callgrind),
            Ok(out) => Err(format!("callgrind failed: {}", last_line(&out.stderr))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err("callgrind is not installed (Debian: valgrind)".to_owned())
            }
            Err(e) => Err(format!("valgrind cannot be started: {e}")),
        }
    }

    /// Returns the prefix of a command that profiles the command into `file`, with or without call chains.
    pub(crate) fn command_prefix(self, file: &str, records_chains: bool) -> Vec<String> {
        let mut words = vec![
            "valgrind".to_owned(),
            "-q".to_owned(),
            "--tool=callgrind".to_owned(),
            "--dump-line=no".to_owned(),
            "--separate-recs=1".to_owned(),
            // This option counts system calls by function, because not all are made through the C library.
            "--collect-systime=nsec".to_owned(),
            format!("--callgrind-out-file={file}"),
        ];
        if records_chains {
            // To record the chains of all functions would take too much time and memory.
            words.extend(
                chain_start_globs()
                    .iter()
                    .map(|function| format!("--separate-callers{MAX_CALLERS}={function}")),
            );
        }
        words
    }

    pub(crate) fn read(self, file: &Path) -> Result<Execution, String> {
        let opened = File::open(file).map_err(|e| format!("cannot open {}: {e}", file.display()))?;
        let mut parser = FileParser::default();
        for line in BufReader::new(opened).split(b'\n') {
            let line = line.map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
            parser.parse_line(&String::from_utf8_lossy(&line));
        }
        if parser.costs.is_empty() {
            return Err(format!("{} contains no functions: was the program killed?", file.display()));
        }
        Ok(parser.execution())
    }
}

/// The parser of callgrind's file format. A line with the name of a function is followed by lines with its
/// costs. Names have numbers, and are written in full only once. Functions and objects are stored by number.
#[derive(Debug, Default)]
struct FileParser {
    instructions_column: usize,
    system_calls_column: Option<usize>,
    names: HashMap<String, String>,
    objects: HashMap<String, String>,
    costs: HashMap<String, [u64; 3]>,
    object: String,
    /// The object of the called function, if it differs from `object`.
    called_object: Option<String>,
    function: String,
    called_function: String,
    /// Whether the next line is the inclusive cost of a call, which is ignored.
    skips_next_cost: bool,
}

// Indices in the values of `FileParser::costs`.
const INSTRUCTIONS: usize = 0;
const CALLS: usize = 1;
const SYSTEM_CALLS: usize = 2;

impl FileParser {
    fn parse_line(&mut self, line: &str) {
        let first = line.bytes().next();
        if first.is_some_and(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'*')) {
            if !std::mem::take(&mut self.skips_next_cost) {
                self.parse_costs(line);
            }
        } else if let Some(events) = line.strip_prefix("events:") {
            let column = |event| events.split_whitespace().position(|name| name == event);
            self.instructions_column = column("Ir").unwrap_or_default();
            self.system_calls_column = column("sysCount");
        } else if let Some((key, value)) = line.split_once('=') {
            match key {
                "ob" => self.object = store_name(&mut self.objects, value, None),
                "cob" => self.called_object = Some(store_name(&mut self.objects, value, None)),
                "fn" => {
                    self.function = store_name(&mut self.names, value, self.objects.get(&self.object));
                    self.costs.entry(self.function.clone()).or_default();
                }
                "cfn" => {
                    let object = self.called_object.take().unwrap_or_else(|| self.object.clone());
                    self.called_function = store_name(&mut self.names, value, self.objects.get(&object));
                }
                "calls" => {
                    let calls = value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
                    self.add(&self.called_function.clone(), CALLS, calls.unwrap_or_default());
                    self.skips_next_cost = true;
                }
                _ => {}
            }
        }
    }

    fn parse_costs(&mut self, line: &str) {
        let figure =
            |column: usize| line.split_whitespace().nth(column + 1).and_then(|f| f.parse().ok()).unwrap_or(0);
        let instructions = figure(self.instructions_column);
        let system_calls = self.system_calls_column.map_or(0, figure);
        let function = self.function.clone();
        self.add(&function, INSTRUCTIONS, instructions);
        self.add(&function, SYSTEM_CALLS, system_calls);
    }

    fn add(&mut self, function: &str, cost: usize, count: u64) {
        if let Some(sum) = self.costs.entry(function.to_owned()).or_default().get_mut(cost) {
            *sum += count;
        }
    }

    fn execution(&self) -> Execution {
        let mut execution = Execution::default();
        for (number, [own, calls, system_calls]) in &self.costs {
            let functions = parse_chain(self.names.get(number).map_or("", String::as_str));
            let Some(innermost) = functions.first() else { continue };
            let cost: &mut Cost = execution.profile.entry(innermost.clone()).or_default();
            cost.own += *own as f64;
            cost.calls += *calls as f64;
            execution.chains.push(Chain { functions, calls: *calls, system_calls: *system_calls });
        }
        execution
    }
}

/// Parses `(12) name`, or `(12)` if the name is already known. Stores the name, and returns the number.
fn store_name(names: &mut HashMap<String, String>, text: &str, object: Option<&String>) -> String {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        // If the name is unknown, the file has an address instead, which may be followed by callers.
        let name = match (name.strip_prefix("0x"), object) {
            (Some(address), Some(object)) => {
                let callers = address.split_once('\'').map(|(_, callers)| format!("'{callers}"));
                unknown_function_in(object) + callers.as_deref().unwrap_or_default()
            }
            _ => name.to_owned(),
        };
        names.insert(number.to_owned(), name);
    }
    number.to_owned()
}

/// Splits a chain such as `write'flush'main`, in which each function is called by the next one. Omits parts
/// that consist of digits, which mark recursive calls.
fn parse_chain(name: &str) -> Vec<String> {
    name.split('\'').filter(|part| !part.bytes().all(|b| b.is_ascii_digit())).map(normalised_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# callgrind format
events: Ir sysCount sysTime sysCpuTime
positions: line
summary: 999 3 4 5

ob=(1) /bin/ttcp
fl=(1) ???
fn=(10) flush'give'main
0 100
cob=(2) /lib/libc.so.6
cfi=(2) ???
cfn=(11) __GI___libc_write'flush'give'main
calls=5 0
0 50 5 9000
+3 20 1 100
cfn=(12) flush'2'flush'give'main
calls=2 0
* 7

ob=(2)
fn=(11)
0 50 5 9000 900

fn=(13) 0x0000000000010240'main
0 5

ob=(1)
fn=(12)
0 7
";

    #[test]
    fn costs_are_added_to_the_function_and_calls_to_the_callee() {
        let mut parser = FileParser::default();
        FILE.lines().for_each(|line| parser.parse_line(line));
        let execution = parser.execution();
        let cost = |own, calls| Cost { own, calls };
        assert_eq!(
            execution.profile,
            [
                ("flush".to_owned(), cost(127.0, 2.0)),
                ("write".to_owned(), cost(50.0, 5.0)),
                ("? in libc.so.6".to_owned(), cost(5.0, 0.0)),
            ]
            .into()
        );
        let write = execution.chains.iter().find(|chain| chain.functions[0] == "write").unwrap();
        assert_eq!(
            (write.functions[1..].join(" "), write.calls, write.system_calls),
            ("flush give main".to_owned(), 5, 5)
        );
        assert!(
            execution
                .chains
                .iter()
                .any(|chain| chain.functions == ["flush", "give", "main"] && chain.system_calls == 1)
        );
    }

    #[test]
    fn missing_and_empty_files_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let error = Callgrind.read(&dir.path().join("none")).unwrap_err();
        assert!(error.contains("cannot open "), "{error}");
        std::fs::write(dir.path().join("cut"), "events: Ir\n").unwrap();
        assert!(Callgrind.read(&dir.path().join("cut")).unwrap_err().contains("contains no functions"));
    }
}
