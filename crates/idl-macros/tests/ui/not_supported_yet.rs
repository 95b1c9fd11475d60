idl_macros::idl! {
    abstract interface A { };
}

fn main() {}
