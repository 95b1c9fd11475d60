//! JacORB and users with passwords (CSIv2, GSSUP), in both roles. It neither asserts nor accepts identities:
//! `README.md`.

use super::{CHECKS, START};
use ::zorb::csi::{Authenticator, Credentials, Login, LoginRefused, Logins};
use ::zorb::prelude::*;
use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::{Foreign, Process, Scratch};

::zorb::idl!("tests/interop/idl/login.idl");

use interop_login::{DoorRef, DoorServant};

struct Door;

impl DoorServant for Door {
    async fn caller(&self) -> Result<String, SystemException> {
        let principal = ::zorb::request().principal();
        Ok(principal.map_or("nobody".to_owned(), |who| format!("{:?} {}", who.kind(), who.name())))
    }

    async fn plus_one(&self, number: i32) -> Result<i32, SystemException> {
        Ok(number + 1)
    }
}

struct Two;

impl Authenticator for Two {
    fn check(&self, login: &Login<'_>, _: &::zorb::Peer) -> Result<String, LoginRefused> {
        let good = match login.user() {
            "ann" => login.password() == "a secret",
            "zoe" => login.password() == "z".repeat(300),
            _ => false,
        };
        if good { Ok(login.user().to_owned()) } else { Err(LoginRefused::because("not known")) }
    }
}

// clause: csi.gssup.login, csi.sas.stateful
#[tokio::test(flavor = "multi_thread")]
async fn jacorb_logs_in_at_zorb() {
    let Some(program) = Foreign::JacOrb.program("login-peer") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("login.ior");
    let builder = test_support::transport::builder().listen("iiop://127.0.0.1:0");
    let logins = Logins::new(Two).allow_plaintext_passwords().realm("doors");
    let server = builder.logins(logins).build().await.expect("a server");
    let door: DoorRef = server.activate(Door).expect("an object");
    std::fs::write(&path, door.to_string()).expect("the scratch directory can be written");
    let mut command = std::process::Command::new(program);
    command.arg("client").arg("--ior").arg(&path).args(["--seconds", &CHECKS.as_secs().to_string()]);
    let ended = tokio::task::spawn_blocking(move || {
        let mut client = Process::start(command, &scratch);
        (client.end(CHECKS), client.output())
    });
    let (status, output) = ended.await.expect("the client was waited for");
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{output}");
    let passed: Vec<String> =
        output.lines().filter(|line| line.starts_with("ok ")).map(str::to_owned).collect();
    assert_eq!(passed.len(), 6, "{output}");
    let stats = server.csi_stats();
    // Each request has a context id and the login itself: both are checked once.
    assert_eq!((stats.logins, stats.failed_logins, stats.unknown_callers), (3, 4, 2), "{stats:?}");
    cell("JacORB", Role::Server, "1.2", "login", Outcome::Good);
}

// clause: csi.gssup.login, csi.mechanisms
#[tokio::test(flavor = "multi_thread")]
async fn zorb_logs_in_at_jacorb() {
    let serving = tokio::task::spawn_blocking(|| Foreign::JacOrb.serve("login-peer", &["server"], START));
    let Some(server) = serving.await.expect("it was waited for") else { return };
    let client = test_support::transport::builder().build().await.expect("a client");
    let door: DoorRef = client.resolve_unchecked(&server.ior).await.expect("a reference");
    let login = |user: &str, password: &str| {
        let credentials = Credentials::login(user, password).allow_plaintext_passwords();
        door.with_credentials(&credentials)
    };
    let ann = login("ann", "a secret");
    for number in 0..3 {
        assert_eq!(ann.caller().await.expect("she may"), "ann");
        assert_eq!(ann.plus_one(number).await.expect("she may"), number + 1);
    }
    for refused in [login("ann", "another"), login("bob", "a secret"), door.clone()] {
        let exception = refused.plus_one(1).await.expect_err("he may not");
        assert_eq!(exception.kind, SystemExceptionKind::NoPermission, "{exception:?}");
        assert_eq!(exception.completed, CompletionStatus::No);
    }
    // Without permission the password is not sent.
    let careful = door.with_credentials(&Credentials::login("ann", "a secret"));
    let exception = careful.plus_one(1).await.expect_err("it may not go over plain TCP");
    assert_eq!(exception.kind, SystemExceptionKind::NoPermission);
    assert_eq!(ann.plus_one(1).await.expect("she may"), 2);
    cell("JacORB", Role::Client, "1.2", "login", Outcome::Good);
}
