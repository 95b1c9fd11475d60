//! Release of the memory that servants lent for incoming bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giop_proto::Loan;

/// Drops the memory that servants lent. Catches panics of their code.
#[cold]
#[expect(clippy::vec_box, reason = "loans are boxed everywhere, so that moving them is cheap")]
pub(crate) fn drop_loans(loans: Vec<Box<Loan>>) {
    for loan in loans {
        if catch_unwind(AssertUnwindSafe(|| drop(loan))).is_err() {
            tracing::warn!(target: "zorb", "a deposit target panicked when it was dropped");
        }
    }
}
