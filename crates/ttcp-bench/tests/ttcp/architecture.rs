//! The modules of the crate, from the ground up: each uses only those before it.

#[test]
fn modules_use_each_other_in_one_direction() {
    module_order::check(
        env!("CARGO_MANIFEST_DIR"),
        &[
            "blocking",
            "system",
            "giop",
            "parent_watch",
            "priority",
            "literature",
            "statistics",
            "figures",
            "profiler",
            "reference",
            "work",
            "series",
            "report",
            "test_loops",
            "ladder",
            "many_objects",
            "many_clients",
            "raw",
            "cli",
            "zorb_peer",
            "harness",
            "external_peers",
            "soak",
            "abuse",
            "experiments",
            "run",
        ],
    );
}
