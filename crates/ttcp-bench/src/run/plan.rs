//! The plan of a run: the tests in the result table.

use serde::Serialize;
use serde_json::Value;

use super::RunArgs;
use crate::figures::format_bytes;
use crate::work::{Element, Test};

const ELEMENTS: [Element; 7] = [
    Element::Octet,
    Element::Char,
    Element::Short,
    Element::Long,
    Element::Double,
    Element::Struct,
    Element::Zstruct,
];
const BUFFER_BYTES: [u64; 4] = [1 << 10, 8 << 10, 64 << 10, 1 << 20];
/// The payloads of echo, as type and size in bytes: 64 KiB of `octet`s, and 1,000 structs.
const ECHO_PAYLOADS: [(Element, u64); 3] =
    [(Element::Octet, 65_536), (Element::Struct, 24_000), (Element::Zstruct, 24_000)];
const TESTS: [Test; 5] = [Test::Ping, Test::Demux, Test::Echo, Test::Pipeline, Test::Ttcp];

/// A test with its options. It is performed with every peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) test: Test,
    /// The element type (ttcp, echo).
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) element: Option<Element>,
    /// The bytes of elements in one buffer (ttcp, echo).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// The bytes of elements in the whole flood (ttcp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    /// The number of calls (all tests except ttcp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<u32>,
    /// The number of outstanding calls (pipeline).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<u32>,
    /// Whether peers that have the option `--batch` use it (pipeline).
    #[serde(rename = "batch", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uses_batch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    /// 10^9 bits of elements per second.
    #[serde(rename = "Gbit/s")]
    GbitPerSecond,
    /// Thousand calls per second.
    #[serde(rename = "kcalls/s")]
    KilocallsPerSecond,
    /// Microseconds: the median time of a call.
    #[serde(rename = "us")]
    Microseconds,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::GbitPerSecond => "Gbit/s",
            Unit::KilocallsPerSecond => "kcalls/s",
            Unit::Microseconds => "us",
        }
    }

    pub(crate) fn more_is_better(self) -> bool {
        self != Unit::Microseconds
    }
}

impl Cell {
    pub(crate) fn new(test: Test) -> Cell {
        Cell { test, element: None, size: None, total: None, n: None, depth: None, uses_batch: false }
    }

    pub(crate) fn all(args: &RunArgs) -> Vec<Cell> {
        let types = args.types.as_deref().unwrap_or(&ELEMENTS);
        let sizes = args.sizes.as_deref().unwrap_or(&BUFFER_BYTES);
        let mut cells = Vec::new();
        let is_selected = |test: &Test| args.tests.as_ref().is_none_or(|selected| selected.contains(test));
        for test in TESTS.into_iter().filter(is_selected) {
            match test {
                Test::Ping | Test::Demux => cells.push(Cell::calls(test, args)),
                Test::Echo => cells.extend(ECHO_PAYLOADS.into_iter().filter(|(t, _)| types.contains(t)).map(
                    |(element, size)| Cell {
                        element: Some(element),
                        size: Some(size),
                        ..Cell::calls(test, args)
                    },
                )),
                Test::Pipeline => cells.extend([false, true].map(|uses_batch| Cell {
                    depth: Some(args.depth),
                    uses_batch,
                    ..Cell::calls(test, args)
                })),
                Test::Ttcp => {
                    for element in ELEMENTS.into_iter().filter(|e| types.contains(e)) {
                        cells.extend(sizes.iter().map(|&size| Cell::flood(element, size, args)));
                    }
                }
                // These tests belong to other experiments.
                Test::Last | Test::Objects | Test::Clients | Test::Series => {}
            }
        }
        cells
    }

    /// Returns the work of a client, including the warm-up: GB (10^9 bytes) sent, or millions of calls.
    pub(crate) fn work(&self) -> f64 {
        let counted = match (self.total, self.n) {
            (Some(total), _) => total as f64 / 1e9,
            (None, n) => f64::from(n.unwrap_or(1)) / 1e6,
        };
        counted * 1.1
    }

    fn calls(test: Test, args: &RunArgs) -> Cell {
        let n = match (test, args.common.quick) {
            (Test::Pipeline, false) => 200_000,
            (Test::Pipeline, true) => 20_000,
            (Test::Echo, false) => 5_000,
            (Test::Echo, true) => 1_000,
            (_, false) => 20_000,
            (_, true) => 3_000,
        };
        let n = Some(args.n.unwrap_or(n));
        Cell { n, ..Cell::new(test) }
    }

    fn flood(element: Element, size: u64, args: &RunArgs) -> Cell {
        // A flood must be long enough for full TCP windows and a negligible resolution of the clock.
        let (full, quick) = match size {
            0..4_096 => (64 << 20, 16 << 20),
            4_096..32_768 => (256 << 20, 32 << 20),
            _ => (1 << 30, 128 << 20),
        };
        let total = args.total.unwrap_or(if args.common.quick { quick } else { full });
        Cell { element: Some(element), size: Some(size), total: Some(total), ..Cell::new(Test::Ttcp) }
    }

    /// Returns the cell with plain structs instead of structs in their memory representation.
    pub(crate) fn with_plain_structs(&self) -> Cell {
        let plain = |element| if element == Element::Zstruct { Element::Struct } else { element };
        Cell { element: self.element.map(plain), ..self.clone() }
    }

    /// Returns the client's arguments: the test and its options.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut out = vec![self.test.to_string()];
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                out.extend([format!("--{name}"), value]);
            }
        };
        option("type", self.element.map(|e| e.to_string()));
        option("size", self.size.map(|n| n.to_string()));
        option("total", self.total.map(|n| n.to_string()));
        option("n", self.n.map(|n| n.to_string()));
        option("depth", self.depth.map(|n| n.to_string()));
        out
    }

    pub(crate) fn name(&self) -> String {
        let mut out = self.test.to_string();
        for part in [
            self.element.map(|e| e.to_string()),
            self.size.map(format_bytes),
            self.depth.map(|d| d.to_string()),
            self.uses_batch.then(|| "batch".to_owned()),
        ]
        .into_iter()
        .flatten()
        {
            out.push(' ');
            out.push_str(&part);
        }
        out
    }

    pub(crate) fn unit(&self) -> Unit {
        match self.test {
            Test::Ttcp => Unit::GbitPerSecond,
            Test::Pipeline | Test::Clients => Unit::KilocallsPerSecond,
            Test::Ping | Test::Echo | Test::Demux | Test::Objects | Test::Series | Test::Last => {
                Unit::Microseconds
            }
        }
    }

    /// Extracts this cell's figure from a client's line.
    pub(crate) fn figure(&self, line: &Value) -> Result<f64, String> {
        let check = |name: &str, expected: Value| match line.get(name) {
            Some(value) if *value != expected => Err(format!("{name} is {value}, not {expected}")),
            _ => Ok(()),
        };
        check("test", self.test.to_string().into())?;
        if let (Some(element), Some(size)) = (self.element, self.size) {
            check("type", element.to_string().into())?;
            check("size", size.into())?;
        }
        let (name, scale) = match self.unit() {
            Unit::GbitPerSecond => ("mbit_s", 1e-3),
            Unit::KilocallsPerSecond => ("calls_s", 1e-3),
            Unit::Microseconds => ("p50_us", 1.0),
        };
        match line.get(name).and_then(Value::as_f64) {
            Some(figure) if figure.is_finite() && figure > 0.0 => Ok(figure * scale),
            Some(figure) => Err(format!("{name} is {figure}")),
            None => Err(format!("it has no {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::work::parse_options;

    fn cells(line: &str) -> Vec<Cell> {
        Cell::all(&parse_options(line.split_whitespace()).unwrap())
    }

    #[test]
    fn the_full_plan_has_floods_of_every_type_and_size() {
        let all = cells("");
        assert_eq!(all.iter().filter(|c| c.test == Test::Ttcp).count(), 28);
        assert_eq!(all.len(), 35);
        assert_eq!(all.first().map(Cell::name).as_deref(), Some("ping"));
        assert_eq!(all.last().map(Cell::name).as_deref(), Some("ttcp zstruct 1 MiB"));
        assert!(all.iter().any(|c| c.name() == "pipeline 64 batch"));
        assert!(all.iter().any(|c| c.name() == "echo struct 24000 B"));
    }

    #[test]
    fn plans_are_restricted_by_test_type_and_size() {
        let some = cells("--tests ttcp,echo --types long,octet --sizes 4K,1000 --total 1M --n 9");
        let names: Vec<_> = some.iter().map(Cell::name).collect();
        let wanted = [
            "echo octet 64 KiB",
            "ttcp octet 4 KiB",
            "ttcp octet 1000 B",
            "ttcp long 4 KiB",
            "ttcp long 1000 B",
        ];
        assert_eq!(names, wanted);
        let arguments = some.last().unwrap().arguments().join(" ");
        assert_eq!(arguments, "ttcp --type long --size 1000 --total 1048576");
        assert_eq!(some.first().unwrap().arguments().join(" "), "echo --type octet --size 65536 --n 9");
    }

    #[test]
    fn quick_runs_have_the_same_cells_with_less_work() {
        let (full, quick) = (cells(""), cells("--quick"));
        assert_eq!(full.len(), quick.len());
        for (f, q) in full.iter().zip(&quick) {
            assert!(q.total < f.total || q.n < f.n, "{}", f.name());
        }
    }

    #[test]
    fn figures_are_only_taken_from_lines_of_the_same_test() {
        let [ping] = &cells("--tests ping")[..] else { panic!() };
        assert_eq!(ping.figure(&json!({"test": "ping", "p50_us": 20.5})), Ok(20.5));
        assert_eq!(ping.figure(&json!({"test": "ping"})), Err("it has no p50_us".into()));
        assert!(ping.figure(&json!({"test": "demux", "p50_us": 20.5})).unwrap_err().contains("demux"));
        let [flood] = &cells("--tests ttcp --types char --sizes 1K")[..] else { panic!() };
        let line = json!({"test": "ttcp", "type": "char", "size": 1024, "mbit_s": 2500.0});
        assert_eq!(flood.figure(&line), Ok(2.5));
        for (name, bad) in [("size", json!(8192)), ("type", json!("octet")), ("mbit_s", json!(0.0))] {
            let mut line = line.clone();
            line[name] = bad;
            assert!(flood.figure(&line).is_err(), "{line}");
        }
    }
}
