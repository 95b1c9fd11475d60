//! The objects of the service: contexts and iterators.

mod balance;
mod bootstrap;
mod contexts;
mod fault;
mod iterators;
mod service;
mod walk;

pub(crate) use bootstrap::{BOOTSTRAP_KEY, BootstrapServant};
pub(crate) use contexts::{ContextLocator, ContextServant};
pub(crate) use iterators::IteratorServant;
pub(crate) use service::{Options, ServedObjects, Service};
