//! The steps that interpret type codes, and their engines.
#![allow(dead_code, reason = "a step compiles files of other steps, and uses only a part of them")]

pub(crate) mod inlined;
pub(crate) mod merged;
pub(crate) mod original;
pub(crate) mod receiver;
pub(crate) mod sender;
pub(crate) mod typed;

use std::marker::PhantomData;

use zorb::Bytes;

use super::base::{self, CallCounter, Environment, memory};
use super::{Engine, Step};

/// Maximum size of a value without the buffers of its sequences.
const VALUE_BYTES: usize = 128;

/// Returns the engine of a step that interprets type codes. The type code must be in this machine's byte
/// order. If `swaps_bytes` is set, encoded values are in the opposite byte order.
pub(crate) fn engine<T: CallCounter>(
    step: Step,
    code: &[u8],
    swaps_bytes: bool,
) -> anyhow::Result<Box<dyn Engine>> {
    Ok(match step {
        Step::Original => Box::new(Original::<T>::new(code, swaps_bytes)?),
        Step::Inlined => Box::new(Inlined::<T>::new(code, swaps_bytes)?),
        Step::Merged => Box::new(Merged::<T>::new(code, swaps_bytes)?),
        Step::ReceiverSplit => Box::new(Receiver::<T>::new(code, swaps_bytes)?),
        Step::SenderSplit => Box::new(Sender::<T>::new(code, swaps_bytes)?),
        Step::Typed => Box::new(Typed::<T>::new(code, swaps_bytes)?),
        Step::Program | Step::Compiled | Step::Raw => {
            anyhow::bail!("step {} does not interpret type codes", step.title())
        }
    })
}

macro_rules! interpreters {
    ($($name:ident = $step:ident;)*) => { $(
        struct $name<T> {
            code: $step::StoredTypeCode,
            swaps_bytes: bool,
            env: Environment,
            value: [u8; VALUE_BYTES],
            buffer: Vec<u8>,
            written_bytes: usize,
            counter: PhantomData<T>,
        }

        impl<T: CallCounter> $name<T> {
            fn new(code: &[u8], swaps_bytes: bool) -> Result<Self, base::Fault> {
                let code = $step::StoredTypeCode::read::<T>(code)?;
                let (value, buffer, written_bytes, counter) = ([0; VALUE_BYTES], Vec::new(), 0, PhantomData);
                Ok(Self { code, swaps_bytes, env: Environment::default(), value, buffer, written_bytes, counter })
            }
        }

        impl<T: CallCounter> Engine for $name<T> {
            fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()> {
                let mut stream = $step::Cdr::<T>::reader(wire, self.swaps_bytes);
                $step::decode(&self.code.code(), &mut self.value, &mut [], &mut stream, &mut self.env)?;
                anyhow::ensure!(stream.position() == wire.len(), "there are bytes after the value");
                Ok(())
            }

            fn release(&mut self) -> anyhow::Result<()> {
                let mut no_stream = $step::Cdr::<T>::reader(&[], false);
                Ok($step::free(&self.code.code(), &mut self.value, &mut [], &mut no_stream, &mut self.env)?)
            }

            fn send(&mut self) -> anyhow::Result<()> {
                let mut stream = $step::Cdr::<T>::writer(std::mem::take(&mut self.buffer), self.swaps_bytes);
                $step::encode(&self.code.code(), &mut self.value, &mut [], &mut stream, &mut self.env)?;
                self.written_bytes = stream.position();
                self.buffer = stream.into_buffer();
                Ok(())
            }

            fn sent_bytes(&mut self) -> Vec<u8> {
                self.buffer.get(..self.written_bytes).unwrap_or_default().to_vec()
            }

            fn memory(&mut self) -> Option<Vec<u8>> {
                let (_, buffer) = memory::load_sequence(&self.value).ok()?;
                let block = self.env.heap.take_block(buffer);
                let copy = block.clone();
                self.env.heap.return_block(buffer, block);
                Some(copy)
            }

            #[cfg(test)]
            fn used_buffers(&self) -> usize {
                self.env.heap.used_blocks()
            }

            fn copy(&mut self) -> anyhow::Result<()> {
                let mut no_stream = $step::Cdr::<T>::reader(&[], false);
                let mut copy = [0; VALUE_BYTES];
                $step::copy(&self.code.code(), &mut self.value, &mut copy, &mut no_stream, &mut self.env)?;
                self.release()?;
                self.value = copy;
                Ok(())
            }
        }
    )* };
}

interpreters! {
    Original = original;
    Inlined = inlined;
    Merged = merged;
    Receiver = receiver;
    Sender = sender;
    Typed = typed;
}
