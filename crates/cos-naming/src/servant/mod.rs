//! The objects of the service: contexts and iterators.

mod balance;
mod bootstrap;
mod contexts;
mod fault;
mod iterators;
mod service;
mod walk;

pub(crate) use bootstrap::{BOOTSTRAP_KEY, InitialReferences};
pub(crate) use contexts::{Contexts, Locator};
pub(crate) use iterators::Iterating;
pub(crate) use service::{Options, Places, Service};
