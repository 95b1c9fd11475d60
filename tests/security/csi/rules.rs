//! Rules for calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use zorb::csi::{Access, Authorizer, Decision, Required, Rules, RulesError};
use zorb::poa::AdapterActivator;
use zorb::{Orb, Poa, Reference, SystemException};

use crate::csi::{DENIED, Vault, VaultRef, as_user, assert_refused, builder, logins};

/// Returns a server with these rules, which accepts optional logins; its object with a plain key, and one of
/// a nested POA.
async fn guarded(authorizer: impl Authorizer) -> (Orb, Orb, VaultRef, VaultRef) {
    let wanted = logins().required(Required::Nothing).trust_user("gateway");
    let serving = builder().listen("iiop://127.0.0.1:0").logins(wanted).authorizer(authorizer);
    let server = serving.build().await.unwrap();
    let plain: VaultRef = server.activate_named("vault", Vault::default()).unwrap();
    let bank = server.root_poa().child("bank").create().unwrap();
    let accounts = bank.child("acc/ounts").persistent().user_ids().create().unwrap();
    let account: VaultRef = accounts.activate_with_id("acct-7", Vault::default()).unwrap();
    let client = builder().build().await.unwrap();
    let plain = client.resolve_unchecked(&plain.to_string()).await.unwrap();
    let account = client.resolve_unchecked(&account.to_string()).await.unwrap();
    (server, client, plain, account)
}

fn rules(text: &str) -> Rules {
    Rules::text(text).unwrap()
}

#[tokio::test]
async fn the_first_rule_that_fits_decides() {
    let (server, _client, plain, account) = guarded(rules(
        r#"
        default = "deny"
        [[rule]]
        decision = "deny"
        users = "bob"
        operations = "add"
        [[rule]]
        decision = "allow"
        users = ["ann", "b?b"]
        objects = "acct-*"
        [[rule]]
        decision = "allow"
        poas = ""
        objects = "vault"
        operations = ["_is_a", "who"]
        [[rule]]
        decision = "allow"
        users = "zoe"
        poas = "bank/acc%2Founts"
        interfaces = "IDL:Guarded/*"
        "#,
    ))
    .await;
    let (ann, bob) = (as_user("ann", "a secret"), as_user("bob", "another"));
    let zoe =
        as_user("gateway", "opens").assert_identity(zorb::csi::AssertedIdentity::Name("zoe".to_owned()));
    assert_eq!(account.with_credentials(&ann).add(1, 2).await.unwrap(), 3);
    assert_refused(account.with_credentials(&bob).add(1, 2).await, DENIED, "");
    assert_eq!(account.with_credentials(&bob).who().await.unwrap(), "Login bob");
    assert_refused(account.who().await, DENIED, "");
    // The rules apply to the asserted identity, not to the asserting one.
    assert_refused(account.with_credentials(&as_user("gateway", "opens")).who().await, DENIED, "");
    assert_eq!(account.with_credentials(&zoe).add(1, 2).await.unwrap(), 3);
    assert_refused(plain.with_credentials(&ann).add(1, 2).await, DENIED, "");
    assert_eq!(plain.who().await.unwrap(), "nobody");
    assert!(plain.is_a("IDL:Guarded/Vault:1.0").await.unwrap());
    assert_refused(plain.non_existent().await, DENIED, "");
    // A oneway is rejected without a notification.
    plain.push(1).await.unwrap();
    assert_refused(plain.pushed().await, DENIED, "");
    assert_eq!(server.csi_stats().denied, 7);
    assert_eq!(server.failed_oneways(), 1);
}

#[tokio::test]
async fn addresses_and_defaults_decide_where_nothing_else_is_said() {
    for (text, allowed) in [
        ("default = \"allow\"", true),
        ("default = \"deny\"", false),
        ("default = \"deny\"\nrule = [{ decision = \"allow\", addresses = \"127.0.0.0/8\" }]", true),
        (
            "default = \"allow\"\nrule = [{ decision = \"deny\", addresses = [\"::1\", \"127.0.0.1\"] }]",
            false,
        ),
        (
            "default = \"deny\"\nrule = [{ decision = \"allow\", addresses = [\"unix\", \"10.0.0.0/8\"] }]",
            false,
        ),
        // The caller is unknown: rules for users, subjects and certificates do not match.
        ("default = \"deny\"\nrule = [{ decision = \"allow\", users = \"*\" }]", false),
        ("default = \"deny\"\nrule = [{ decision = \"allow\", subjects = \"*\" }]", false),
        ("default = \"deny\"\nrule = [{ decision = \"allow\", certificates = \"*\" }]", false),
    ] {
        let (_server, _client, plain, _) = guarded(rules(text)).await;
        match plain.add(1, 2).await {
            Ok(sum) => assert!(sum == 3 && allowed, "{text}"),
            refused => {
                assert_refused(refused, DENIED, "");
                assert!(!allowed, "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_of_rules_is_read_again_while_the_server_runs() {
    let file = std::env::temp_dir().join(format!("zorb-rules-{}.toml", std::process::id()));
    std::fs::write(&file, "default = \"deny\"").unwrap();
    let rules = Rules::file(&file).unwrap();
    let (_server, _client, plain, _) = guarded(rules.clone()).await;
    assert_refused(plain.add(1, 2).await, DENIED, "");
    std::fs::write(&file, "default = \"allow\"").unwrap();
    assert_refused(plain.add(1, 2).await, DENIED, "");
    rules.reload().unwrap();
    assert_eq!(plain.add(1, 2).await.unwrap(), 3);
    // An invalid file changes nothing.
    std::fs::write(&file, "default = \"deny\"\n\nusers = 1").unwrap();
    let error = rules.reload().unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}:3: ", file.display())), "{error}");
    assert_eq!(plain.add(1, 2).await.unwrap(), 3);
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(rules.reload(), Err(RulesError::Read { .. })));
    assert_eq!(plain.add(1, 2).await.unwrap(), 3);
}

#[test]
fn what_is_wrong_with_a_file_of_rules_is_said_with_its_line() {
    let rule = "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\n";
    for (text, line, words) in [
        (String::new(), 1, "default = \"deny\""),
        ("default = \"denied\"".to_owned(), 1, "\"allow\" or \"deny\""),
        ("default = \"deny\"\nrule = 1".to_owned(), 2, "[[rule]]"),
        ("default = \"deny\"\nrule = [1]".to_owned(), 2, "[[rule]]"),
        ("default = \"deny\"\nrules = []".to_owned(), 2, "unknown key `rules`"),
        ("default = \"deny\"\n\n[[rule]]\nusers = \"ann\"".to_owned(), 3, "has no decision"),
        (format!("{rule}user = \"ann\""), 4, "unknown key `user`"),
        (format!("{rule}users = 1"), 4, "a list of texts"),
        (format!("{rule}users = [\n\"ann\",\n2]"), 6, "a list of texts"),
        (format!("{rule}users = []"), 4, "the list is empty"),
        (format!("{rule}addresses = [\"10.0.0.0/33\"]"), 4, "expected an IP address"),
        (format!("{rule}decision = \"deny\""), 4, "duplicate"),
        (format!("{rule}users = \"ann"), 4, ""),
        (format!("{rule}[[rules]]"), 4, "unknown key `rules`"),
    ] {
        let error = Rules::text(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("rules:{line}: ")) && error.contains(words), "{text}: {error}");
    }
}

/// Allows requests whose servant exists, and counts.
#[derive(Clone, Default)]
struct Strict {
    asked: Arc<AtomicU32>,
    for_nobody: Arc<AtomicU32>,
}

impl Authorizer for Strict {
    fn decide(&self, access: &Access<'_>) -> Decision {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if access.interface().is_some() {
            return Decision::Allow;
        }
        self.for_nobody.fetch_add(1, Ordering::Relaxed);
        assert!(access.operation() == "add" && access.object_id() == b"missing");
        Decision::Deny
    }
}

#[tokio::test]
async fn locate_request_neither_reveals_nor_creates_objects_without_permission() {
    let strict = Strict::default();
    let (server, client, plain, account) = guarded(strict.clone()).await;
    assert!(plain.locate().await.unwrap() && account.locate().await.unwrap());
    assert_eq!(strict.asked.load(Ordering::Relaxed), 0);
    let url = format!("corbaloc::1.2@{}/missing", server.endpoints()[0]);
    let missing: VaultRef = client.resolve_unchecked(&url).await.unwrap();
    assert!(missing.locate().await.unwrap());
    assert_refused(missing.add(1, 2).await, DENIED, "");
    assert_eq!(plain.add(1, 2).await.unwrap(), 3);
    let count = |count: &AtomicU32| count.load(Ordering::Relaxed);
    assert_eq!((count(&strict.asked), count(&strict.for_nobody)), (2, 1));
}

/// Creates every requested POA, and counts.
#[derive(Clone, Default)]
struct Maker(Arc<AtomicU32>);

impl AdapterActivator for Maker {
    async fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let poa = parent.child(name).persistent().user_ids().create().unwrap();
        if name == "accounts" {
            let _: VaultRef = poa.activate_with_id("acct-7", Vault::default()).unwrap();
        }
        poa.set_adapter_activator(self.clone());
        Ok(true)
    }
}

// clause: poa.adapter_activator.levels
#[tokio::test]
async fn denied_request_creates_no_poa() {
    // The ORB that created the references had the POAs.
    let other = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let bank = other.root_poa().child("bank").persistent().user_ids().create().unwrap();
    let accounts = bank.child("accounts").persistent().user_ids().create().unwrap();
    let account: VaultRef = accounts.create_reference_with_id("acct-7").unwrap();
    let key = account.as_object().ior().iiop_profile().unwrap().object_key;
    let key: String = key.as_slice().iter().map(|octet| format!("%{octet:02x}")).collect();

    let allowed = rules(
        r#"
        default = "deny"
        [[rule]]
        decision = "allow"
        users = "ann"
        poas = "bank/accounts"
        objects = "acct-*"
        "#,
    );
    let wanted = logins().required(Required::Nothing);
    let serving = builder().listen("iiop://127.0.0.1:0").logins(wanted).authorizer(allowed);
    let server = serving.build().await.unwrap();
    let maker = Maker::default();
    server.root_poa().set_adapter_activator(maker.clone());
    let client = builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.2@{}/{key}", server.endpoints()[0]);
    let account: VaultRef = client.resolve_unchecked(&url).await.unwrap();
    assert_refused(account.add(1, 2).await, DENIED, "");
    let login = |user, password| {
        let context = crate::csi::hostile::establish(0, user, password);
        account.with_context(context.id, context.data)
    };
    assert_refused(login("bob", "another").add(1, 2).await, DENIED, "");
    assert_eq!((maker.0.load(Ordering::Relaxed), server.csi_stats().denied), (0, 2));
    assert_eq!(login("ann", "a secret").add(1, 2).await.unwrap(), 3);
    assert_eq!(maker.0.load(Ordering::Relaxed), 2);
}
