idl_macros::idl!("no/such.idl");

fn main() {}
