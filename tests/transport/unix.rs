//! Unix sockets: servers and clients of one machine without TCP.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::transport;
use zorb::prelude::*;
use zorb::wire::Ior;
use zorb::{ByteStream, Peer, WaitStrategy};

zorb::idl! {
    module Near {
        typedef sequence<octet> Octets;
        typedef sequence<double> Numbers;
        interface Desk {
            string from();
            Octets echo(in Octets data);
            Numbers doubled(in Numbers numbers);
            unsigned long long drain(@stream in Octets data);
            oneway void note(in long number);
            long noted();
            Desk other();
        };
    };
}

use near::{DeskRef, DeskServant};

#[derive(Default)]
struct Desk {
    noted: AtomicUsize,
}

impl DeskServant for Desk {
    async fn from(&self) -> Result<String, SystemException> {
        Ok(match zorb::request().peer() {
            Peer::Unix(path) => format!("unix {}", path.display()),
            Peer::Tcp(_) => "tcp".to_owned(),
            other => other.to_string(),
        })
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }

    async fn doubled(&self, numbers: Seq<f64>) -> Result<Seq<f64>, SystemException> {
        Ok(numbers.iter().map(|number| number * 2.0).collect::<Vec<_>>().into())
    }

    async fn drain(&self, mut data: ByteStream) -> Result<u64, SystemException> {
        let mut bytes = 0;
        while let Some(chunk) = data.next().await {
            bytes += chunk?.len() as u64;
        }
        Ok(bytes)
    }

    async fn note(&self, _number: i32) -> Result<(), SystemException> {
        self.noted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.noted.load(Ordering::SeqCst) as i32)
    }

    async fn other(&self) -> Result<Option<DeskRef>, SystemException> {
        Ok(Some(zorb::request().target()))
    }
}

/// A directory for the sockets of a test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // Short, because the path of a socket has at most 107 bytes.
        let name = format!("zorb-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    fn endpoint(&self) -> String {
        format!("uiop://{}", self.socket().display())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn serve(endpoints: &[String]) -> (Orb, DeskRef) {
    let builder = endpoints.iter().fold(transport::builder(), |builder, endpoint| builder.listen(endpoint));
    let server = builder.build().await.unwrap();
    let desk = server.activate_named("Desk", Desk::default()).unwrap();
    (server, desk)
}

async fn client() -> Orb {
    transport::builder().build().await.unwrap()
}

fn from(path: &Path) -> String {
    format!("unix {}", path.display())
}

#[tokio::test]
async fn calls_of_every_size_go_over_a_unix_socket() {
    let directory = Directory::new();
    let (server, here) = serve(&[directory.endpoint()]).await;
    assert_eq!(server.endpoints(), [directory.endpoint()]);
    let client = client().await;
    let desk: DeskRef = client.resolve(&here.to_string()).await.unwrap();
    assert_eq!(desk.from().await.unwrap(), from(&directory.socket()));
    for size in [0, 1, 1000, 70_000, 300_000, 5_000_000] {
        let bytes = Bytes::from((0..size).map(|i| (i % 251) as u8).collect::<Vec<_>>());
        assert_eq!(desk.echo(bytes.clone()).await.unwrap(), bytes);
        assert_eq!(desk.drain(bytes).await.unwrap(), size as u64);
    }
    let numbers: Vec<f64> = (0..200_000).map(f64::from).collect();
    let doubled = desk.doubled(numbers.as_slice()).await.unwrap();
    assert!(doubled.iter().zip(&numbers).all(|(doubled, number)| *doubled == number * 2.0));
    for number in 0..5000 {
        desk.note(number).await.unwrap();
    }
    assert_eq!(desk.noted().await.unwrap(), 5000);
    assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
    if transport::transport() != zorb::Transport::Epoll {
        assert_eq!(client.transport_stats().ring_connections, 1);
    }
    client.shutdown().await;
    server.shutdown().await;
    assert!(!directory.socket().exists(), "the file goes with its server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_it() {
    let directory = Directory::new();
    let (_server, here) = serve(&[directory.endpoint()]).await;
    let client = client().await;
    let desk: DeskRef = client.resolve(&here.to_string()).await.unwrap();
    let calls: Vec<_> = (0..64)
        .map(|number| {
            let desk = desk.clone();
            tokio::spawn(async move {
                let bytes = Bytes::from(vec![number; 40_000]);
                for _ in 0..20 {
                    assert_eq!(desk.echo(bytes.clone()).await.unwrap(), bytes);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[test]
fn plain_threads_wait_on_it_too() {
    let directory = Directory::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_server, here) = runtime.block_on(serve(&[directory.endpoint()]));
    let client = zorb::blocking::wait(
        Orb::builder().wait_strategy(WaitStrategy::BusyPoll(Duration::from_micros(20))).build(),
    );
    let client = client.unwrap();
    let desk: DeskRef = zorb::blocking::wait(client.resolve(&here.to_string())).unwrap();
    for _ in 0..100 {
        assert_eq!(zorb::blocking::wait(desk.from()).unwrap(), from(&directory.socket()));
    }
}

#[tokio::test]
async fn it_is_taken_before_tcp_and_tcp_where_it_is_not_there() {
    let directory = Directory::new();
    let (_server, here) = serve(&["iiop://127.0.0.1:0".to_owned(), directory.endpoint()]).await;
    let near = client().await;
    let desk: DeskRef = near.resolve(&here.to_string()).await.unwrap();
    assert_eq!(desk.from().await.unwrap(), from(&directory.socket()));
    // A client that must not follow paths in references uses TCP.
    let careful = transport::builder().unix_sockets(false).build().await.unwrap();
    let desk: DeskRef = careful.resolve(&here.to_string()).await.unwrap();
    assert_eq!(desk.from().await.unwrap(), "tcp");
    // So does a client without access to the file, as on another machine.
    std::fs::remove_file(directory.socket()).unwrap();
    let far = client().await;
    let desk: DeskRef = far.resolve(&here.to_string()).await.unwrap();
    assert_eq!(desk.from().await.unwrap(), "tcp");
    assert_eq!(far.open_connections(), 1);
}

// clause: ior.profile.tao_uiop
#[tokio::test]
async fn a_profile_of_taos_is_called() {
    let directory = Directory::new();
    let (server, here) = serve(&[directory.endpoint()]).await;
    let ior = here.ior();
    let profiles = ior.uiop_profiles().map(|profile| profile.to_tagged().unwrap()).collect();
    let only = Ior { type_id: ior.type_id.clone(), profiles };
    let client = client().await;
    let desk: DeskRef = client.resolve(&only.to_string()).await.unwrap();
    assert_eq!(desk.from().await.unwrap(), from(&directory.socket()));
    // A server recognizes its own objects by it.
    let own: DeskRef = server.resolve(&only.to_string()).await.unwrap();
    assert_eq!(own.from().await.unwrap(), "this process");
}

// clause: ior.corbaloc.uiop
#[tokio::test]
async fn a_corbaloc_names_a_path() {
    let directory = Directory::new();
    let (server, _) = serve(&[directory.endpoint()]).await;
    let client = client().await;
    let path = directory.socket();
    for url in [
        format!("corbaloc:uiop:1.2@{}|Desk", path.display()),
        format!("corbaloc:omniunix:{}:/Desk", path.display()),
    ] {
        let desk: DeskRef = client.resolve(&url).await.unwrap();
        assert_eq!(desk.from().await.unwrap(), from(&path));
        let own: DeskRef = server.resolve(&url).await.unwrap();
        assert_eq!(own.from().await.unwrap(), "this process");
        // References are sent over it as well as calls.
        assert_eq!(desk.other().await.unwrap().unwrap().noted().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_server_takes_the_place_of_a_dead_one_and_not_of_one_that_lives() {
    let directory = Directory::new();
    drop(std::os::unix::net::UnixListener::bind(directory.socket()).unwrap());
    let (_server, here) = serve(&[directory.endpoint()]).await;
    let error = transport::builder().listen(directory.endpoint()).build().await.unwrap_err();
    assert!(error.to_string().contains("another server listens on the path"), "{error}");
    let client = client().await;
    let desk: DeskRef = client.resolve(&here.to_string()).await.unwrap();
    assert_eq!(desk.noted().await.unwrap(), 0);
    for wrong in ["uiop://", "uiop:///tmp/a|b", "unix:///tmp/a"] {
        let error = transport::builder().listen(wrong).build().await.unwrap_err();
        assert!(error.to_string().contains("uiop://PATH"), "{error}");
    }
    let error = transport::builder().listen(format!("uiop:///{}", "long".repeat(40))).build().await;
    assert!(error.unwrap_err().to_string().contains("long"));
}

#[tokio::test]
async fn the_file_has_the_permissions_that_the_builder_says() {
    let directory = Directory::new();
    let server = transport::builder().listen(directory.endpoint()).unix_mode(0o600).build().await.unwrap();
    let mode = std::fs::metadata(directory.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.shutdown().await;
}

#[tokio::test]
async fn the_connection_of_a_server_that_comes_back_is_made_again() {
    let directory = Directory::new();
    let (server, here) = serve(&[directory.endpoint()]).await;
    let client = client().await;
    let desk: DeskRef = client.resolve(&here.to_string()).await.unwrap();
    desk.noted().await.unwrap();
    server.shutdown().await;
    let error = desk.noted().await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = std::error::Error::source(&error).unwrap().to_string();
    assert!(text.contains(&directory.endpoint()), "{text}");
    let (_server, _) = serve(&[directory.endpoint()]).await;
    assert_eq!(desk.noted().await.unwrap(), 0);
}

#[tokio::test]
async fn arguments_name_sockets_as_omniorb_does() {
    let directory = Directory::new();
    let endpoint = format!("giop:unix:{}", directory.socket().display());
    let (builder, rest) = Orb::from_args(["-ORBendPoint", &endpoint, "other"]).unwrap();
    assert_eq!(rest, ["other"]);
    let server = builder.build().await.unwrap();
    assert_eq!(server.endpoints(), [directory.endpoint()]);
    assert!(Orb::from_args(["-ORBendPoint", "giop:unix:"]).is_err());
}
