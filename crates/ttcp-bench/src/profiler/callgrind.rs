//! `callgrind`, a tool of valgrind: instructions outside the kernel and calls of every function, and the call
//! chains.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::groups::of_chains;
use super::{Cost, Profile, last_line, nameless, plain};

/// Number of callers that distinguish chains; deeper ones are cut off.
const CALLERS: u32 = 200;

/// The installed, working tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callgrind;

/// The profile of an execution.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    /// Instructions and calls.
    pub(crate) profile: Profile,
    /// The call chains, if they were requested.
    pub(crate) chains: Vec<Chain>,
}

/// A function with its chain of callers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chain {
    /// The function, the one that called it, and so on.
    pub(crate) functions: Vec<String>,
    /// How often it was called by this chain.
    pub(crate) calls: u64,
    /// System calls that it made itself.
    pub(crate) system_calls: u64,
}

impl Callgrind {
    /// Checks whether it works here.
    ///
    /// # Errors
    /// It does not; the message contains the reason.
    pub(crate) fn find() -> Result<Callgrind, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "true"]);
        match command.stdin(Stdio::null()).output() {
            Ok(out) if out.status.success() => Ok(Callgrind),
            Ok(out) => Err(last_line(&out.stderr)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err("it is not installed (Debian: valgrind)".to_owned())
            }
            Err(e) => Err(e.to_string()),
        }
    }

    /// Returns the words before a command that is to be profiled into `file`, with or without chains.
    pub(crate) fn around(self, file: &str, chains: bool) -> Vec<String> {
        let mut words = vec![
            "valgrind".to_owned(),
            "-q".to_owned(),
            "--tool=callgrind".to_owned(),
            "--dump-line=no".to_owned(),
            "--separate-recs=1".to_owned(),
            // Attributes system calls to functions, because not all go through the C library.
            "--collect-systime=nsec".to_owned(),
            format!("--callgrind-out-file={file}"),
        ];
        if chains {
            // Only for selected functions: for all of them it would take too much time and memory.
            words
                .extend(of_chains().iter().map(|function| format!("--separate-callers{CALLERS}={function}")));
        }
        words
    }

    /// Reads the profile in `file`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(self, file: &Path) -> Result<Execution, String> {
        let opened = File::open(file).map_err(|e| format!("callgrind left no {}: {e}", file.display()))?;
        let mut lines = Lines::default();
        for line in BufReader::new(opened).split(b'\n') {
            let line = line.map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
            lines.line(&String::from_utf8_lossy(&line));
        }
        if lines.costs.is_empty() {
            return Err(format!("{} has no functions: was its program killed?", file.display()));
        }
        Ok(lines.execution())
    }
}

/// The parser of its format: lines of cost, each of the function named before. Names have numbers, and are
/// given in full only once.
#[derive(Debug, Default)]
struct Lines {
    /// Column of the event in a line of cost, from 0.
    instructions: usize,
    system_calls: Option<usize>,
    names: HashMap<String, String>,
    objects: HashMap<String, String>,
    /// Costs by the number of the function.
    costs: HashMap<String, [u64; 3]>,
    object: String,
    called_object: Option<String>,
    function: String,
    called: String,
    /// Whether the next line is the cost of a call including everything that it called.
    inclusive: bool,
}

const INSTRUCTIONS: usize = 0;
const CALLS: usize = 1;
const SYSTEM_CALLS: usize = 2;

impl Lines {
    fn line(&mut self, line: &str) {
        let first = line.bytes().next();
        if first.is_some_and(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'*')) {
            if !std::mem::take(&mut self.inclusive) {
                self.cost(line);
            }
        } else if let Some(events) = line.strip_prefix("events:") {
            let place = |event| events.split_whitespace().position(|name| name == event);
            self.instructions = place("Ir").unwrap_or_default();
            self.system_calls = place("sysCount");
        } else if let Some((what, told)) = line.split_once('=') {
            match what {
                "ob" => self.object = known(&mut self.objects, told, None),
                "cob" => self.called_object = Some(known(&mut self.objects, told, None)),
                "fn" => {
                    self.function = known(&mut self.names, told, self.objects.get(&self.object));
                    self.costs.entry(self.function.clone()).or_default();
                }
                "cfn" => {
                    let object = self.called_object.take().unwrap_or_else(|| self.object.clone());
                    self.called = known(&mut self.names, told, self.objects.get(&object));
                }
                "calls" => {
                    let calls = told.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
                    self.add(&self.called.clone(), CALLS, calls.unwrap_or_default());
                    self.inclusive = true;
                }
                _ => {}
            }
        }
    }

    fn cost(&mut self, line: &str) {
        let figure =
            |place: usize| line.split_whitespace().nth(place + 1).and_then(|f| f.parse().ok()).unwrap_or(0);
        let (instructions, entered) = (figure(self.instructions), self.system_calls.map_or(0, figure));
        let function = self.function.clone();
        self.add(&function, INSTRUCTIONS, instructions);
        self.add(&function, SYSTEM_CALLS, entered);
    }

    fn add(&mut self, function: &str, what: usize, more: u64) {
        if let Some(sum) = self.costs.entry(function.to_owned()).or_default().get_mut(what) {
            *sum += more;
        }
    }

    fn execution(&self) -> Execution {
        let mut execution = Execution::default();
        for (number, [own, calls, system_calls]) in &self.costs {
            let functions = chain(self.names.get(number).map_or("", String::as_str));
            let Some(innermost) = functions.first() else { continue };
            let cost: &mut Cost = execution.profile.entry(innermost.clone()).or_default();
            cost.own += *own as f64;
            cost.calls += *calls as f64;
            execution.chains.push(Chain { functions, calls: *calls, system_calls: *system_calls });
        }
        execution
    }
}

/// Resolves `(12) name`, or `(12)` for a name that was given before, to the name.
fn known(names: &mut HashMap<String, String>, told: &str, object: Option<&String>) -> String {
    let (number, name) = told.split_once(' ').unwrap_or((told, ""));
    if !name.is_empty() {
        // A function without a name has its address, followed by its callers.
        let name = match (name.strip_prefix("0x"), object) {
            (Some(address), Some(object)) => {
                let callers = address.split_once('\'').map(|(_, callers)| format!("'{callers}"));
                nameless(object) + callers.as_deref().unwrap_or_default()
            }
            _ => name.to_owned(),
        };
        names.insert(number.to_owned(), name);
    }
    number.to_owned()
}

/// Splits `write'flush'main`: each is called by the next one. Digits mark a recursive call.
fn chain(name: &str) -> Vec<String> {
    name.split('\'').filter(|part| !part.bytes().all(|b| b.is_ascii_digit())).map(plain).collect()
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
    fn line_costs_add_to_their_function_and_calls_to_the_callee() {
        let mut lines = Lines::default();
        FILE.lines().for_each(|line| lines.line(line));
        let execution = lines.execution();
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
    fn what_is_not_there_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let error = Callgrind.read(&dir.path().join("none")).unwrap_err();
        assert!(error.contains("callgrind left no"), "{error}");
        std::fs::write(dir.path().join("cut"), "events: Ir\n").unwrap();
        assert!(Callgrind.read(&dir.path().join("cut")).unwrap_err().contains("has no functions"));
    }
}
