//! The compiler as a library: texts, trees, findings, generated Rust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod architecture;
mod bad_input;
mod common;
mod components;
mod depth;
mod field;
mod files;
mod lean;
mod model;
mod soup;
mod sources;
mod standard;
mod templates;
mod ui;
mod work;
