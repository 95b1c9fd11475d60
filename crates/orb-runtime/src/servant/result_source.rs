//! `@stream` results of servants, as callers in the same process take them.

use std::fmt;
use std::future::{Future, poll_fn};

use giop_codec::cdr::Element;
use giop_codec::exception::SystemException;

use crate::servant::item_stream::ItemStream;
use crate::servant::seq_stream::SeqStream;
use crate::servant::served::Served;
use crate::servant::stream::ByteStream;
use crate::stream::{ByteSource, Given, ItemSource, SeqSource};

/// The `@stream` results of servants, as callers in this process take them.
pub trait ResultSource: Send + Sized {
    /// The type of the stream for the caller.
    type Stream;

    /// Reads all of it into memory.
    ///
    /// # Errors
    /// Those of the source.
    fn collected(self) -> impl Future<Output = Result<Self, SystemException>> + Send;

    /// Converts it to the stream for the caller, which polls it as part of the request `served`.
    #[doc(hidden)]
    fn taken(self, served: Option<TakenFrom>) -> Self::Stream;
}

/// The request to which a result belongs.
pub struct TakenFrom(pub(crate) Served);

impl fmt::Debug for TakenFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResultSource for ByteSource {
    type Stream = ByteStream;

    async fn collected(self) -> Result<Self, SystemException> {
        let mut payload = match self.given() {
            Given::Octets(octets) => return Ok(octets.into()),
            Given::Payload(payload) => payload,
        };
        payload.keep_nothing();
        let mut octets = Vec::new();
        while let Some(chunk) = poll_fn(|cx| payload.poll_result(cx)).await {
            octets.extend_from_slice(&chunk?);
        }
        Ok(octets.into())
    }

    fn taken(self, served: Option<TakenFrom>) -> ByteStream {
        ByteStream::served(self, served.map(|served| served.0))
    }
}

impl<T: Element> ResultSource for SeqSource<T> {
    type Stream = SeqStream<T>;

    async fn collected(self) -> Result<Self, SystemException> {
        Ok(Self::of(ByteSource::from(self).collected().await?))
    }

    fn taken(self, served: Option<TakenFrom>) -> SeqStream<T> {
        SeqStream::of_octets(ByteSource::from(self).taken(served))
    }
}

impl<T: Send + 'static> ResultSource for ItemSource<T> {
    type Stream = ItemStream<T>;

    async fn collected(mut self) -> Result<Self, SystemException> {
        let mut items = Vec::new();
        while let Some(item) = poll_fn(|cx| self.poll_item(cx)).await {
            items.push(item?);
        }
        Ok(items.into())
    }

    fn taken(self, served: Option<TakenFrom>) -> ItemStream<T> {
        ItemStream::served(self, served.map(|served| served.0))
    }
}
