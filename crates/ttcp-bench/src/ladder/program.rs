//! Step 6: zorb's interpreter, which runs a program that it compiled from a type code.

use std::hint::black_box;

use zorb::__private::v1::Decoder;
use zorb::dynamic::program::Program;
use zorb::wire::{ByteOrder, Version};
use zorb::{Bytes, Char, Seq, TypeCode, Typed};

use super::Engine;
use super::case::{BinStruct, Case, ElementType};
use super::compiled::MessageOutput;

/// Converts between the encoding and C's memory layout by the program of a type.
#[derive(Debug)]
pub(crate) struct Interpreter {
    program: Program,
    order: ByteOrder,
    value: Option<Bytes>,
    output: MessageOutput,
}

impl Interpreter {
    pub(crate) fn new(case: &Case) -> Self {
        let order = case.order.byte_order();
        let program = Program::of(&type_code(case.kind));
        Self { program, order, value: None, output: MessageOutput::new(order) }
    }
}

fn type_code(kind: ElementType) -> TypeCode {
    match kind {
        ElementType::Short => Seq::<i16>::type_code(),
        ElementType::Char => Seq::<Char>::type_code(),
        ElementType::Long => Seq::<i32>::type_code(),
        ElementType::Octet => Bytes::type_code(),
        ElementType::Double => Seq::<f64>::type_code(),
        ElementType::BinStruct => Vec::<BinStruct>::type_code(),
    }
}

impl Engine for Interpreter {
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()> {
        let mut decoder = Decoder::from_bytes(wire, self.order, Version::V1_2);
        self.value = Some(self.program.decode_flat(&mut decoder)?);
        anyhow::ensure!(decoder.remaining() == 0, "there are bytes after the value");
        Ok(())
    }

    fn release(&mut self) -> anyhow::Result<()> {
        drop(black_box(self.value.take()));
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let Some(value) = &self.value else { anyhow::bail!("there is no value") };
        self.program.encode_flat(black_box(value), self.output.begin())?;
        self.output.finish();
        Ok(())
    }

    fn sent_bytes(&mut self) -> Vec<u8> {
        self.output.bytes()
    }

    fn memory(&mut self) -> Option<Vec<u8>> {
        Some(self.value.as_deref().unwrap_or_default().to_vec())
    }
}
