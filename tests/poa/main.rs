//! The Portable Object Adapter: its tree, policies, managers and servants, and the look-up of objects.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod activators;
mod demux;
mod demux_trees;
mod destroy;
mod managers;
mod policies;
mod restart;
mod sequences;
mod servants;
mod threads;
