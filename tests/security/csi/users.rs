//! Users with hashed passwords, from a file.

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use zorb::Reference;
use zorb::csi::{Logins, Users};

use crate::csi::{NOT_BELIEVED, as_user, assert_refused, builder, call, serve};

/// Returns a line with a fast hash, which is only suitable for tests.
fn line(user: &str, password: &str) -> String {
    let params = Params::new(8, 1, 1, None).unwrap();
    let salt = SaltString::encode_b64(user.repeat(8).as_bytes()).unwrap();
    let hash = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    format!("{user}:{}\n", hash.hash_password(password.as_bytes(), &salt).unwrap())
}

#[tokio::test]
async fn users_come_from_a_file_that_may_change() {
    let file = std::env::temp_dir().join(format!("zorb-users-{}", std::process::id()));
    std::fs::write(&file, format!("# who may\n\n{}{}", line("ann", "a secret"), line("bob", "b"))).unwrap();
    let users = Users::file(&file).unwrap();
    let (server, reference) =
        serve(builder().logins(Logins::new(users.clone()).allow_plaintext_passwords())).await;
    let (_client, ann) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_eq!(ann.who().await.unwrap(), "Login ann");
    for (user, password) in [("ann", "b"), ("carl", "b")] {
        assert_refused(ann.with_credentials(&as_user(user, password)).who().await, NOT_BELIEVED, "wrong");
    }

    // An invalid file changes nothing.
    std::fs::write(&file, format!("{}bob:plaintext\n", line("ann", "a secret"))).unwrap();
    let error = users.reload().unwrap_err().to_string();
    assert!(error.contains(":2: ") && !error.contains("plaintext"), "{error}");
    assert_eq!(ann.who().await.unwrap(), "Login ann");
    assert_eq!(server.csi_stats().logins, 1);

    // Removed users lose access at once, even on open connections; the others are authenticated again.
    std::fs::write(&file, line("bob", "b")).unwrap();
    users.reload().unwrap();
    assert_refused(ann.who().await, NOT_BELIEVED, "wrong");
    let (_client, bob) = call(builder().credentials(as_user("bob", "b")), &reference).await;
    assert_eq!(bob.who().await.unwrap(), "Login bob");
    users.reload().unwrap();
    assert_eq!(bob.who().await.unwrap(), "Login bob");
    assert_eq!(server.csi_stats().logins, 3);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn what_is_wrong_with_a_file_of_users_is_said_and_nothing_of_its_lines() {
    for (text, line, words) in [
        ("ann", 1, "a line must"),
        ("\nann:secret", 2, "not an Argon2 hash"),
        ("ann:$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ", 1, "not an Argon2 hash"),
        ("ann:$2b$10$abcdefghijklmnopqrstuv", 1, "not an Argon2 hash"),
        (&format!("{}:{}", "", &super::users::line("x", "y")[2..]), 1, "name is missing"),
        (&super::users::line("ann", "y").repeat(2), 2, "same name"),
    ] {
        let error = Users::text(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("users:{line}: ")) && error.contains(words), "{error}");
        assert!(!error.contains("secret") && !error.contains("c2Fs"), "{error}");
    }
    let missing = Users::file("/nowhere/users").unwrap_err().to_string();
    assert!(missing.contains("/nowhere/users"), "{missing}");
    assert!(Users::text("").is_ok());
}

#[tokio::test]
async fn a_line_that_was_made_is_good_for_that_password_alone() {
    for bad in ["", "a:b", "a\nb", " a", "#a"] {
        assert!(Users::hash_entry(bad, "x").is_err(), "{bad}");
    }
    let line = Users::hash_entry("ann", "a secret").unwrap();
    assert!(line.starts_with("ann:$argon2id$v=19$m=19456,t=2,p=1$"), "{line}");
    let users = Users::text(&line).unwrap();
    assert_eq!(format!("{users:?}"), "Users { file: None, users: 1 }");
    let (_server, reference) = serve(builder().logins(Logins::new(users).allow_plaintext_passwords())).await;
    let (_client, ann) = call(builder().credentials(as_user("ann", "a secret")), &reference).await;
    assert_eq!(ann.who().await.unwrap(), "Login ann");
    assert_refused(ann.with_credentials(&as_user("ann", "b")).who().await, NOT_BELIEVED, "wrong");
}
