//! The order of the modules of the crate, each of which uses only those before it, and limits of size.

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

#[test]
fn types_functions_and_circles_of_files_stay_small() {
    module_order::size_limits::check(env!("CARGO_MANIFEST_DIR"), &[]);
}
