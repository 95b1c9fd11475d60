//! The transport spike: a hand-written stub and skeleton over `link`, measured by the bench contract.
//! `spike server [current|multi]`, `spike client [current|multi] ping|oneway|octets`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use giop_proto::pool::BufferPool;
use giop_proto::receive::Frame;
use orb_runtime::link::{Dispatch, Driver, Link, Outcome, Slot};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Ttcp(AtomicU64);
impl Ttcp {
    async fn ping(&self) {}
    async fn send_octet_seq(&self, s: Bytes) {
        self.0.fetch_add(s.len() as u64, Ordering::Relaxed);
    }
    async fn sync(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

#[derive(Clone)]
struct Skeleton(Arc<Ttcp>);
impl Dispatch for Skeleton {
    fn dispatch(&self, frame: Frame, mut out: BytesMut, slot: &mut Slot) {
        let servant = Arc::clone(&self.0);
        slot.set(async move {
            let b = &frame.octets;
            let id = u32_at(b, 12);
            let key = u32_at(b, 24) as usize;
            let mut at = (28 + key + 3) & !3;
            let op = u32_at(b, at) as usize;
            let name = &b[at + 4..at + 4 + op - 1];
            at = (at + 4 + op + 3) & !3;
            at = (at + 4 + 7) & !7; // no contexts
            let mut value = None;
            match name {
                b"ping" => servant.ping().await,
                b"sendOctetSeq" => {
                    let len = u32_at(b, at) as usize;
                    servant.send_octet_seq(b.slice(at + 4..at + 4 + len)).await;
                    return Outcome { head: out, chunk: None };
                }
                b"sync" => value = Some(servant.sync().await),
                _ => panic!("operation"),
            }
            let size = 12 + if value.is_some() { 8 } else { 0 };
            out.extend_from_slice(b"GIOP\x01\x02\x01\x01");
            out.extend_from_slice(&u32::to_le_bytes(size));
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&[0; 8]);
            if let Some(v) = value {
                out.extend_from_slice(&v.to_le_bytes());
            }
            Outcome { head: out, chunk: None }
        });
    }
}

fn request(op: &[u8], id: u32, oneway: bool, octets: Option<usize>) -> Vec<u8> {
    let mut m = Vec::with_capacity(128);
    m.extend_from_slice(b"GIOP\x01\x02\x01\x00\0\0\0\0");
    m.extend_from_slice(&id.to_le_bytes());
    m.extend_from_slice(&[if oneway { 0 } else { 3 }, 0, 0, 0, 0, 0, 0, 0]);
    m.extend_from_slice(&4u32.to_le_bytes());
    m.extend_from_slice(b"ttcp");
    m.extend_from_slice(&(op.len() as u32 + 1).to_le_bytes());
    m.extend_from_slice(op);
    m.push(0);
    m.resize((m.len() + 3) & !3, 0);
    m.extend_from_slice(&[0; 4]);
    let mut size = m.len();
    if let Some(n) = octets {
        m.resize((m.len() + 7) & !7, 0);
        m.extend_from_slice(&(n as u32).to_le_bytes());
        size = m.len() + n;
    }
    m[8..12].copy_from_slice(&((size - 12) as u32).to_le_bytes());
    m
}

async fn server() {
    let listener = TcpListener::bind("127.0.0.1:47201").await.unwrap();
    println!("READY 127.0.0.1:47201");
    let pool = Arc::new(BufferPool::new(256 << 20));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let link = Link::new(stream, false, Arc::clone(&pool), 64 << 20);
        tokio::spawn(Driver::new(link, Some(Skeleton(Arc::default()))));
    }
}

async fn ping(link: &Link) {
    let f = link.call(|id| (request(b"ping", id.0, false, None).into(), None)).await.unwrap();
    assert_eq!(f.octets.len(), 24);
}
async fn sync(link: &Link) -> u64 {
    let f = link.call(|id| (request(b"sync", id.0, false, None).into(), None)).await.unwrap();
    u64::from_le_bytes(f.octets[24..32].try_into().unwrap())
}
async fn flood(link: &Link, size: usize, total: u64) -> f64 {
    let payload = Bytes::from(vec![b'a'; size]);
    let head = request(b"sendOctetSeq", 0, true, Some(size));
    let t = Instant::now();
    let mut sent = 0;
    while sent < total {
        link.oneway(&head, Some(payload.clone())).await.unwrap();
        sent += size as u64;
    }
    assert_eq!(sync(link).await, sent);
    sent as f64 * 8.0 / t.elapsed().as_secs_f64() / 1e9
}

async fn client(test: String) {
    let stream = TcpStream::connect("127.0.0.1:47201").await.unwrap();
    stream.set_nodelay(true).unwrap();
    let link = Link::new(stream, true, Arc::new(BufferPool::new(256 << 20)), 64 << 20);
    tokio::spawn(Driver::new(Arc::clone(&link), None::<Skeleton>));
    match test.as_str() {
        "ping" => {
            let n = 20000;
            let mut us = Vec::with_capacity(n);
            for _ in 0..n / 10 {
                ping(&link).await;
            }
            for _ in 0..n {
                let t = Instant::now();
                ping(&link).await;
                us.push(t.elapsed().as_secs_f64() * 1e6);
            }
            us.sort_by(f64::total_cmp);
            println!("{{\"peer\":\"spike\",\"test\":\"ping\",\"p50_us\":{:.2}}}", us[n / 2]);
        }
        "oneway" | "octets" => {
            let (size, total) = if test == "oneway" { (1024, 64 << 20) } else { (1 << 20, 1 << 30) };
            flood(&link, size, total / 10).await;
            let g = flood(&link, size, total).await;
            println!("{{\"peer\":\"spike\",\"test\":\"{test}\",\"gbit_s\":{g:.2}}}");
        }
        _ => panic!("test"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rt = match args[2].as_str() {
        "current" => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        _ => tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap(),
    };
    rt.block_on(async {
        match args[1].as_str() {
            "server" => tokio::spawn(server()).await.unwrap(),
            _ => tokio::spawn(client(args[3].clone())).await.unwrap(),
        }
    });
}
