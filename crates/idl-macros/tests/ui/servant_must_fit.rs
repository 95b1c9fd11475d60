// What rustc says about generated names points at the IDL.
idl_macros::idl! {
    interface Counter { void add(in long n); };
}

struct Mine;

impl CounterServant for Mine {}

fn main() {}
