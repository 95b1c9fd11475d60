//! The server of the gRPC peer. It has one thread, like the server of zorb.

use std::net::SocketAddrV4;

use clap::Parser;
use socket2::{Domain, Socket, Type};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming, async_trait};
use tonic_peer::ttcp_server::{Ttcp, TtcpServer};
use tonic_peer::wide_server::{Wide, WideServer};
use tonic_peer::*;
use ttcp_bench::raw::RawServerArgs;
use ttcp_bench::test_loops::{EXIT_MISMATCH, format_mismatch};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: RawServerArgs,
}

type Reply<T> = Result<Response<T>, Status>;

/// Counts the user bytes of streams of decoded messages. With `check`, also checks their values.
struct Sink {
    check: bool,
}

impl Sink {
    fn exit_on_mismatch<T: Element>(&self, items: &[T]) {
        let wrong = || items.iter().enumerate().find(|(i, item)| **item != T::at(*i));
        if let Some((i, _)) = self.check.then(wrong).flatten() {
            eprintln!("bench-server: {}", format_mismatch(std::any::type_name::<T>(), i, items.len()));
            std::process::exit(EXIT_MISMATCH);
        }
    }
}

macro_rules! count {
    ($sink:ident, $request:ident, $width:expr) => {{
        let mut stream: Streaming<_> = $request.into_inner();
        let mut bytes = 0;
        while let Some(message) = stream.next().await {
            let message = message?;
            $sink.exit_on_mismatch(&message.v[..]);
            bytes += (message.v.len() * $width) as u64;
        }
        Ok(Response::new(Count { bytes }))
    }};
}

#[async_trait]
impl Ttcp for Sink {
    async fn send_short_seq(&self, request: Request<Streaming<ShortSeq>>) -> Reply<Count> {
        count!(self, request, 2)
    }

    async fn send_long_seq(&self, request: Request<Streaming<LongSeq>>) -> Reply<Count> {
        count!(self, request, 4)
    }

    async fn send_double_seq(&self, request: Request<Streaming<DoubleSeq>>) -> Reply<Count> {
        count!(self, request, 8)
    }

    async fn send_char_seq(&self, request: Request<Streaming<CharSeq>>) -> Reply<Count> {
        count!(self, request, 1)
    }

    async fn send_octet_seq(&self, request: Request<Streaming<OctetSeq>>) -> Reply<Count> {
        count!(self, request, 1)
    }

    async fn send_struct_seq(&self, request: Request<Streaming<StructSeq>>) -> Reply<Count> {
        count!(self, request, 24)
    }

    async fn ping(&self, _: Request<Empty>) -> Reply<Empty> {
        Ok(Response::new(Empty {}))
    }

    async fn echo_octets(&self, request: Request<OctetSeq>) -> Reply<OctetSeq> {
        Ok(Response::new(request.into_inner()))
    }

    async fn echo_structs(&self, request: Request<StructSeq>) -> Reply<StructSeq> {
        Ok(Response::new(request.into_inner()))
    }
}

/// A hundred operations that do nothing.
struct Nothing;

macro_rules! do_nothing {
    ($($operation:ident)*) => {
        #[async_trait]
        impl Wide for Nothing {
            $(async fn $operation(&self, _: Request<Empty>) -> Reply<Empty> {
                Ok(Response::new(Empty {}))
            })*
        }
    };
}

do_nothing! {
    m000 m001 m002 m003 m004 m005 m006 m007 m008 m009
    m010 m011 m012 m013 m014 m015 m016 m017 m018 m019
    m020 m021 m022 m023 m024 m025 m026 m027 m028 m029
    m030 m031 m032 m033 m034 m035 m036 m037 m038 m039
    m040 m041 m042 m043 m044 m045 m046 m047 m048 m049
    m050 m051 m052 m053 m054 m055 m056 m057 m058 m059
    m060 m061 m062 m063 m064 m065 m066 m067 m068 m069
    m070 m071 m072 m073 m074 m075 m076 m077 m078 m079
    m080 m081 m082 m083 m084 m085 m086 m087 m088 m089
    m090 m091 m092 m093 m094 m095 m096 m097 m098 m099
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Cli { args } = Cli::parse();
    args.parent_watch.start()?;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    // Before listen: accepted sockets inherit the sizes.
    set_buffer_sizes(&socket, args.sockbuf)?;
    socket.bind(&SocketAddrV4::new(args.host, args.port).into())?;
    socket.listen(64)?;
    socket.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(socket.into())?;
    ttcp_bench::reference::announce_ready(listener.local_addr()?)?;
    let connections = TcpListenerStream::new(listener).map(|accepted| {
        let stream = accepted?;
        stream.set_nodelay(true)?;
        std::io::Result::Ok(stream)
    });
    let ttcp = TtcpServer::new(Sink { check: args.check });
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .add_service(
            ttcp.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
        .add_service(WideServer::new(Nothing))
        .serve_with_incoming(connections)
        .await?;
    Ok(())
}
