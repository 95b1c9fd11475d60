//! The client of the gRPC peer. It has one connection and one thread, and uses the test loops that all peers
//! in Rust share.

use std::net::SocketAddrV4;

use anyhow::{anyhow, ensure};
use clap::Parser;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use tonic_peer::ttcp_client::TtcpClient;
use tonic_peer::wide_client::WideClient;
use tonic_peer::*;
use ttcp_bench::raw::RawClientArgs;
use ttcp_bench::report::Report;
use ttcp_bench::test_loops;
use ttcp_bench::work::{Element as Kind, Test, Work};

/// Maximum number of messages that wait to be sent over the connection.
const MAX_QUEUED_MESSAGES: usize = 16;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: RawClientArgs,
}

/// The sender of a stream of messages, and the call, which returns after the end of the stream.
type Stream<M> = (mpsc::Sender<M>, JoinHandle<Result<Response<Count>, Status>>);

/// Measures a flood. Messages are sent in a stream, which `sync` ends to get the server's byte count.
async fn flood<M, F>(work: &Work, message: M, call: impl Fn(ReceiverStream<M>) -> F) -> anyhow::Result<Report>
where
    M: Clone + Send + 'static,
    F: Future<Output = Result<Response<Count>, Status>> + Send + 'static,
{
    let stream: Mutex<Option<Stream<M>>> = Mutex::new(None);
    let send = || async {
        let mut stream = stream.lock().await;
        let (sender, _) = stream.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(MAX_QUEUED_MESSAGES);
            (sender, tokio::spawn(call(ReceiverStream::new(receiver))))
        });
        sender.send(message.clone()).await.map_err(|_| anyhow!("the server has ended the call"))
    };
    let sync = || async {
        let Some((sender, call)) = stream.lock().await.take() else { return Ok(0) };
        drop(sender);
        anyhow::Ok(call.await??.into_inner().bytes)
    };
    test_loops::ttcp(NAME, work, send, sync).await
}

async fn connect(args: &RawClientArgs) -> anyhow::Result<Channel> {
    let (address, sockbuf) = (SocketAddrV4::new(args.host, args.port), args.work.sockbuf);
    let connect = move |_| async move {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        set_buffer_sizes(&socket, sockbuf)?;
        socket.set_tcp_nodelay(true)?;
        socket.connect(&address.into())?;
        socket.set_nonblocking(true)?;
        std::io::Result::Ok(TokioIo::new(tokio::net::TcpStream::from_std(socket.into())?))
    };
    Ok(Endpoint::from_shared(format!("http://{address}"))?
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect_with_connector(tower::service_fn(connect))
        .await?)
}

async fn run(args: &RawClientArgs) -> anyhow::Result<Report> {
    let work = &args.work;
    work.check()?;
    let channel = connect(args).await?;
    let n = work.elements();
    let ttcp = TtcpClient::new(channel.clone());
    let ttcp = ttcp.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES);
    macro_rules! flood {
        ($send:ident, $message:expr) => {
            flood(work, $message, |stream| {
                let mut ttcp = ttcp.clone();
                async move { ttcp.$send(stream).await }
            })
            .await
        };
    }
    macro_rules! echo {
        ($echo:ident, $message:expr) => {{
            let message = $message;
            let back = ttcp.clone().$echo(message.clone()).await?.into_inner();
            ensure!(back == message, "the echo differs from what was sent");
            let echo = || {
                let (mut ttcp, message) = (ttcp.clone(), message.clone());
                async move { ttcp.$echo(message).await }
            };
            test_loops::latency(NAME, work, echo).await
        }};
    }
    let ping = || {
        let mut ttcp = ttcp.clone();
        async move { ttcp.ping(Empty {}).await.map(drop) }
    };
    match (work.test, work.element) {
        (Test::Ttcp, Kind::Octet) => flood!(send_octet_seq, OctetSeq { v: buffer(n) }),
        (Test::Ttcp, Kind::Char) => flood!(send_char_seq, CharSeq { v: buffer(n) }),
        (Test::Ttcp, Kind::Short) => flood!(send_short_seq, ShortSeq { v: buffer(n) }),
        (Test::Ttcp, Kind::Long) => flood!(send_long_seq, LongSeq { v: buffer(n) }),
        (Test::Ttcp, Kind::Double) => flood!(send_double_seq, DoubleSeq { v: buffer(n) }),
        (Test::Ttcp, Kind::Struct) => flood!(send_struct_seq, StructSeq { v: buffer(n) }),
        (Test::Ttcp | Test::Echo, Kind::Zstruct | Kind::Struct32) => {
            anyhow::bail!("gRPC cannot send memory images, as the element type {} requires", work.element)
        }
        (Test::Echo, Kind::Struct) => echo!(echo_structs, StructSeq { v: buffer(n) }),
        (Test::Echo, _) => echo!(echo_octets, OctetSeq { v: buffer(n) }),
        (Test::Ping, _) => test_loops::latency(NAME, work, ping).await,
        (Test::Demux, _) => {
            let wide = WideClient::new(channel);
            let last = || {
                let mut wide = wide.clone();
                async move { wide.m099(Empty {}).await }
            };
            test_loops::latency(NAME, work, last).await
        }
        (Test::Pipeline, _) => test_loops::pipeline(NAME, work, ping).await,
        (test, _) => anyhow::bail!("this peer does not support the test {test}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    run(&Cli::parse().args).await?.print()?;
    Ok(())
}
