//! Messages that are larger than is received by default, and the option that raises the limit.

use zorb::prelude::*;

use super::serve::Server;
use super::{patient, zorb};

const CAMERA: &str = "\
typedef sequence<octet> Photo;
typedef fixed<3,1> Price;
typedef sequence<Price> Prices;
typedef sequence<short> Levels;
interface Camera {
    Photo photo(in unsigned long size);
    Prices prices(in unsigned long count);
    Levels levels(in unsigned long count);
};
";

zorb::idl! {
    typedef sequence<octet> Photo;
    typedef fixed<3,1> Price;
    typedef sequence<Price> Prices;
    typedef sequence<short> Levels;
    interface Camera {
        Photo photo(in unsigned long size);
        Prices prices(in unsigned long count);
        Levels levels(in unsigned long count);
    };
}

struct Shot;

impl CameraServant for Shot {
    async fn photo(&self, size: u32) -> Result<Bytes, SystemException> {
        Ok(vec![7; size as usize].into())
    }

    async fn prices(&self, count: u32) -> Result<Vec<Price>, SystemException> {
        Ok(vec![Price::default(); count as usize])
    }

    async fn levels(&self, count: u32) -> Result<Seq<i16>, SystemException> {
        Ok(vec![-1; count as usize].into())
    }
}

fn idl() -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".idl").tempfile().unwrap();
    std::fs::write(file.path(), CAMERA).unwrap();
    file
}

/// Runs `work` beside a camera, with its reference and its IDL.
fn beside_a_camera(work: impl FnOnce(&str, &str) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let camera: CameraRef = orb.activate_named("Camera", Shot).unwrap();
        let camera = camera.to_string();
        tokio::task::spawn_blocking(move || work(&camera, idl().path().to_str().unwrap())).await.unwrap();
        orb.shutdown().await;
    });
}

const PHOTO: usize = 17 << 20;

#[test]
fn an_answer_over_the_limit_names_the_option_and_comes_with_it() {
    beside_a_camera(|camera, idl| {
        let size = PHOTO.to_string();
        let refused = patient(&["call", camera, "photo", &size, "--idl", idl]);
        assert_eq!(refused.code, 1, "{}", refused.err);
        assert!(refused.err.contains("16777216"), "{}", refused.err);
        assert!(refused.err.contains("--max-message SIZE"), "{}", refused.err);
        assert!(!refused.err.contains("Limits::"), "{}", refused.err);
        // Before the command and after it. A load of one call does not print its answer.
        let load = ["load", camera, "photo", &size, "-n", "1", "-c", "1", "--json", "--idl", idl];
        let option = ["--max-message", "18M"];
        for args in [[&option[..], &load].concat(), [&load[..], &option].concat()] {
            let load = patient(&args);
            assert_eq!((load.code, &load.json()["answered"]), (0, &1.into()), "{}{}", load.out, load.err);
        }
        assert_eq!(patient(&load).json()["failures"]["IMP_LIMIT"]["count"], 1);
    });
}

/// Each price takes two bytes in the message, and some dozens in memory.
#[test]
fn values_that_take_much_more_memory_than_their_message_come_with_the_same_option() {
    beside_a_camera(|camera, idl| {
        let call = |options: &[&str]| {
            patient(&[&["--json", "call", camera, "prices", "310000", "--idl", idl], options].concat())
        };
        let refused = call(&[]);
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(refused.err.contains("--max-message SIZE"), "{}", refused.err);
        let prices = call(&["--max-message", "16M"]);
        assert_eq!(prices.code, 0, "{}", prices.err);
        assert_eq!(prices.json()["$result"].as_array().map(Vec::len), Some(310_000));
    });
}

/// The answer needs memory for the text of the JSON and a piece of its lines, but no tree. A tree of shorts
/// would take 16 times as much memory as the message.
#[test]
#[cfg(target_os = "linux")]
fn an_answer_is_printed_in_the_memory_that_its_values_may_take() {
    const COUNT: usize = 1_000_000;
    beside_a_camera(|camera, idl| {
        for form in [&["--color", "never"][..], &["--json"]] {
            // 32 MiB: the program, and eight times the message.
            let run = std::process::Command::new("sh")
                .args(["-c", "ulimit -d 32768 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_zorb"), "call"])
                .args([camera, "levels", &COUNT.to_string(), "--idl", idl, "--timeout", "1000s"])
                .args(form)
                .output()
                .unwrap();
            assert!(run.status.success(), "{form:?}: {}", String::from_utf8_lossy(&run.stderr));
            let out = String::from_utf8(run.stdout).unwrap();
            assert!(out.starts_with("{\n  \"$result\": [\n    -1,\n"), "{}", &out[..40]);
            assert_eq!(out.lines().filter(|line| line.trim_end_matches(',') == "    -1").count(), COUNT);
        }
    });
}

/// The option raises what it names; all other limits are those of the environment.
#[test]
fn limits_of_the_environment_hold_beside_the_option() {
    beside_a_camera(|camera, idl| {
        let call = |variables: &[(&str, &str)], options: &[&str]| {
            let run = std::process::Command::new(env!("CARGO_BIN_EXE_zorb"))
                .args(["call", camera, "photo", "100000", "--idl", idl, "--timeout", "1000s"])
                .args(options)
                .envs(variables.iter().copied())
                .output()
                .unwrap();
            (run.status.code().unwrap(), String::from_utf8(run.stderr).unwrap())
        };
        let option = ["--max-message", "1M"];
        let small = ("ZORB_LIMITS_MAX_MESSAGE_SIZE", "64KiB");
        let (code, told) = call(&[small], &[]);
        assert!(code == 1 && told.contains("--max-message SIZE"), "{code} {told}");
        assert_eq!(call(&[small], &option), (0, String::new()));
        let (code, told) = call(&[("ZORB_LIMITS_MAX_DEPTHS", "3")], &option);
        assert!(
            code == 3 && told.contains("ZORB_LIMITS_MAX_DEPTHS: there is no limit with this name"),
            "{code} {told}"
        );
    });
}

#[test]
fn a_server_takes_larger_requests_with_the_option() {
    let idl = tempfile::Builder::new().suffix(".idl").tempfile().unwrap();
    std::fs::write(idl.path(), "typedef string Text; interface Desk { unsigned long keep(in Text data); };")
        .unwrap();
    let path = idl.path().to_str().unwrap();
    let arguments = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(arguments.path(), format!("\"{}\"", "x".repeat(2 << 20))).unwrap();
    let arguments = format!("@{}", arguments.path().to_str().unwrap());
    let served = ["--idl", path, "--object", "Desk=Desk", "--quiet", "--max-message"];
    let call = |server: &Server| patient(&["call", server.url(0), "keep", &arguments, "--idl", path]);
    let small = call(&Server::start(&[&served[..], &["1M"]].concat()));
    assert!(small.code == 1 && small.out.contains("IMP_LIMIT"), "{}{}", small.out, small.err);
    assert!(small.err.contains("the option --max-message"), "{}", small.err);
    let large = call(&Server::start(&[&served[..], &["4M"]].concat()));
    assert_eq!(large.code, 0, "{}", large.err);
}

#[test]
fn sizes_that_are_none_are_refused() {
    for wrong in ["0", "much", "5G"] {
        let run = zorb(&["--max-message", wrong, "ior", "dump", super::OMNIORB], "");
        assert_eq!(run.code, 2, "{wrong}: {}", run.out);
    }
}
