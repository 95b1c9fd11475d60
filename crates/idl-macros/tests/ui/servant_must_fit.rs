// What rustc says about generated names points at the IDL.
#[path = "../mock/mod.rs"]
mod mock;

idl_macros::idl! {
    crate = crate::mock;
    interface Counter { void add(in long n); };
}

struct Mine;

impl CounterServant for Mine {}

fn main() {}
