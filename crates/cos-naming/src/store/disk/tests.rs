//! Tests with damaged files, and with disks that reject writes for some time.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{DatabaseError, StorageBackend};
use zorb::cos_naming::NameComponent;

use super::super::{Group, MayReplace, Member, PageLimit, Strategy, Target};
use super::files::{DiskFiles, Files, JournalFile, with_suffix};
use super::*;

/// Creates a temporary directory, in memory if possible, because these tests open and sync files many times.
fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn key(text: &str) -> Key {
    Key::new(&NameComponent::new(text, "test")).unwrap()
}

fn bind(context: ContextId, name: &str) -> Change {
    let target = Target::Object(Bytes::from(format!("the reference of {name}, some bytes long").repeat(3)));
    Change::Bind { context, key: key(name), target, may_replace: MayReplace::Nothing }
}

/// Returns all bindings of a store, read by `page` and `lookup`.
async fn all_bindings(store: &DiskStore, contexts: u64) -> Vec<(u64, Key, Target)> {
    let mut all = Vec::new();
    for context in 0..contexts {
        let limit = PageLimit { bindings: usize::MAX, bytes: usize::MAX };
        let Some(page) = store.page(ContextId(context), None, limit).await.unwrap() else { continue };
        for (key, _) in page.bindings {
            let Lookup::Bound(bound) = store.lookup(ContextId(context), &key).await.unwrap() else {
                panic!("{key} is listed but not found")
            };
            all.push((context, key, bound.target.clone()));
        }
    }
    all
}

/// Creates a store with bindings of all kinds. Some bindings and contexts are changed or removed again.
async fn create_filled_store(path: &Path) -> DiskStore {
    let store = DiskStore::open(path).unwrap();
    let mut context = ContextId::ROOT;
    for level in 0..3 {
        for number in 0..30 {
            store.change(bind(context, &format!("binding {number} of level {level}"))).await.unwrap();
        }
        let seventh = key(&format!("binding 7 of level {level}"));
        store.change(Change::Unbind { context, key: seventh }).await.unwrap();
        let key = key("further");
        context = store.change(Change::BindNewContext { context, key }).await.unwrap().unwrap();
    }
    let group = Target::Group(Group::new(Strategy::RoundRobin));
    store
        .change(Change::Bind { context, key: key("group"), target: group, may_replace: MayReplace::Nothing })
        .await
        .unwrap();
    let member = Member { name: "one".to_owned(), object: Bytes::from_static(b"reference") };
    store.change(Change::Join { context, key: key("group"), member }).await.unwrap();
    let destroyed = store.change(Change::NewContext).await.unwrap().unwrap();
    store.change(Change::Destroy { context: destroyed }).await.unwrap();
    store
}

/// The number of contexts after [`create_filled_store`], including the root context and a destroyed one.
const CONTEXTS: u64 = 5;

#[tokio::test]
async fn repair_restores_every_name_whichever_bit_is_flipped() {
    let temp_dir = temp_dir();
    let path = temp_dir.path().join("names");
    let store = create_filled_store(&path).await;
    let before = all_bindings(&store, CONTEXTS).await;
    assert_eq!(before.len(), 3 * 30 + 1);
    drop(store);
    let (file, journal) = (fs::read(&path).unwrap(), fs::read(with_suffix(&path, ".journal")).unwrap());
    let is_used = |number: &usize| file[number * 4096..].iter().take(4096).any(|byte| *byte != 0);
    let (used, unused): (Vec<_>, Vec<_>) = (0..file.len() / 4096).partition(is_used);
    // Flip two bits of each used page, one after the other, at offsets that vary with the page. In unused
    // pages, flip one bit in each of 64 pages at the same time.
    let offsets = [3, 9, 130, 700, 2050, 4095];
    let single_flips = used
        .iter()
        .flat_map(|page| [page % 6, (page + 3) % 6].map(|index| (*page, vec![page * 4096 + offsets[index]])));
    let common_flips =
        unused.chunks(64).map(|pages| (0, pages.iter().map(|page| page * 4096 + page % 4096).collect()));
    let (mut repairs, mut last_page) = (0, usize::MAX);
    for (page, positions) in single_flips.chain(common_flips) {
        let mut damaged = file.clone();
        positions.iter().for_each(|position| damaged[*position] ^= 1 << (position % 8));
        fs::write(&path, &damaged).unwrap();
        let store = match DiskStore::open(&path) {
            Ok(store) => store,
            Err(refused) => {
                assert!(matches!(refused, OpenError::Damaged { .. } | OpenError::Format { .. }), "{refused}");
                assert!(
                    fs::read(&path).unwrap() == damaged,
                    "a file that cannot be opened must not be changed"
                );
                // One repair for each page is enough, because the journal is always the same.
                if std::mem::replace(&mut last_page, page) == page {
                    continue;
                }
                repairs += 1;
                let summary = DiskStore::repair(&path).unwrap();
                assert_eq!(summary.lost_bindings, Some(0), "bytes {positions:?}");
                assert!(fs::read(&summary.damaged_file).unwrap() == damaged, "bytes {positions:?}");
                DiskStore::open(&path).unwrap()
            }
        };
        assert!(all_bindings(&store, CONTEXTS).await == before, "bytes {positions:?}");
        drop(store);
        fs::write(with_suffix(&path, ".journal"), &journal).unwrap();
    }
    assert!(repairs > 20, "{repairs}");
}

#[tokio::test]
async fn a_damaged_or_truncated_journal_is_written_again_from_the_database() {
    let temp_dir = temp_dir();
    let path = temp_dir.path().join("names");
    let store = create_filled_store(&path).await;
    let before = all_bindings(&store, CONTEXTS).await;
    drop(store);
    let (file, journal) = (fs::read(&path).unwrap(), fs::read(with_suffix(&path, ".journal")).unwrap());
    for position in (0..journal.len()).step_by(997) {
        let mut damaged = journal.clone();
        damaged[position] ^= 1 << (position % 8);
        fs::write(&path, &file).unwrap();
        fs::write(with_suffix(&path, ".journal"), &damaged).unwrap();
        let store = DiskStore::open(&path).unwrap();
        assert!(all_bindings(&store, CONTEXTS).await == before, "byte {position}");
        drop(store);
    }
    for len in (0..journal.len()).step_by(1999) {
        fs::write(&path, &file).unwrap();
        fs::write(with_suffix(&path, ".journal"), &journal[..len]).unwrap();
        drop(DiskStore::open(&path).unwrap());
        // The new journal is complete, so all names survive the loss of the database.
        fs::write(&path, b"nothing").unwrap();
        assert_eq!(DiskStore::repair(&path).unwrap().lost_bindings, Some(0));
        let store = DiskStore::open(&path).unwrap();
        assert!(all_bindings(&store, CONTEXTS).await == before, "{len} bytes");
        drop(store);
    }
}

#[tokio::test]
async fn a_missing_database_is_not_created_empty_if_its_journal_has_names() {
    let temp_dir = temp_dir();
    let path = temp_dir.path().join("names");
    drop(create_filled_store(&path).await);
    fs::remove_file(&path).unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(
        matches!(refused, OpenError::Damaged { .. }) && refused.to_string().contains("journal"),
        "{refused}"
    );
    let repaired = DiskStore::repair(&path).unwrap();
    assert_eq!((repaired.bindings, repaired.lost_bindings, repaired.from_journal), (91, Some(0), true));
    DiskStore::open(&path).unwrap();
}

#[tokio::test]
async fn a_batch_that_is_only_in_the_journal_is_applied_when_the_file_is_opened() {
    let temp_dir = temp_dir();
    let path = temp_dir.path().join("names");
    drop(create_filled_store(&path).await);
    let older = fs::read(&path).unwrap();
    let store = DiskStore::open(&path).unwrap();
    store.change(bind(ContextId::ROOT, "the last one")).await.unwrap();
    drop(store);
    // Create the state that results if the process is killed between the writes to the two files.
    let newer = fs::read(&path).unwrap();
    fs::write(&path, &older).unwrap();
    let store = DiskStore::open(&path).unwrap();
    let found = store.lookup(ContextId::ROOT, &key("the last one")).await.unwrap();
    assert!(matches!(found, Lookup::Bound(_)));
    drop(store);
    // Two missing batches cannot result from a kill: the file was replaced by an older one.
    fs::write(&path, &newer).unwrap();
    let store = DiskStore::open(&path).unwrap();
    store.change(bind(ContextId::ROOT, "one more")).await.unwrap();
    drop(store);
    fs::write(&path, &older).unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(refused.to_string().contains("older than its journal"), "{refused}");
    fs::remove_file(with_suffix(&path, ".journal")).unwrap();
    let store = DiskStore::open(&path).unwrap();
    assert!(matches!(store.lookup(ContextId::ROOT, &key("one more")).await.unwrap(), Lookup::NotBound));
}

#[tokio::test]
async fn the_journal_stays_short_if_a_name_is_rebound_many_times() {
    let temp_dir = temp_dir();
    let path = temp_dir.path().join("names");
    let store = DiskStore::open(&path).unwrap();
    let target = Target::Object(Bytes::from(vec![7; 100_000]));
    for _ in 0..60 {
        let (context, target) = (ContextId::ROOT, target.clone());
        let rebind = Change::Bind { context, key: key("a"), target, may_replace: MayReplace::Object };
        store.change(rebind).await.unwrap();
    }
    let len = fs::metadata(with_suffix(&path, ".journal")).unwrap().len();
    assert!(len < 2 * 1024 * 1024, "{len} bytes");
    drop(store);
    fs::write(&path, b"nothing").unwrap();
    assert_eq!(DiskStore::repair(&path).unwrap().bindings, 1);
}

/// The operations that fail because the disk is full.
#[derive(Debug, Default)]
struct FullDisk {
    database: AtomicBool,
    syncs: AtomicBool,
    journal: AtomicBool,
}

impl FullDisk {
    fn check(flag: &AtomicBool) -> io::Result<()> {
        if flag.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

/// The files of a store on a disk that may be full.
struct FaultyFiles {
    disk: DiskFiles,
    full: Arc<FullDisk>,
}

#[derive(Debug)]
struct FaultyBackend(Arc<dyn StorageBackend>, Arc<FullDisk>);

struct FaultyJournal(Box<dyn JournalFile>, Arc<FullDisk>);

impl Files for FaultyFiles {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn database(&self) -> Result<Arc<dyn StorageBackend>, DatabaseError> {
        Ok(Arc::new(FaultyBackend(self.disk.database()?, Arc::clone(&self.full))))
    }

    fn journal(&self) -> io::Result<Option<Box<dyn JournalFile>>> {
        let file = self.disk.journal()?;
        Ok(file.map(|file| Box::new(FaultyJournal(file, Arc::clone(&self.full))) as Box<dyn JournalFile>))
    }

    fn new_journal(&self) -> io::Result<Box<dyn JournalFile>> {
        Ok(Box::new(FaultyJournal(self.disk.new_journal()?, Arc::clone(&self.full))))
    }

    fn replace_journal(&self) -> io::Result<()> {
        self.disk.replace_journal()
    }
}

impl StorageBackend for FaultyBackend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        FullDisk::check(&self.1.syncs)?;
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        FullDisk::check(&self.1.database)?;
        self.0.write(offset, data)
    }
}

impl Read for FaultyJournal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for FaultyJournal {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Write for FaultyJournal {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        // Write a part of longer data, like a disk that becomes full.
        match FullDisk::check(&self.1.journal) {
            Err(error) if data.len() < 10 => Err(error),
            Err(_) => self.0.write(&data[..data.len() / 2]),
            Ok(()) => self.0.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl JournalFile for FaultyJournal {
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

#[tokio::test]
async fn a_store_recovers_from_a_full_disk_and_keeps_all_acknowledged_changes() {
    let flags: [fn(&FullDisk) -> &AtomicBool; 3] =
        [|full| &full.database, |full| &full.journal, |full| &full.syncs];
    for (flag_index, flag) in flags.into_iter().enumerate() {
        let temp_dir = temp_dir();
        let path = temp_dir.path().join("names");
        let full = Arc::new(FullDisk::default());
        let files = FaultyFiles { disk: DiskFiles::new(&path), full: Arc::clone(&full) };
        let store = DiskStore::open_files(Arc::new(files)).unwrap();
        let (mut bound, mut refused) = (Vec::new(), Vec::new());
        for outage in 0..3 {
            let name = format!("before {outage}");
            store.change(bind(ContextId::ROOT, &name)).await.unwrap();
            bound.push(name);
            flag(&full).store(true, Ordering::Relaxed);
            for change in 0..3 {
                let name = format!("during {outage}, {change}");
                match store.change(bind(ContextId::ROOT, &name)).await {
                    Ok(result) => panic!("a change succeeded although the disk is full: {result:?}"),
                    Err(ChangeError::Store(StoreError::NotWritten { .. })) => refused.push(name),
                    // The outcome is unknown: the change may be found later or not.
                    Err(ChangeError::Store(StoreError::Broken(_))) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
            assert!(store.problem().unwrap().contains("names cannot be stored in"), "{:?}", store.problem());
            let found = store.lookup(ContextId::ROOT, &key("before 0")).await.unwrap();
            assert!(matches!(found, Lookup::Bound(_)), "lookups must continue");
            flag(&full).store(false, Ordering::Relaxed);
            let deadline = Instant::now() + Duration::from_secs(60);
            // The store must recover without a further change.
            while store.problem().is_some() {
                assert!(Instant::now() < deadline, "the store does not recover: {:?}", store.problem());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let check = async |store: &DiskStore| {
            for name in &bound {
                let found = store.lookup(ContextId::ROOT, &key(name)).await.unwrap();
                assert!(matches!(found, Lookup::Bound(_)), "{name}, flag {flag_index}");
            }
            for name in &refused {
                let found = store.lookup(ContextId::ROOT, &key(name)).await.unwrap();
                assert!(matches!(found, Lookup::NotBound), "{name}, flag {flag_index}");
            }
        };
        check(&store).await;
        drop(store);
        let store = DiskStore::open(&path).unwrap();
        check(&store).await;
        drop(store);
        // The journal must have the same names.
        fs::write(&path, b"nothing").unwrap();
        DiskStore::repair(&path).unwrap();
        check(&DiskStore::open(&path).unwrap()).await;
    }
}
