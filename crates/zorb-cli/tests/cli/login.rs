//! `--user`: calls of a server that requires a login.

use zorb::csi::{Logins, Users};
use zorb::prelude::*;

use super::patient;

zorb::idl! {
    module Guarded {
        interface Vault { string look(); };
    };
}

struct Vault;

impl guarded::VaultServant for Vault {
    async fn look(&self) -> Result<String, SystemException> {
        let who = zorb::request().principal();
        Ok(who.as_ref().map_or("nobody", |who| who.name()).to_owned())
    }
}

const IDL: &str = "module Guarded { interface Vault { string look(); }; };";

/// Runs `work` beside a server that knows the user ann. Passes the reference of its vault, the same as a URL,
/// and a folder with `idl` and `password`.
pub(crate) fn beside_a_vault(work: impl FnOnce(&str, &str, &std::path::Path) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let users = Users::text(&Users::hash_entry("ann", "sesame").unwrap()).unwrap();
        let logins = Logins::new(users).allow_plaintext_passwords();
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").logins(logins).build().await.unwrap();
        let vault: guarded::VaultRef = orb.activate_named("Vault", Vault).unwrap();
        let (ior, url) = (vault.to_string(), vault.to_corbaloc().unwrap());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("idl"), IDL).unwrap();
        std::fs::write(folder.path().join("password"), "sesame\n").unwrap();
        std::fs::write(folder.path().join("wrong"), "sesam\n").unwrap();
        tokio::task::spawn_blocking(move || work(&ior, &url, folder.path())).await.unwrap();
        orb.shutdown().await;
    });
}

#[test]
fn calls_and_pings_are_made_as_a_user() {
    beside_a_vault(|ior, url, folder| {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (idl, password, wrong) = (path("idl"), path("password"), path("wrong"));
        let call = |target: &str, options: &[&str]| {
            patient(
                &[&["call", target, "Guarded::Vault.look", "--idl", &idl, "--json"][..], options].concat(),
            )
        };
        let nobody = call(ior, &[]);
        assert!(nobody.code == 1 && nobody.out.contains("NO_PERMISSION"), "{}{}", nobody.out, nobody.err);
        let ann = ["--user", "ann", "--password-file", &password, "--plaintext-password"];
        // A URL does not say that a login is wanted.
        for target in [ior, url] {
            let seen = call(target, &ann);
            assert_eq!(seen.code, 0, "{}{}", seen.out, seen.err);
            assert_eq!(seen.json()["$result"], "ann");
        }
        let text = patient(&["call", ior, "look", "--idl", &idl]);
        assert!(text.code == 1 && text.err.contains("--user NAME"), "{}", text.err);
        let plain =
            patient(&["call", ior, "look", "--idl", &idl, "--user", "ann", "--password-file", &password]);
        assert!(plain.code == 1 && plain.err.contains("--plaintext-password"), "{}", plain.err);
        let refused = call(ior, &["--user", "ann", "--password-file", &wrong, "--plaintext-password"]);
        assert!(refused.code == 1 && refused.out.contains("NO_PERMISSION"), "{}", refused.out);
        let ping = |options: &[&str]| patient(&[&["ping", ior, "-c", "1"][..], options].concat());
        assert_eq!(ping(&[]).code, 1);
        assert_eq!(ping(&ann).code, 0);
        let load = ["load", url, "Guarded::Vault.look", "--idl", &idl, "-n", "20", "-c", "2", "--json"];
        let load = patient(&[&load[..], &ann].concat());
        assert_eq!((load.code, &load.json()["answered"]), (0, &20.into()), "{}{}", load.out, load.err);
        // A password needs a user.
        assert_eq!(patient(&["call", ior, "look", "--password-file", &password]).code, 2);
        let missing = call(ior, &["--user", "ann", "--password-file", "/does/not/exist"]);
        assert!(missing.code == 3 && missing.err.contains("/does/not/exist"), "{}", missing.err);
    });
}
