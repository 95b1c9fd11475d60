//! The zorb server, and the servant of the test interface `Ttcp`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zorb::prelude::*;
use zorb::{Poa, Servant};

use super::call_counts::CallCounts;
use super::idl::{BinStruct, SeriesRef, TtcpRef, TtcpServant, zero_copy};
use super::{dsi, integrity, many, published, series, wide};
use crate::cli::{Runtime, ServerArgs, SkeletonKind};
use crate::reference::{self, Object};

const MAX_CONNECTIONS: usize = 10_000;

/// Serves until killed.
pub fn server(args: &ServerArgs) -> anyhow::Result<()> {
    anyhow::ensure!(args.orb.runtime != Runtime::Blocking, "a server needs --runtime current or multi");
    args.parent_watch.start()?;
    let args = args.clone();
    super::block_on(args.orb.runtime, async move {
        let endpoint = match &args.unix {
            Some(path) => format!("uiop://{}", std::path::absolute(path)?.display()),
            None => format!("iiop://{}:{}", args.host, args.port),
        };
        let mut builder = args.orb.builder().listen(endpoint).limits(super::limits());
        if let Some(size) = args.sockbuf {
            builder = builder.socket_buffer(usize::try_from(size)?);
        }
        let builder = builder.demux(args.demux.demux());
        let orb = builder.max_connections(MAX_CONNECTIONS, MAX_CONNECTIONS).start_paused().build().await?;
        let poa = innermost_poa(&orb, args.demux.poas)?;
        let poa = poa.as_ref();
        let calls = Arc::new(CallCounts::default());
        for other in 0..args.demux.uncalled_objects {
            activate(&orb, poa, &format!("other {other}"), servant(Object::Wide, &args, &calls))?;
        }
        let activate_object = |object: Object| {
            let dynamic = match args.skeleton {
                SkeletonKind::Ssi => None,
                SkeletonKind::Dsi => dsi::servant(object, args.check, &calls),
            };
            let servant = dynamic.unwrap_or_else(|| servant(object, &args, &calls));
            activate(&orb, poa, object.key(), servant)
        };
        let ttcp = activate_object(Object::Ttcp)?;
        let objects = wide::objects().chain([Object::Series, Object::ZeroCopy]);
        let activated = objects.map(|object| Ok((object, activate_object(object)?)));
        let references = activated.collect::<anyhow::Result<Vec<_>>>()?;
        for (key, servant) in published::servants() {
            activate(&orb, None, key, servant)?;
        }
        many::activate(&orb, &args, || servant(Object::Ttcp, &args, &calls))?;
        orb.resume();
        reference::publish(&args.ior, &ttcp, &references)?;
        reference::announce_ready(args.ior.display())?;
        std::future::pending().await
    })
}

fn innermost_poa(orb: &Orb, poa_count: u32) -> anyhow::Result<Option<Poa>> {
    let mut innermost = None;
    for level in 0..poa_count {
        let parent = innermost.unwrap_or_else(|| orb.root_poa());
        innermost = Some(parent.child(format!("level {level}")).create()?);
    }
    Ok(innermost)
}

fn servant(object: Object, args: &ServerArgs, calls: &Arc<CallCounts>) -> Servant {
    let ttcp = || Ttcp { check: args.check, ..Ttcp::default() };
    match wide::servant(object, calls, args.demux.operations.into()) {
        Some(servant) => servant,
        None if object == Object::ZeroCopy => Servant::of::<zero_copy::TtcpRef, _>(ttcp()),
        None if object == Object::Series => Servant::of::<SeriesRef, _>(series::Series::default()),
        None => Servant::of::<TtcpRef, _>(ttcp()),
    }
}

/// Activates the servant and returns the reference. If there is a POA, the POA chooses the object's id. If
/// there is none, the object has the key `key`.
fn activate(orb: &Orb, poa: Option<&Poa>, key: &str, servant: Servant) -> anyhow::Result<String> {
    Ok(match poa {
        Some(poa) => poa.id_to_reference(&poa.activate_object(servant)?)?.to_string(),
        None => orb.activation().named(key).activate_erased(servant)?.to_string(),
    })
}

/// The servant of the test interface `Ttcp`, which counts the bytes of received elements.
#[derive(Debug, Default)]
pub struct Ttcp {
    bytes: AtomicU64,
    check: bool,
}

impl Ttcp {
    /// Counts the bytes of `items`. It is not inlined, so that profiles show the start of the servant's code.
    /// Without `black_box`, the compiler could omit the decoding of structs, because nothing accesses them.
    #[inline(never)]
    fn add<T: integrity::TestElement>(&self, items: &[T], item_bytes: usize) -> Result<(), SystemException> {
        let items = std::hint::black_box(items);
        if self.check {
            integrity::exit_if_different(items);
        }
        self.bytes.fetch_add((items.len() * item_bytes) as u64, Ordering::Relaxed);
        Ok(())
    }

    fn take(&self) -> u64 {
        self.bytes.swap(0, Ordering::Relaxed)
    }
}

/// Implements `TtcpServant` by the methods `add`, which counts bytes, and `take`, which returns the count.
macro_rules! counting_servant {
    ($servant:ty) => {
        impl TtcpServant for $servant {
            async fn send_short_seq(&self, s: Seq<i16>) -> Result<(), SystemException> {
                self.add(&s, 2)
            }

            async fn send_long_seq(&self, s: Seq<i32>) -> Result<(), SystemException> {
                self.add(&s, 4)
            }

            async fn send_double_seq(&self, s: Seq<f64>) -> Result<(), SystemException> {
                self.add(&s, 8)
            }

            async fn send_char_seq(&self, s: Seq<Char>) -> Result<(), SystemException> {
                self.add(&s, 1)
            }

            async fn send_octet_seq(&self, s: Bytes) -> Result<(), SystemException> {
                self.add(&s, 1)
            }

            async fn send_struct_seq(&self, s: &[BinStruct]) -> Result<(), SystemException> {
                self.add(s, 24)
            }

            async fn sync(&self) -> Result<u64, SystemException> {
                Ok(self.take())
            }

            async fn ping(&self) -> Result<(), SystemException> {
                Ok(())
            }

            async fn echo_octets(&self, s: Bytes) -> Result<Bytes, SystemException> {
                Ok(s)
            }

            async fn echo_structs(&self, s: &[BinStruct]) -> Result<Vec<BinStruct>, SystemException> {
                Ok(s.to_vec())
            }
        }
    };
}
pub(super) use counting_servant;

counting_servant!(Ttcp);

impl zero_copy::TtcpServant for Ttcp {
    async fn send_struct_seq(&self, s: Seq<zero_copy::BinStruct>) -> Result<(), SystemException> {
        self.add(&s, 24)
    }

    async fn sync(&self) -> Result<u64, SystemException> {
        Ok(self.take())
    }

    async fn echo_structs(
        &self,
        s: Seq<zero_copy::BinStruct>,
    ) -> Result<Seq<zero_copy::BinStruct>, SystemException> {
        Ok(s)
    }
}
