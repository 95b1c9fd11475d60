//! Names in an etcd cluster: several servers, killed members, expired bindings.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cos_naming::store::{
    ConnectError, ContextId, EtcdConfig, EtcdStore, Key, Lookup, ReadConsistency, Store,
};
use cos_naming::zorb_naming::BalancedContextRef;
use cos_naming::zorb_naming::balanced_context::BindForError;
use zorb::cos_naming::naming_context::{BindError, NotFound, NotFoundReason, ResolveError};
use zorb::cos_naming::{NameComponent, NamingContextExtRef, NamingContextRef};
use zorb::prelude::*;
use zorb::{CompletionStatus, SystemExceptionKind};

use crate::omni::has;
use crate::support::{Site, key_of, name, object};

/// Members of a cluster, in processes that end with this value.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    clients: Vec<u16>,
    peers: Vec<u16>,
    members: Vec<Option<Child>>,
    /// The scheme of client URLs.
    scheme: &'static str,
    /// The options of each member.
    options: Vec<String>,
}

impl Cluster {
    pub(crate) fn start(members: usize) -> Self {
        Self::with("http", members, &[])
    }

    pub(crate) fn with(scheme: &'static str, members: usize, options: &[String]) -> Self {
        // All at once, so that they differ.
        let free: Vec<_> = (0..2 * members).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut ports: Vec<_> = free.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        let peers = ports.split_off(members);
        drop(free);
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self {
            folder,
            clients: ports,
            peers,
            members: (0..members).map(|_| None).collect(),
            scheme,
            options: options.to_vec(),
        };
        (0..members).for_each(|index| cluster.run(index));
        cluster
    }

    /// Starts a member at its previous address.
    fn run(&mut self, index: usize) {
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        let all: Vec<_> =
            self.peers.iter().enumerate().map(|(index, port)| format!("m{index}={}", at(*port))).collect();
        let peer = at(self.peers[index]);
        let client = format!("{}://127.0.0.1:{}", self.scheme, self.clients[index]);
        // It ends with its parent process.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "etcd", "--name", &format!("m{index}"), "--data-dir"]);
        command.arg(self.folder.path().join(format!("m{index}")));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &all.join(","), "--heartbeat-interval", "50"]);
        command.args(["--election-timeout", "500", "--logger", "zap", "--log-level", "error"]);
        command.args(&self.options);
        let log = std::fs::File::create(self.folder.path().join(format!("m{index}.log"))).unwrap();
        let member = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.members[index] = Some(member.unwrap());
    }

    /// Returns the client port of the first member.
    pub(crate) fn port(&self) -> u16 {
        self.clients[0]
    }

    /// Kills a member with SIGKILL.
    fn kill(&mut self, index: usize) {
        if let Some(mut member) = self.members[index].take() {
            let _ = member.kill();
            let _ = member.wait();
        }
    }

    pub(crate) fn config(&self) -> EtcdConfig {
        EtcdConfig::new(self.clients.iter().map(|port| format!("{}://127.0.0.1:{port}", self.scheme)))
            .timeout(Duration::from_secs(20))
    }

    pub(crate) async fn store(&self) -> EtcdStore {
        connected(self.config()).await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|index| self.kill(index));
    }
}

/// Connects, however long it takes, because some configurations have short timeouts for slow members.
pub(crate) async fn connected(config: EtcdConfig) -> EtcdStore {
    loop {
        match EtcdStore::connect(config.clone()).await {
            Ok(store) => return store,
            Err(ConnectError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(other) => panic!("{other}"),
        }
    }
}

/// Returns whether etcd is installed.
pub(crate) fn is_here() -> bool {
    has("etcd") && has("setpriv")
}

async fn balanced(root: &NamingContextExtRef) -> BalancedContextRef {
    root.narrow().await.unwrap()
}

/// Waits for a condition that must become true.
async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let waits = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap_or_else(|_| panic!("{what}"));
}

fn missing(rest: &str) -> ResolveError {
    ResolveError::NotFound(NotFound { why: NotFoundReason::MissingNode, rest_of_name: name(rest) })
}

#[tokio::test]
async fn several_servers_serve_the_same_names() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(1);
    let one = Site::of(cluster.store().await, |builder| builder).await;
    let two = Site::of(cluster.store().await, |builder| builder).await;
    let latest =
        EtcdStore::connect(cluster.config().read_consistency(ReadConsistency::Latest)).await.unwrap();
    let three = Site::of(latest, |builder| builder).await;

    // Names acknowledged by one server are found by the others.
    for number in 0..20 {
        let text = format!("c{number}");
        one.root.bind_new_context(&name(&text)).await.unwrap().unwrap();
        let o = one.object(&format!("o{number}")).await;
        two.root.bind(&name(&format!("{text}/o")), o.clone()).await.unwrap();
        three.root.rebind(&name(&format!("{text}/o")), o.clone()).await.unwrap();
        let (at_one, at_three) = (name(&format!("{text}/o")), name(&format!("{text}/o")));
        assert_eq!(one.root.resolve(&at_one).await.unwrap().unwrap().ior(), o.ior());
        assert_eq!(three.root.resolve(&at_three).await.unwrap().unwrap().ior(), o.ior());
    }
    assert_eq!(one.root.resolve(&name("c0/x")).await, Err(missing("x")));

    // Of several clients that bind one name at different servers one succeeds, and all see the same winner.
    let mut won = Vec::new();
    for round in 0..5 {
        let tries = (0..9).map(|number| {
            let root = [&one, &two, &three][number % 3].root.clone();
            let orb = one.orb.clone();
            tokio::spawn(async move {
                let object = object(&orb, &format!("r{round}-{number}")).await;
                let bound = root.bind(&name(&format!("race{round}")), object).await;
                assert!(matches!(bound, Ok(()) | Err(BindError::AlreadyBound(_))), "{bound:?}");
                bound.is_ok().then(|| format!("r{round}-{number}"))
            })
        });
        let mut winners = Vec::new();
        for attempt in tries.collect::<Vec<_>>() {
            winners.extend(attempt.await.unwrap());
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        won.push(winners.remove(0));
    }
    for site in [&one, &two, &three] {
        let (all, _) = site.root.list(100).await.unwrap();
        assert_eq!(all.len(), 25);
        for (round, winner) in won.iter().enumerate() {
            let found = site.root.resolve(&name(&format!("race{round}"))).await.unwrap().unwrap();
            assert_eq!(key_of(&found), *winner);
        }
    }

    // A context of one server is a context of the others, and is never destroyed while it has bindings.
    let context = two.root.resolve(&name("c7")).await.unwrap().unwrap();
    let context: NamingContextExtRef = context.narrow().await.unwrap();
    assert!(context.destroy().await.is_err());
    one.root.unbind(&name("c7/o")).await.unwrap();
    context.destroy().await.unwrap();
    assert!(matches!(
        one.root.bind(&name("c7/p"), context.to_object()).await,
        Err(BindError::CannotProceed(_))
    ));

    // A server that is started later reads everything; numbers of contexts are not reused.
    let four = Site::of(cluster.store().await, |builder| builder).await;
    assert_eq!(four.root.list(100).await.unwrap().0.len(), 25);
    let other = EtcdStore::connect(cluster.config().prefix("/other")).await.unwrap();
    let (key, root) = (Key::new(&NameComponent::new("c0", "")).unwrap(), ContextId::ROOT);
    assert!(
        matches!(other.lookup(root, &key).await.unwrap(), Lookup::NotBound),
        "prefixes have nothing in common"
    );
    assert!(matches!(four.server.store().lookup(root, &key).await.unwrap(), Lookup::Bound(_)));
}

#[tokio::test]
async fn bindings_without_renewal_expire_at_every_server() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(1);
    let one = Site::of(cluster.store().await, |builder| builder).await;
    let two = Site::of(cluster.store().await, |builder| builder).await;
    let (here, there) = (balanced(&one.root).await, balanced(&two.root).await);
    let (o, p) = (one.object("o").await, one.object("p").await);
    here.bind_for(&name("short"), o.clone(), 1).await.unwrap();
    here.bind_for(&name("long"), o.clone(), 3600).await.unwrap();
    there.bind_for(&name("long"), o.clone(), 3600).await.unwrap();
    there.bind_for(&name("long"), o.clone(), 7200).await.unwrap();
    let taken = there.bind_for(&name("long"), p.clone(), 3600).await;
    assert!(matches!(taken, Err(BindForError::AlreadyBound(_))), "{taken:?}");
    here.bind(&name("for ever"), o.clone()).await.unwrap();
    assert!(matches!(
        there.bind_for(&name("for ever"), o.clone(), 1).await,
        Err(BindForError::AlreadyBound(_))
    ));
    // A binding that replaces it does not end with it.
    here.bind_for(&name("over"), o.clone(), 1).await.unwrap();
    there.rebind(&name("over"), p.clone()).await.unwrap();
    for context in [&here, &there] {
        until("the time is over", async || context.resolve(&name("short")).await == Err(missing("short")))
            .await;
    }
    there.bind_for(&name("short"), p.clone(), 3600).await.unwrap();
    for (text, key) in [("short", "p"), ("long", "o"), ("for ever", "o"), ("over", "p")] {
        assert_eq!(key_of(&here.resolve(&name(text)).await.unwrap().unwrap()), key, "{text}");
    }
    let nothing = here.bind_for(&name("x"), p, 0).await;
    let Err(BindForError::System(refused)) = nothing else { panic!("{nothing:?}") };
    assert_eq!(refused.kind, SystemExceptionKind::BadParam);
}

#[tokio::test]
async fn stores_without_leases_say_so() {
    let site = Site::new().await;
    let refused = balanced(&site.root).await.bind_for(&name("x"), site.object("o").await, 1).await;
    let Err(BindForError::System(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.kind, SystemExceptionKind::NoImplement);
    assert!(balanced(&site.root).await.state().await.unwrap().current);
}

#[tokio::test]
async fn what_is_none_of_ours_is_refused_or_told() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(1);
    let site = Site::of(cluster.store().await, |builder| builder).await;
    site.root.bind(&name("o"), site.object("o").await).await.unwrap();
    let put = |key: &str, value: &str| {
        let (key, value) = (base64(key), base64(value));
        post(cluster.clients[0], "/v3/kv/put", format!(r#"{{"key":"{key}","value":"{value}"}}"#))
    };
    put("/zorb/names/b/0000000000000000/o\0", "something else").await;
    put("/zorb/names/no key of ours", "").await;
    // An existing server, and a new one.
    let later = Site::of(cluster.store().await, |builder| builder).await;
    for site in [&site, &later] {
        until("it is seen", async || match site.root.resolve(&name("o")).await {
            Err(ResolveError::System(error)) => error.kind == SystemExceptionKind::PersistStore,
            _ => false,
        })
        .await;
        assert_eq!(site.root.list(10).await.unwrap().0.len(), 1);
    }
    later.root.unbind(&name("o")).await.unwrap();
    assert_eq!(site.root.resolve(&name("o")).await, Err(missing("o")));
    put("/zorb/names/format", "9").await;
    let refused = EtcdStore::connect(cluster.config()).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Format { found, .. } if found == "9"), "{refused}");
    for bad in ["ftp://127.0.0.1:1", "https://127.0.0.1:1", "http://"] {
        assert!(
            matches!(EtcdStore::connect(EtcdConfig::new([bad])).await, Err(ConnectError::Config(_))),
            "{bad}"
        );
    }
    let nobody = EtcdConfig::new(["http://127.0.0.1:1"]).timeout(Duration::from_millis(100));
    assert!(matches!(EtcdStore::connect(nobody).await, Err(ConnectError::Unavailable(_))));
}

#[tokio::test]
async fn a_store_that_was_cut_off_reads_all_anew_when_the_history_is_gone() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(1);
    let near = Site::of(cluster.store().await, |builder| builder).await;
    let proxy = Proxy::start(cluster.clients[0]).await;
    let config =
        EtcdConfig::new([format!("http://127.0.0.1:{}", proxy.port)]).timeout(Duration::from_millis(500));
    let far = Site::of(connected(config).await, |builder| builder).await;
    near.root.bind(&name("old"), near.object("old").await).await.unwrap();
    until("it is seen", async || far.root.resolve(&name("old")).await.is_ok()).await;
    proxy.cut(true);
    until("etcd is unavailable", async || !balanced(&far.root).await.state().await.unwrap().current).await;
    near.root.unbind(&name("old")).await.unwrap();
    near.root.bind(&name("new"), near.object("new").await).await.unwrap();
    near.root.bind(&name("newer"), near.object("newer").await).await.unwrap();
    let answer = post(cluster.clients[0], "/v3/kv/range", format!(r#"{{"key":"{}"}}"#, base64("x"))).await;
    let revision = answer.split(r#""revision":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    post(cluster.clients[0], "/v3/kv/compaction", format!(r#"{{"revision":"{revision}"}}"#)).await;
    // Meanwhile it returns the names that it has.
    assert_eq!(key_of(&far.root.resolve(&name("old")).await.unwrap().unwrap()), "old");
    let refused = far.root.unbind(&name("old")).await.unwrap_err();
    assert!(format!("{refused:?}").contains("TRANSIENT"), "{refused:?}");
    proxy.cut(false);
    until("it is back", async || balanced(&far.root).await.state().await.unwrap().current).await;
    assert_eq!(far.root.resolve(&name("old")).await, Err(missing("old")));
    assert_eq!(key_of(&far.root.resolve(&name("newer")).await.unwrap().unwrap()), "newer");
    until("changes are made again", async || {
        far.root.rebind(&name("newer"), far.object("o").await).await.is_ok()
    })
    .await;
}

/// Binds through a service until `end` is set, or the service ends. Everything must succeed unless the
/// service is killed.
async fn load(
    site: (NamingContextExtRef, ObjectRef),
    client: usize,
    bound: Arc<Mutex<BTreeSet<String>>>,
    end: Arc<Mutex<bool>>,
) {
    let (root, target) = site;
    for number in 0.. {
        if *end.lock().unwrap() {
            return;
        }
        let text = format!("n{client}-{number}");
        root.bind(&name(&text), target.clone()).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        bound.lock().unwrap().insert(text);
    }
}

#[tokio::test]
async fn a_minority_that_is_killed_is_not_missed_and_a_majority_is_waited_for() {
    if !is_here() {
        return;
    }
    let mut cluster = Cluster::start(3);
    let one = Site::of(cluster.store().await, |builder| builder).await;
    // It has a short timeout for a missing cluster.
    let config = cluster.config().timeout(Duration::from_secs(1)).member_timeout(Duration::from_millis(300));
    let (bound, end) = (Arc::default(), Arc::new(Mutex::new(false)));
    let mut clients = Vec::new();
    for client in 0..4 {
        clients.push(tokio::spawn(load(
            (one.root.clone(), one.object("o").await),
            client,
            Arc::clone(&bound),
            Arc::clone(&end),
        )));
    }
    let count = |bound: &Mutex<BTreeSet<String>>| bound.lock().unwrap().len();
    until("names are bound", async || count(&bound) > 40).await;
    // The member that is asked, while it is used.
    cluster.kill(0);
    let before = count(&bound);
    until("names are bound with two members", async || count(&bound) > before + 40).await;
    *end.lock().unwrap() = true;
    for client in clients {
        client.await.unwrap();
    }
    let two = Site::of(connected(config).await, |builder| builder).await;
    let all =
        zorb::cos_naming::Naming::new(NamingContextRef::from(two.root.clone())).list().all().await.unwrap();
    let all: BTreeSet<_> = all.into_iter().map(|(name, _)| name).collect();
    assert_eq!(all, *bound.lock().unwrap());
    until("it is not marked", async || !is_marked(&two).await).await;

    cluster.kill(1);
    until("etcd is unavailable", async || !balanced(&two.root).await.state().await.unwrap().current).await;
    let first = all.first().unwrap();
    assert_eq!(key_of(&two.root.resolve(&name(first)).await.unwrap().unwrap()), "o");
    assert_eq!(two.root.resolve(&name("x")).await, Err(missing("x")));
    assert_eq!(two.root.list(10).await.unwrap().0.len(), 10);
    assert!(is_marked(&two).await);
    let refused = two.root.bind(&name("x"), two.object("o").await).await;
    let Err(BindError::System(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!((refused.kind, refused.completed), (SystemExceptionKind::Transient, CompletionStatus::No));

    cluster.run(1);
    until("etcd is available", async || balanced(&two.root).await.state().await.unwrap().current).await;
    until("changes are made again", async || {
        two.root.rebind(&name("x"), two.object("o").await).await.is_ok()
    })
    .await;
    until("the other sees it", async || one.root.resolve(&name("x")).await.is_ok()).await;
    cluster.kill(2);
    cluster.run(0);
    until("any two will do", async || two.root.rebind(&name("x"), two.object("p").await).await.is_ok()).await;
    until("the other sees it", async || key_of(&one.root.resolve(&name("x")).await.unwrap().unwrap()) == "p")
        .await;
}

/// Returns whether a reply of the service has the context that marks it as cached. The request is of GIOP
/// 1.2, without contexts.
async fn is_marked<S: Store>(site: &Site<S>) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let url = crate::support::url(&site.server_orb);
    let address = url.rsplit_once('@').unwrap().1.split_once('/').unwrap().0;
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut request =
        b"GIOP\x01\x02\x01\x00\x2c\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\x0b\0\0\0NameService\0".to_vec();
    request.extend_from_slice(b"\x06\0\0\0state\0\0\0\0\0\0\0");
    stream.write_all(&request).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    let (order, size) = (head[6] & 1, <[u8; 4]>::try_from(&head[8..]).unwrap());
    let size = if order == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).await.unwrap();
    assert_eq!((head[7], &body[4..8]), (1, &[0; 4][..]), "a reply without an exception");
    let id = 0x5A4F_5211_u32;
    let id = if order == 1 { id.to_le_bytes() } else { id.to_be_bytes() };
    body.windows(4).any(|window| window == id)
}

/// The environment variables with the members and the addresses of all servers, for the child process of this
/// test.
const MEMBERS: &str = "ZORB_TEST_ETCD";
const LISTEN: &str = "ZORB_TEST_ETCD_LISTEN";
const PUBLISH: &str = "ZORB_TEST_ETCD_PUBLISH";

/// In the process to be killed: serves until then. It does nothing if it is run as a test.
#[tokio::test]
async fn child_serves_etcd_until_it_is_killed() {
    let Ok(members) = std::env::var(MEMBERS) else { return };
    let listen = std::env::var(LISTEN).unwrap();
    let mut builder = Orb::builder().listen(format!("iiop://{listen}"));
    for address in std::env::var(PUBLISH).unwrap().split(',') {
        builder = builder.publish(address);
    }
    let orb = builder.build().await.unwrap();
    let config = EtcdConfig::new(members.split(',')).timeout(Duration::from_secs(20));
    let _server = cos_naming::Server::builder(EtcdStore::connect(config).await.unwrap()).serve(&orb).unwrap();
    println!("\nserving");
    let mut line = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await.unwrap().unwrap();
}

struct Service(Child);

impl Service {
    fn start(members: &str, listen: &str, all: &str) -> Self {
        use std::io::BufRead;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "etcd::child_serves_etcd_until_it_is_killed", "--nocapture"]);
        command.env(MEMBERS, members).env(LISTEN, listen).env(PUBLISH, all);
        let mut service = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = std::io::BufReader::new(service.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "serving"));
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_its_clients_to_the_others() {
    if !is_here() {
        return;
    }
    let cluster = Cluster::start(3);
    let members: Vec<_> = cluster.clients.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
    let members = members.join(",");
    let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = free.each_ref().map(|socket| socket.local_addr().unwrap().to_string());
    drop(free);
    let all = addresses.join(",");
    let one = Service::start(&members, &addresses[0], &all);
    let _two = Service::start(&members, &addresses[1], &all);
    let orb = Orb::builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.2@{},iiop:1.2@{}/NameService", addresses[0], addresses[1]);
    let root: NamingContextExtRef = orb.resolve(&url).await.unwrap();
    // A reference created by the first server leads to both.
    let inner = root.bind_new_context(&name("c")).await.unwrap().unwrap();
    let bound: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let mut clients = Vec::new();
    for client in 0..4 {
        let (inner, bound, orb) = (inner.clone(), Arc::clone(&bound), orb.clone());
        clients.push(tokio::spawn(async move {
            let target = object(&orb, "o").await;
            for number in 0..60 {
                let text = format!("n{client}-{number}");
                match inner.bind(&name(&text), target.clone()).await {
                    Ok(()) => drop(bound.lock().unwrap().insert(text)),
                    // It was in flight when its server was killed.
                    Err(BindError::System(error)) => assert_ne!(error.completed, CompletionStatus::Yes),
                    Err(other) => panic!("{other}"),
                }
            }
        }));
    }
    until("names are bound", async || bound.lock().unwrap().len() > 40).await;
    drop(one);
    for client in clients {
        client.await.unwrap();
    }
    let bound = bound.lock().unwrap().clone();
    assert!(bound.len() > 200, "only those under way may fail: {}", bound.len());
    let listed = zorb::cos_naming::Naming::new(inner).list().all().await.unwrap();
    let listed: BTreeSet<_> = listed.into_iter().map(|(name, _)| name).collect();
    assert!(listed.is_superset(&bound), "{:?}", bound.difference(&listed));
}

/// Forwards connections, or cuts them.
struct Proxy {
    port: u16,
    cut: tokio::sync::watch::Sender<bool>,
}

impl Proxy {
    async fn start(to: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, is_cut) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut is_cut = is_cut.clone();
                if *is_cut.borrow() {
                    continue;
                }
                tokio::spawn(async move {
                    let mut there = tokio::net::TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut from, &mut there) => {}
                        _ = is_cut.wait_for(|cut| *cut) => {}
                    }
                });
            }
        });
        Self { port, cut }
    }

    fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

/// Returns the response of etcd to a request, as text.
pub(crate) async fn post(port: u16, path: &str, body: String) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Connects a store with a prefix of its own, for many stores in one cluster.
pub(crate) async fn fresh_store(cluster: &Cluster, number: usize) -> EtcdStore {
    EtcdStore::connect(cluster.config().prefix(format!("/model/{number}"))).await.unwrap()
}
