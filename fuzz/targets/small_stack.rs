//! Inputs in a thread of their own, with little stack: what recurses without a bound overflows it long before it overflows that of the process.

/// Runs a target with an input in a thread of so many KiB. Threads of tokio have 2048.
pub fn run(kib: usize, target: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(kib << 10).spawn_scoped(scope, target);
        thread.expect("a thread").join().expect("it ends without a panic");
    });
}
