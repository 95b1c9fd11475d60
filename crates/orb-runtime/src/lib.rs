//! References, invocation, connections, transports and dispatch of the zorb ORB on tokio
pub mod link;
