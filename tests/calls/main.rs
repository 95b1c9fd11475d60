//! Calls of objects: requests, replies and exceptions, operations generated from IDL, contexts, components.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod backlog;
mod components;
mod contexts;
mod custom_values;
mod handlers;
mod idl_calls;
mod invocations;
mod local_objects;
mod nested;
mod requests;
mod servant_errors;
#[cfg(all(feature = "cos-notification", feature = "dynamic"))]
mod standard_idl;
mod values;
