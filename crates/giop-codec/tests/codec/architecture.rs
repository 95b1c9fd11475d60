//! The modules of the crate, from the ground up: each uses only those before it.

#[test]
fn modules_use_each_other_in_one_direction() {
    module_order::check(
        env!("CARGO_MANIFEST_DIR"),
        &[
            "order",
            "printable",
            "error",
            "cdr",
            "exception",
            "code_set",
            "ior",
            "giop",
            "csi",
            "url",
            "program",
            "typecode",
            "value",
            "walk",
            "any",
            "dynamic",
        ],
    );
}
