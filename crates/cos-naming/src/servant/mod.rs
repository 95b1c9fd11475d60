//! The objects of the service: contexts and iterators.

mod balance;
mod contexts;
mod fault;
mod iterators;
mod service;
mod walk;

pub(crate) use contexts::{Contexts, Locator};
pub(crate) use iterators::Iterating;
pub(crate) use service::{Decoded, Options, Places, Service};
