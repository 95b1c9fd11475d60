//! Conversion of a servant's `@stream` results to streams for callers in the same process.

use std::future::{Future, poll_fn};

use giop_codec::cdr::Element;
use giop_codec::exception::SystemException;

use crate::servant::collocated_request::CollocatedRequest;
use crate::servant::item_stream::ItemStream;
use crate::servant::seq_stream::SeqStream;
use crate::servant::stream::ByteStream;
use crate::stream::{ByteSource, ItemSource, SeqSource, SourceContent};

/// The source of a servant's `@stream` result. Callers in the same process take the result as a stream.
pub trait ResultSource: Send + Sized {
    /// The type of the stream for the caller.
    type Stream;

    /// Reads the whole source into memory.
    fn collect(self) -> impl Future<Output = Result<Self, SystemException>> + Send;

    /// Converts the source to a stream. The source is polled in the context of `request`, if it is given.
    #[doc(hidden)]
    fn into_stream(self, request: Option<ResultRequest>) -> Self::Stream;
}

/// The collocated request to which a result belongs.
#[derive(Debug)]
pub struct ResultRequest(pub(crate) CollocatedRequest);

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

    fn into_stream(self, request: Option<ResultRequest>) -> ByteStream {
        ByteStream::of_source(self, request.map(|request| request.0))
    }
}

impl<T: Element> ResultSource for SeqSource<T> {
    type Stream = SeqStream<T>;

    async fn collect(self) -> Result<Self, SystemException> {
        Ok(Self::of(ByteSource::from(self).collect().await?))
    }

    fn into_stream(self, request: Option<ResultRequest>) -> SeqStream<T> {
        SeqStream::of_bytes(ByteSource::from(self).into_stream(request))
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

    fn into_stream(self, request: Option<ResultRequest>) -> ItemStream<T> {
        ItemStream::of_source(self, request.map(|request| request.0))
    }
}
