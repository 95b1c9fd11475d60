//! The order of the modules. The tests of their behaviour need generated code: `tests/dynamic` of `zorb`.

mod architecture;
