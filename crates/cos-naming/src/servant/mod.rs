//! The servants of the service's objects: contexts, iterators, and the object of the bootstrap protocol.

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
pub(crate) use service::{ServedObjects, Service, ServiceOptions};
