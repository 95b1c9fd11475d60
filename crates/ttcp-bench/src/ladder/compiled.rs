//! Step 7: the code that `idl!` generates for a type.

use std::collections::VecDeque;
use std::hint::black_box;

use zorb::__private::v1::{CdrDecode, CdrEncode, Decoder, Encoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{Bytes, Char, Seq};

use super::Engine;
use super::case::{BinStruct, Case, ElementType, memory_layout};

pub(crate) fn engine(case: &Case) -> Box<dyn Engine> {
    let order = case.order.byte_order();
    match case.kind {
        ElementType::Short => Box::new(CompiledEngine::<Seq<i16>>::new(order)),
        ElementType::Char => Box::new(CompiledEngine::<Seq<Char>>::new(order)),
        ElementType::Long => Box::new(CompiledEngine::<Seq<i32>>::new(order)),
        ElementType::Octet => Box::new(CompiledEngine::<Bytes>::new(order)),
        ElementType::Double => Box::new(CompiledEngine::<Seq<f64>>::new(order)),
        ElementType::BinStruct => Box::new(CompiledEngine::<Vec<BinStruct>>::new(order)),
    }
}

struct CompiledEngine<V> {
    order: ByteOrder,
    value: Option<V>,
    output: MessageOutput,
}

/// A sequence type that the engine encodes and decodes.
trait Elements: CdrEncode + CdrDecode {
    /// Returns the elements in C's memory layout.
    fn memory(&self) -> Vec<u8>;
}

impl<V: Elements> CompiledEngine<V> {
    fn new(order: ByteOrder) -> Self {
        Self { order, value: None, output: MessageOutput::new(order) }
    }
}

impl<V: Elements> Engine for CompiledEngine<V> {
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()> {
        let mut decoder = Decoder::from_bytes(wire, self.order, Version::V1_2);
        self.value = Some(decode(&mut decoder)?);
        anyhow::ensure!(decoder.remaining() == 0, "there are bytes after the value");
        Ok(())
    }

    fn release(&mut self) -> anyhow::Result<()> {
        drop(black_box(self.value.take()));
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let Some(value) = &self.value else { anyhow::bail!("there is no value") };
        encode(black_box(value), self.output.begin())?;
        self.output.finish();
        Ok(())
    }

    fn sent_bytes(&mut self) -> Vec<u8> {
        self.output.bytes()
    }

    fn memory(&mut self) -> Option<Vec<u8>> {
        Some(self.value.as_ref().map(Elements::memory).unwrap_or_default())
    }
}

#[inline(never)]
fn decode<V: CdrDecode>(decoder: &mut Decoder<'_>) -> anyhow::Result<V> {
    Ok(V::decode(decoder)?)
}

#[inline(never)]
fn encode<V: CdrEncode>(value: &V, encoder: &mut Encoder) -> anyhow::Result<()> {
    Ok(value.encode(encoder)?)
}

macro_rules! elements {
    ($($type:ty, $memory:expr;)*) => { $(
        impl Elements for $type {
            fn memory(&self) -> Vec<u8> {
                self.iter().flat_map($memory).collect()
            }
        }
    )* };
}

elements! {
    Seq<i16>, |x| x.to_ne_bytes();
    Seq<Char>, |x| [x.0];
    Seq<i32>, |x| x.to_ne_bytes();
    Bytes, |x| [*x];
    Seq<f64>, |x| x.to_ne_bytes();
    Vec<BinStruct>, memory_layout;
}

/// The output of an engine, which handles encoded values as a connection handles messages that it sends.
#[derive(Debug)]
pub(super) struct MessageOutput {
    order: ByteOrder,
    encoder: Encoder,
    parts: VecDeque<Bytes>,
}

impl MessageOutput {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self { order, encoder: Encoder::new(order, Version::V1_2), parts: VecDeque::new() }
    }

    pub(super) fn begin(&mut self) -> &mut Encoder {
        self.parts.clear();
        self.encoder.reset(self.order, Version::V1_2);
        &mut self.encoder
    }

    /// Completes a message. If it has no further parts, a connection sends it from the encoder's own buffer.
    pub(super) fn finish(&mut self) {
        if self.encoder.chunk_count() == 0 {
            black_box(self.encoder.head());
        } else {
            self.encoder.drain_into(&mut self.parts);
            black_box(&self.parts);
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        if self.parts.is_empty() {
            self.encoder.head().to_vec()
        } else {
            self.parts.iter().flatten().copied().collect()
        }
    }
}
