//! The contract of the benchmark in gRPC: its messages and services, and the settings of client and server.

use std::marker::PhantomData;

use bytes::Bytes;
use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};
use ttcp_bench::test_loops::pattern;

/// The name of this peer in reports.
pub const NAME: &str = "tonic";
// HTTP/2 windows and frames for bulk data over a short path. The smaller default windows would stall a flood.
pub const STREAM_WINDOW_BYTES: u32 = 16 << 20;
pub const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;
pub const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = (1 << 30) + (1 << 20);

// Numbers have a fixed width, which is decoded faster than a variable width, except the small ones in the
// struct. Protobuf has no 16-bit integers.

#[derive(Clone, PartialEq, Message)]
pub struct BinStruct {
    #[prost(sint32, tag = "1")]
    pub s: i32,
    #[prost(uint32, tag = "2")]
    pub c: u32,
    #[prost(sfixed32, tag = "3")]
    pub l: i32,
    #[prost(uint32, tag = "4")]
    pub o: u32,
    #[prost(double, tag = "5")]
    pub d: f64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct Count {
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct OctetSeq {
    #[prost(bytes = "bytes", tag = "1")]
    pub v: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct CharSeq {
    #[prost(bytes = "bytes", tag = "1")]
    pub v: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShortSeq {
    #[prost(sfixed32, repeated, tag = "1")]
    pub v: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LongSeq {
    #[prost(sfixed32, repeated, tag = "1")]
    pub v: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DoubleSeq {
    #[prost(double, repeated, tag = "1")]
    pub v: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StructSeq {
    #[prost(message, repeated, tag = "1")]
    pub v: Vec<BinStruct>,
}

/// An element of test buffers.
pub trait Element: PartialEq {
    /// Returns the element at index `i` of a test buffer.
    fn at(i: usize) -> Self;
}

impl Element for u8 {
    fn at(i: usize) -> Self {
        pattern(i)
    }
}

impl Element for i32 {
    fn at(i: usize) -> Self {
        pattern(i).into()
    }
}

impl Element for f64 {
    fn at(i: usize) -> Self {
        pattern(i).into()
    }
}

impl Element for BinStruct {
    fn at(i: usize) -> Self {
        let (s, o) = (i as i16, i as u8);
        BinStruct { s: s.into(), c: pattern(i).into(), l: i as i32, o: o.into(), d: i as f64 * 0.5 }
    }
}

/// Returns a test buffer of `n` elements.
pub fn buffer<T: Element, S: FromIterator<T>>(n: usize) -> S {
    (0..n).map(T::at).collect()
}

/// prost's codec with larger buffers, which do not grow in small steps for a bulk message.
#[derive(Debug)]
pub struct BulkCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BulkCodec<T, U> {
    fn default() -> Self {
        BulkCodec(PhantomData)
    }
}

impl<T: Message + Send + 'static, U: Message + Default + Send + 'static> Codec for BulkCodec<T, U> {
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(16 << 10, 64 << 10))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(16 << 10, 64 << 10))
    }
}

/// Sets the sizes of both buffers of a socket, if `sockbuf` is given.
pub fn set_buffer_sizes(socket: &socket2::Socket, sockbuf: Option<u64>) -> std::io::Result<()> {
    if let Some(bytes) = sockbuf {
        socket.set_send_buffer_size(bytes as usize)?;
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    Ok(())
}

include!(concat!(env!("OUT_DIR"), "/ttcp.Ttcp.rs"));
include!(concat!(env!("OUT_DIR"), "/ttcp.Wide.rs"));
