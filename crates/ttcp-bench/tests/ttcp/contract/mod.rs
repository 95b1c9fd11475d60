//! The bench contract across ORBs: the bench clients of omniORB (C++) and JacORB (Java) against `ttcp
//! server`, and `ttcp client` against their servers, all tests of the contract on GIOP 1.0, 1.1 and 1.2.
//!
//! The peers are in `tests/interop` of the checkout; its README lists their known defects. None of them
//! affects these tests.

mod streams;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::peers::client::Client;
use test_support::peers::{self, Foreign, Process, Scratch};
use ttcp_bench::reference::{Address, Object};
use ttcp_bench::work::Element;
use ttcp_bench::zorb_peer::idl::published::{TtcpSequenceRef, TtcpThroughputRef};
use ttcp_bench::zorb_peer::idl::{BinStruct, TtcpRef};
use zorb::wire::Ior;
use zorb::{Char, Orb, Reference};

/// Timeout for a server's start.
const START: Duration = Duration::from_secs(60);

/// Timeout of one test of the contract, the start of a virtual machine included.
const RUN: Duration = Duration::from_secs(60);

/// User bytes of one buffer.
const SIZES: [u32; 4] = [24, 1000, 65_536, 1_048_576];

/// Contents of the messages of a series. Virtual machines send every second kind, alternating between the
/// modes.
const KINDS: [&str; 7] = ["any", "short", "record", "long", "na-record", "float", "double"];

/// Objects of a server with many objects: more than are called.
const OBJECTS: u32 = 1500;

/// A client and a server, with one GIOP version.
struct Pairing {
    client: Client,
    /// Options by which the client reaches the server.
    reach: Vec<String>,
    /// The name of the client in its reports.
    name: &'static str,
    /// Whether the server runs the requests of a connection in order, so that `sync` sees all earlier
    /// oneways.
    ordered: bool,
    /// Whether the server has many objects.
    objects: bool,
    extent: Extent,
}

/// The part of the contract that a pairing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// One test for each size instead of each type and size.
    Half,
    /// Each test, with few types and sizes.
    Each,
    /// Tests of what differs between the versions of GIOP: headers, small and large bodies, anys.
    Versions,
    /// A call and a flood. Another pairing, which differs only in the address, runs the rest.
    Address,
}

impl Extent {
    /// The whole contract runs once for each ORB, and for other pairings only the parts that differ. With
    /// `ZORB_TESTS=all` (as in `.ci/full`) it runs with each version.
    fn of(slow_client: bool, first: bool, version: Option<&str>) -> Extent {
        let all = std::env::var_os("ZORB_TESTS").is_some_and(|tests| tests == "all");
        match (slow_client, first) {
            (false, true) => Extent::Whole,
            (false, false) if all => Extent::Whole,
            (true, _) if all => Extent::Half,
            (true, true) => Extent::Each,
            (true, false) if version == Some("1.2") => Extent::Address,
            _ => Extent::Versions,
        }
    }

    /// Returns whether the test at that position in the table of types and sizes is included.
    fn has(self, row: usize, column: usize) -> bool {
        match self {
            Extent::Whole => true,
            Extent::Half => (row + column).is_multiple_of(2),
            Extent::Each => row % SIZES.len() == column,
            Extent::Versions => row == column + 2,
            Extent::Address => row == 5 && column == 1,
        }
    }
}

impl Pairing {
    /// Runs all tests of the contract.
    fn run(&mut self, title: &str) {
        let (extent, objects) = (self.extent, self.objects);
        let mut failures = Vec::new();
        let mut runs = 0;
        let mut one = |line: String| {
            runs += 1;
            if let Err(why) = self.one(&line) {
                failures.push(format!("{line}: {why}"));
            }
        };
        one("ping --n 100".to_owned());
        if extent != Extent::Address {
            one("pipeline --depth 4 --n 400".to_owned());
        }
        if !matches!(extent, Extent::Versions | Extent::Address) {
            one("demux --n 100".to_owned());
            one("last --iterations 1".to_owned());
            one("last --iterations 2 --oneway".to_owned());
            one("clients --depth 3 --n 60".to_owned());
        }
        if objects {
            one("objects --n 100".to_owned());
        }
        let types = ["octet", "char", "short", "long", "double", "struct"];
        for (i, element) in types.into_iter().enumerate() {
            for (j, size) in SIZES.into_iter().enumerate() {
                if extent.has(i, j) {
                    let total = size * if size > 100_000 { 4 } else { 40 };
                    one(format!("ttcp --type {element} --size {size} --total {total}"));
                }
            }
        }
        for element in ["octet", "struct"] {
            for size in SIZES {
                if matches!(extent, Extent::Whole | Extent::Half) || size == 1000 && extent != Extent::Address
                {
                    one(format!("echo --type {element} --size {size} --n 10"));
                }
            }
        }
        for (i, kind) in KINDS.into_iter().enumerate() {
            for (j, mode) in ["call", "oneway"].into_iter().enumerate() {
                let wanted = match extent {
                    Extent::Whole => true,
                    Extent::Half => i % 2 == 0 && i / 2 % 2 == j,
                    Extent::Each => i < 2 && i == j,
                    Extent::Versions => i == 0 && j == 0,
                    Extent::Address => false,
                };
                if wanted {
                    one(format!("series --kind {kind} --mode {mode} --units 20 --n 3 --frame 100"));
                }
            }
        }
        assert!(failures.is_empty(), "{} of {runs} failed:\n{}", failures.len(), failures.join("\n"));
        peers::tell(&format!("{title}: {runs} tests of the contract passed"));
    }

    /// Runs one test, and checks its report.
    fn one(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let all: Vec<&str> = words.iter().copied().chain(self.reach.iter().map(String::as_str)).collect();
        let (succeeded, output) = self.client.run(&all, RUN);
        match succeeded {
            None => return Err(format!("not done within {RUN:?}\n{output}")),
            Some(false) => return Err(output),
            Some(true) => {}
        }
        let report = output.lines().find(|line| line.starts_with('{')).ok_or("no report")?;
        let report: Value = serde_json::from_str(report).map_err(|error| format!("{error}: {report}"))?;
        let number = |name: &str| report[name].as_f64().unwrap_or_default();
        let option = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
        let same = |name: &str, wanted: &str| {
            let found = &report[name];
            found.as_str().map_or_else(|| found.to_string(), str::to_owned) == wanted
        };
        let right = same("peer", self.name)
            && same("test", words[0])
            && option("--type").is_none_or(|element| same("type", element))
            && option("--size").is_none_or(|size| same("size", size))
            && match words[0] {
                "ttcp" => number("mbit_s") > 0.0 && (!self.ordered || number("syncs") == 1.0),
                "pipeline" | "clients" => {
                    number("calls_s") > 0.0 && same("depth", option("--depth").unwrap_or_default())
                }
                "objects" => number("objects") == f64::from(OBJECTS.min(1000)) && number("p50_us") > 0.0,
                "last" => {
                    let iterations = option("--iterations").unwrap_or_default();
                    same("iterations", iterations)
                        && same("counted", &format!("{iterations}00"))
                        && same("operations", "100")
                        && same("oneway", if words.contains(&"--oneway") { "true" } else { "false" })
                        && number("counted_secs") >= number("secs")
                        && number("secs") > 0.0
                }
                _ => number("mean_us") > 0.0 && same("n", option("--n").unwrap_or_default()),
            };
        if right { Ok(()) } else { Err(format!("the report is wrong: {report}")) }
    }
}

/// Returns `ttcp SUBCOMMAND`, over the transport that `ZORB_TEST_TRANSPORT` names.
fn ttcp(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttcp"));
    command.arg(subcommand);
    if let Ok(transport) = std::env::var("ZORB_TEST_TRANSPORT") {
        command.args(["--transport", &transport]);
    }
    command
}

/// Starts a bench server and waits until it is ready. Returns it, and the file with its reference.
fn serve(mut command: Command, scratch: &Scratch) -> (Process, PathBuf) {
    let path = scratch.path("bench.ior");
    command.arg("--ior").arg(&path).args(["--port", "0"]);
    let mut server = Process::start(command, scratch);
    server.ready(START);
    (server, path)
}

/// Returns the server's address from its reference.
fn address(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the server wrote its IOR");
    let ior: Ior = text.trim().parse().expect("an IOR");
    let profile = ior.iiop_profile().expect("an IIOP profile");
    format!("{}:{}", profile.host, profile.port)
}

fn corbaloc(version: &str, path: &Path) -> String {
    format!("corbaloc:iiop:{version}@{}", address(path))
}

/// A client of the other ORB floods `ttcp server`; without a version by its IOR, which contains 1.2.
fn their_client(orb: Foreign, name: &'static str, version: Option<&str>) {
    let Some(client) = Client::of(orb, "bench-client") else { return };
    let scratch = Scratch::new();
    let mut command = ttcp("server");
    command.args(["--lifeline", "--check", "--objects", &OBJECTS.to_string()]);
    let (_server, path) = serve(command, &scratch);
    let objects = version.is_none();
    let reach = version.map_or_else(|| path.display().to_string(), |version| corbaloc(version, &path));
    let reach = vec!["--ior".to_owned(), reach];
    let extent = Extent::of(orb == Foreign::JacOrb, version.is_none(), version);
    let title = format!("{orb:?} -> ttcp server, {}", version.unwrap_or("IOR"));
    Pairing { client, reach, name, ordered: true, objects, extent }.run(&title);
}

/// `ttcp client` floods a server of the other ORB: by its IOR up to that version, and by `corbaloc:`.
fn their_server(orb: Foreign, version: &str) {
    let Some(program) = orb.program("bench-server") else { return };
    let scratch = Scratch::new();
    let mut command = Command::new(program);
    // Each version uses another way of serving.
    let serving = match version {
        "1.0" => "default",
        "1.1" => "ids",
        _ => "map",
    };
    command.args(["--seconds", "600", "--check", "--objects", &OBJECTS.to_string(), "--serving", serving]);
    let (_server, path) = serve(command, &scratch);
    for by_ior in [true, false] {
        let at = if by_ior { path.display().to_string() } else { corbaloc(version, &path) };
        let client = Client::Each(Box::new(|| ttcp("client")));
        let reach = ["--ior", &at, "--giop", version].map(str::to_owned).to_vec();
        let title = format!("ttcp client -> {orb:?}, {}{version}", if by_ior { "IOR " } else { "" });
        let extent = Extent::of(false, by_ior && version == "1.2", Some(version));
        Pairing { client, reach, name: "zorb", ordered: false, objects: by_ior, extent }.run(&title);
    }
}

macro_rules! matrix {
    ($($orb:ident: $clients:ident, $servers:ident, $name:literal;)*) => {
        $(
            mod $clients {
                use super::{Foreign, their_client};

                /// For JacORB it takes ten seconds: all parts of the contract, each with its own options.
                #[test]
                fn ior() {
                    their_client(Foreign::$orb, $name, None);
                }

                #[test]
                fn corbaloc_1_0() {
                    their_client(Foreign::$orb, $name, Some("1.0"));
                }

                #[test]
                fn corbaloc_1_1() {
                    their_client(Foreign::$orb, $name, Some("1.1"));
                }

                #[test]
                fn corbaloc_1_2() {
                    their_client(Foreign::$orb, $name, Some("1.2"));
                }
            }

            mod $servers {
                use super::{Foreign, their_server};

                #[test]
                fn giop_1_0() {
                    their_server(Foreign::$orb, "1.0");
                }

                #[test]
                fn giop_1_1() {
                    their_server(Foreign::$orb, "1.1");
                }

                #[test]
                fn giop_1_2() {
                    their_server(Foreign::$orb, "1.2");
                }
            }
        )*
    };
}

matrix! {
    OmniOrb: omniorb_calls_ttcp_server, ttcp_client_calls_omniorb, "omniorb";
    JacOrb: jacorb_calls_ttcp_server, ttcp_client_calls_jacorb, "jacorb";
}

/// A checking server of the other ORB accepts correct elements, and ends at the first wrong one.
async fn finds_what_differs(foreign: Foreign, types: &[Element]) {
    let Some(program) = foreign.program("bench-server") else { return };
    for element in types {
        let scratch = Scratch::new();
        let mut command = Command::new(&program);
        command.args(["--seconds", "60", "--check"]);
        let (mut server, path) = serve(command, &scratch);
        let orb = Orb::builder().build().await.expect("a client");
        let ttcp: TtcpRef = orb
            .resolve(&Address::File(path).url(Object::Ttcp).expect("a reference"))
            .await
            .expect("it is there");
        let letter = |i: usize| b'a' + (i % 26) as u8;
        // The last element of the second sequence is that of another position.
        let at = |wrong: bool| (0..1000).map(move |i| if wrong && i == 999 { i + 1 } else { i });
        for wrong in [false, true] {
            let sent = match element {
                Element::Octet => ttcp.send_octet_seq(at(wrong).map(letter).collect::<Vec<u8>>()).await,
                Element::Char => {
                    ttcp.send_char_seq(at(wrong).map(|i| Char(letter(i))).collect::<Vec<_>>()).await
                }
                Element::Short => {
                    ttcp.send_short_seq(at(wrong).map(|i| i16::from(letter(i))).collect::<Vec<_>>()).await
                }
                Element::Long => {
                    ttcp.send_long_seq(at(wrong).map(|i| i32::from(letter(i))).collect::<Vec<_>>()).await
                }
                Element::Double => {
                    ttcp.send_double_seq(at(wrong).map(|i| f64::from(letter(i))).collect::<Vec<_>>()).await
                }
                Element::Struct | Element::Zstruct | Element::Struct32 => {
                    let structs = |(place, i): (usize, usize)| BinStruct {
                        s: place as i16,
                        c: Char(letter(place)),
                        l: place as i32,
                        o: place as u8,
                        d: i as f64 * 0.5,
                    };
                    ttcp.send_struct_seq(&at(wrong).enumerate().map(structs).collect::<Vec<_>>()).await
                }
            };
            sent.expect("a oneway");
            // Some servers run requests in another order than that of their arrival.
            let (mut confirmed, whole) = (0, 1000 * element.bytes());
            let begun = Instant::now();
            while confirmed < whole && begun.elapsed() < RUN {
                let Ok(more) = ttcp.sync().await else { break };
                confirmed += more;
            }
            assert_eq!(confirmed < whole, wrong, "{foreign:?} {element}: {confirmed} of {whole} bytes");
        }
        let status = server.end(RUN).expect("it ends");
        let told = server.output();
        assert!(
            status.code() == Some(4) && told.contains("element 999 of a sequence of 1000"),
            "{element}: {status} {told}"
        );
    }
}

#[tokio::test]
async fn omniorb_finds_what_differs() {
    use Element::{Char, Double, Long, Octet, Short, Struct};
    finds_what_differs(Foreign::OmniOrb, &[Octet, Char, Short, Long, Double, Struct]).await;
}

/// Virtual machines start slowly: only two types, a number and a struct.
#[tokio::test]
async fn jacorb_finds_what_differs() {
    finds_what_differs(Foreign::JacOrb, &[Element::Short, Element::Struct]).await;
}

/// omniORB's stubs write the same bytes as zorb's, by which the ladder compares them with its steps.
#[test]
fn omniorb_marshals_what_stubs_do() {
    use ttcp_bench::ladder::case::{Case, ElementType, Order};
    let Some(program) = Foreign::OmniOrb.program("bench-client") else { return };
    for kind in ElementType::ALL {
        for (order, word) in Order::ALL.into_iter().zip(["native", "foreign"]) {
            let name = kind.name().to_lowercase();
            let arguments =
                ["marshal", "--type", &name, "--order", word, "--size", "4096", "--total", "4096"];
            for side in ["sender", "receiver"] {
                let out = Command::new(&program).args(arguments).args(["--side", side]).output().unwrap();
                let text = String::from_utf8_lossy(&out.stdout).into_owned();
                let line: Value =
                    serde_json::from_str(text.trim()).unwrap_or_else(|e| panic!("{name}: {e}: {out:?}"));
                let own = format!("{:016x}", Case::new(kind, order, 4096).digest());
                assert_eq!(line["digest"], own.as_str(), "{name} {word} {side}");
                assert!(line["mbit_s"].as_f64().unwrap() > 0.0, "{line}");
            }
        }
    }
}

/// Clients of the published experiments time their floods at the server, which prints the results on a line.
#[tokio::test]
async fn clients_of_the_published_experiments_find_their_objects() {
    let scratch = Scratch::new();
    let mut command = ttcp("server");
    command.arg("--lifeline");
    let (server, path) = serve(command, &scratch);
    let orb = Orb::builder().build().await.expect("an ORB");
    for version in ["1.0", "1.2"] {
        let at = corbaloc(version, &path);
        let before = server.output().lines().count();
        let sequence: TtcpSequenceRef =
            orb.resolve(&format!("{at}/TTCP_IIOP_test")).await.expect("a reference");
        sequence.start_timer().await.unwrap();
        sequence.send_short_seq((0..1000i16).collect::<Vec<_>>()).await.unwrap();
        sequence.send_octet_seq(vec![7; 500]).await.unwrap();
        sequence.send_struct_seq(&vec![Default::default(); 10]).await.unwrap();
        sequence.stop_timer().await.unwrap();
        // The last oneway is complete when a subsequent call is.
        assert!(!sequence.non_existent().await.unwrap());
        let throughput: TtcpThroughputRef =
            orb.resolve(&format!("{at}/ttcp_throughput")).await.expect("a reference");
        throughput.start_timer().await.unwrap();
        throughput.send_double_seq((0..100).map(f64::from).collect::<Vec<_>>()).await.unwrap();
        throughput.send_long_seq((0..100).collect::<Vec<_>>()).await.unwrap();
        throughput.send_char_seq(vec![zorb::Char(b'a'); 100]).await.unwrap();
        throughput.stop_timer().await.unwrap();
        assert!(!throughput.non_existent().await.unwrap());
        let output = server.output();
        let told: Vec<&str> = output.lines().skip(before).filter(|line| line.starts_with("ttcp: ")).collect();
        assert!(
            matches!(*told, [one, two] if one.starts_with("ttcp: 2740 bytes in ") && one.ends_with(", 3 calls")
                && two.starts_with("ttcp: 1300 bytes in ") && two.ends_with(", 3 calls")),
            "{output}"
        );
    }
}
