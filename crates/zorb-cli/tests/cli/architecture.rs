//! The modules of the crate, from the ground up: each uses only those before it.

#[test]
fn modules_use_each_other_in_one_direction() {
    module_order::check(
        env!("CARGO_MANIFEST_DIR"),
        &[
            "limits", "pretty", "output", "failure", "options", "log", "login", "target", "start", "client",
            "call", "ior", "load", "names", "new", "ping", "serve", "sniff", "top", "cli",
        ],
    );
}
