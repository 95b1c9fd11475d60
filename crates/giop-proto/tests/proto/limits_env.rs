//! Limits from the environment, which is global to the process: each case is a process of its own.

use std::process::Command;

use giop_proto::Limits;

const ROLE: &str = "LIMITS_ENV_CHILD";

/// The code of the processes that the test starts. It does nothing if it is run as a test.
#[test]
fn child() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut before = Limits::default();
    before.max_fragmented = 3;
    let said = match (Limits::from_env(), before.with_env()) {
        (Ok(limits), Ok(over)) => format!("{} {} {}", limits.max_depth, over.max_depth, over.max_fragmented),
        (Err(error), Err(_)) => error.to_string(),
        other => format!("{other:?}"),
    };
    println!("\n@{said}");
}

fn with(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "limits_env::child", "--nocapture"])
        .env(ROLE, "1")
        .envs(variables.iter().copied());
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    out.lines().find_map(|line| line.strip_prefix('@')).unwrap().to_owned()
}

#[test]
fn variables_set_limits_and_win_over_what_was_set_before() {
    assert_eq!(with(&[("ZORB_LIMITS_MAX_DEPTH", "7")]), "7 7 3");
    assert_eq!(with(&[("ZORB_LIMITS_MAX_DEPTH", ""), ("ZORB_LIMIT", "x")]), "64 64 3");
    let wrong = with(&[("ZORB_LIMITS_MAX_DEPTH", "deep")]);
    assert!(wrong.starts_with("ZORB_LIMITS_MAX_DEPTH: `deep` is not a whole number"), "{wrong}");
    assert!(with(&[("ZORB_LIMITS_DEPTH", "7")]).contains("there is no limit with this name"));
}
