//! Finding the operation of a request.

use crate::experiments::{OperationDemux, PathDemux};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::optable::OpTable;
use crate::servant::request::ServerRequest;

impl ServerRequest {
    /// Returns the number of the operation that is called.
    #[inline]
    #[must_use]
    pub fn find<const N: usize, const SLOTS: usize>(&self, table: &OpTable<N, SLOTS>) -> Option<usize> {
        let demux = &self.current.core().config.server.demux;
        match demux.operations {
            OperationDemux::Perfect if demux.path != PathDemux::DeLayered => table.find(self.operation()),
            other => self.find_by(table, other),
        }
    }

    #[cold]
    fn find_by<const N: usize, const SLOTS: usize>(
        &self,
        table: &OpTable<N, SLOTS>,
        way: OperationDemux,
    ) -> Option<usize> {
        let found = self.current.number().map(usize::from).filter(|number| *number < N);
        found.or_else(|| table.find_by(way, self.operation()))
    }
}

/// Returns the name of the operation that a request calls, which may be sent as a number.
#[inline]
pub(crate) fn name_of<'a>(orb: &Shared, entry: &ActiveObject, operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => entry.skeleton.operations().name_of(operation),
        _ => operation,
    }
}

/// Returns the name of the operation before the object is looked up, for the wire log.
#[cold]
pub(crate) fn shown<'a>(orb: &Shared, key: &[u8], operation: &'a str) -> &'a str {
    match orb.config.server.demux.operations {
        OperationDemux::Numeric => {
            orb.adapter().find(key).map_or(operation, |entry| name_of(orb, &entry, operation))
        }
        _ => operation,
    }
}
