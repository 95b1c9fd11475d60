//! Compiles `idl/shop.idl`; cargo runs this again when that or a file that it includes changes.

fn main() -> Result<(), zorb_build::Error> {
    zorb_build::Config::new()
        .include("../idl/common")
        .file("idl/shop.idl")
        .define("MOST_ITEMS=3")
        .rename("Shop::Counter::buy_all", "buy")
        .compile()
}
