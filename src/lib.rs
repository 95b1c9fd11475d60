//! A CORBA Object Request Broker for async Rust.
