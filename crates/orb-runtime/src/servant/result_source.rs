//! Conversion of a servant's `@stream` results to streams for callers in the same process.

use std::future::{Future, poll_fn};

use giop_codec::cdr::Element;
use giop_codec::exception::SystemException;

use crate::servant::item_stream::ItemStream;
use crate::servant::seq_stream::SeqStream;
use crate::servant::served::ServedResult;
use crate::servant::stream::ByteStream;
use crate::stream::{ByteSource, ItemSource, SeqSource, SourceContent};

/// The source of a servant's `@stream` result. Callers in the same process take the result as a stream.
pub trait ResultSource: Send + Sized {
    /// The type of the stream for the caller.
    type Stream;

    /// Reads the whole source into memory.
    fn collect(self) -> impl Future<Output = Result<Self, SystemException>> + Send;

    /// Converts the source to a stream. With `served`, the caller polls the source as a part of this request.
    #[doc(hidden)]
    fn into_stream(self, served: Option<ResultRequest>) -> Self::Stream;
}

/// The request to which a result belongs.
#[derive(Debug)]
pub struct ResultRequest(pub(crate) ServedResult);

impl ResultSource for ByteSource {
    type Stream = ByteStream;

    async fn collect(self) -> Result<Self, SystemException> {
        let mut payload = match self.into_content() {
            SourceContent::Bytes(bytes) => return Ok(bytes.into()),
            SourceContent::Payload(payload) => payload,
        };
        payload.drop_kept_chunks();
        let mut bytes = Vec::new();
        while let Some(chunk) = poll_fn(|cx| payload.poll_result_chunk(cx)).await {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes.into())
    }

    fn into_stream(self, served: Option<ResultRequest>) -> ByteStream {
        ByteStream::served(self, served.map(|served| served.0))
    }
}

impl<T: Element> ResultSource for SeqSource<T> {
    type Stream = SeqStream<T>;

    async fn collect(self) -> Result<Self, SystemException> {
        Ok(Self::of(ByteSource::from(self).collect().await?))
    }

    fn into_stream(self, served: Option<ResultRequest>) -> SeqStream<T> {
        SeqStream::of_bytes(ByteSource::from(self).into_stream(served))
    }
}

impl<T: Send + 'static> ResultSource for ItemSource<T> {
    type Stream = ItemStream<T>;

    async fn collect(mut self) -> Result<Self, SystemException> {
        let mut items = Vec::new();
        while let Some(item) = poll_fn(|cx| self.poll_item(cx)).await {
            items.push(item?);
        }
        Ok(items.into())
    }

    fn into_stream(self, served: Option<ResultRequest>) -> ItemStream<T> {
        ItemStream::served(self, served.map(|served| served.0))
    }
}
