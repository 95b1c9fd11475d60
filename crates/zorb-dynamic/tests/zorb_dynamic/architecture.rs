//! The modules of the crate, from the ground up: each uses only those before it.

#[test]
fn modules_use_each_other_in_one_direction() {
    module_order::check(env!("CARGO_MANIFEST_DIR"), &["value_info", "idl", "ifr", "conversions"]);
}
