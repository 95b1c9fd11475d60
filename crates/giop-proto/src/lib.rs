//! The sans-IO GIOP connection machine of the zorb ORB.

pub mod pool;
pub mod receive;
pub mod outbox;
pub mod calls;
