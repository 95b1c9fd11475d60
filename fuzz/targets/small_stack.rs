//! Runs inputs in a thread with a small stack: unbounded recursion overflows it long before it would overflow
//! the stack of the process.

/// Runs a target with an input in a thread with a stack of `kib` KiB. Threads of tokio have 2048.
pub fn run(kib: usize, target: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(kib << 10).spawn_scoped(scope, target);
        thread.expect("a thread").join().expect("it ends without a panic");
    });
}
