//! The baseline of the ladder: bytes are copied unchanged, like over sockets.

use zorb::Bytes;

use super::Engine;

#[derive(Debug, Default)]
pub(crate) struct RawCopier {
    received: Vec<u8>,
    sent: Vec<u8>,
}

impl Engine for RawCopier {
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()> {
        self.received.extend_from_slice(wire);
        Ok(())
    }

    fn release(&mut self) -> anyhow::Result<()> {
        self.received.clear();
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.sent.clear();
        self.sent.extend_from_slice(&self.received);
        Ok(())
    }

    fn sent_bytes(&mut self) -> Vec<u8> {
        self.sent.clone()
    }

    fn memory(&mut self) -> Option<Vec<u8>> {
        None
    }
}
