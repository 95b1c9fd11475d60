//! Release of memory that servants lent for incoming bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giop_proto::Loan;

/// Drops memory that servants had lent, and contains panics of their code.
#[cold]
#[expect(clippy::vec_box, reason = "the boxes go round")]
pub(crate) fn drop_lent(loans: Vec<Box<Loan>>) {
    for loan in loans {
        if catch_unwind(AssertUnwindSafe(|| drop(loan))).is_err() {
            tracing::warn!(target: "zorb", "a deposit target panicked when it was dropped");
        }
    }
}
