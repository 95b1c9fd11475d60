//! The input, consumed from its front.

use giop_codec::giop::MessageHeader;
use giop_codec::{ByteOrder, Version};

/// The rest of the input. Zeros follow its end.
pub struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    pub fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rest without consuming it.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub fn octet(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.octet(), self.octet()])
    }

    /// Takes `len` bytes, or fewer if the input ends.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes a GIOP message of the length in its header, or a part of it if the input ends.
    pub fn message(&mut self) -> &'a [u8] {
        let header = self.0.first_chunk().map(MessageHeader::decode);
        let size = match header {
            Some(Ok(header)) => header.size as usize,
            _ => 0,
        };
        self.take(MessageHeader::LEN.saturating_add(size))
    }

    /// Takes a length: mostly small, sometimes a few thousand, rarely up to 124 KiB.
    pub fn length(&mut self) -> usize {
        match usize::from(self.octet()) {
            small @ 0..0x80 => small,
            middle @ 0x80..0xe0 => (middle - 0x80) * 64 + 3,
            large => (large - 0xdf) * 4096 + 1,
        }
    }

    /// Takes the size of a read or a write.
    pub fn portion(&mut self) -> usize {
        match self.octet() {
            0xc0.. => usize::MAX,
            few @ 0..0x80 => usize::from(few) + 1,
            more => usize::from(more - 0x7f) * 1021,
        }
    }

    pub fn version(&mut self) -> Version {
        match self.octet() % 8 {
            0 => Version::V1_0,
            1 => Version::V1_1,
            _ => Version::V1_2,
        }
    }

    pub fn order(&mut self) -> ByteOrder {
        if self.octet() & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }

    /// Selects one of `many` items, `None` if there are none.
    pub fn pick(&mut self, many: usize) -> Option<usize> {
        (many > 0).then(|| usize::from(self.octet()) % many)
    }
}
