//! Damaged files, and disks that reject writes for a while.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{DatabaseError, StorageBackend};
use zorb::cos_naming::NameComponent;

use super::super::{Group, Member, Over, PageLimit, Strategy, Target};
use super::files::{Disk, Files, JournalFile, beside};
use super::*;

/// Uses a file system in memory if there is one, because these tests open and sync files many times.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn key(text: &str) -> Key {
    Key::new(&NameComponent::new(text, "test")).unwrap()
}

fn bind(context: ContextId, name: &str) -> Change {
    let target = Target::Object(Bytes::from(format!("the reference of {name}, some bytes long").repeat(3)));
    Change::Bind { context, key: key(name), target, over: Over::Nothing }
}

/// Returns the contents of a store, by pages and lookups.
async fn everything(store: &DiskStore, contexts: u64) -> Vec<(u64, Key, Target)> {
    let mut all = Vec::new();
    for context in 0..contexts {
        let limit = PageLimit { bindings: usize::MAX, bytes: usize::MAX };
        let Some(page) = store.page(ContextId(context), None, limit).await.unwrap() else { continue };
        for (key, _) in page.bindings {
            let Lookup::Bound(bound) = store.lookup(ContextId(context), &key).await.unwrap() else {
                panic!("{key} is listed and not found")
            };
            all.push((context, key, bound.target.clone()));
        }
    }
    all
}

/// Returns a store with all kinds of bindings, some of which were changed and removed.
async fn filled(path: &Path) -> DiskStore {
    let store = DiskStore::open(path).unwrap();
    let mut at = ContextId::ROOT;
    for level in 0..3 {
        for number in 0..30 {
            store.change(bind(at, &format!("binding {number} of level {level}"))).await.unwrap();
        }
        store
            .change(Change::Unbind { context: at, key: key(&format!("binding 7 of level {level}")) })
            .await
            .unwrap();
        let key = key("further");
        at = store.change(Change::BindNewContext { context: at, key }).await.unwrap().unwrap();
    }
    let group = Target::Group(Group::new(Strategy::RoundRobin));
    store
        .change(Change::Bind { context: at, key: key("group"), target: group, over: Over::Nothing })
        .await
        .unwrap();
    let member = Member { name: "one".to_owned(), object: Bytes::from_static(b"reference") };
    store.change(Change::Join { context: at, key: key("group"), member }).await.unwrap();
    let gone = store.change(Change::NewContext).await.unwrap().unwrap();
    store.change(Change::Destroy { context: gone }).await.unwrap();
    store
}

/// The number of contexts that [`filled`] has created, including the root context.
const CONTEXTS: u64 = 5;

#[tokio::test]
async fn every_name_comes_back_whichever_bit_of_whichever_page_is_wrong() {
    let folder = folder();
    let path = folder.path().join("names");
    let store = filled(&path).await;
    let before = everything(&store, CONTEXTS).await;
    assert_eq!(before.len(), 3 * 30 + 1);
    drop(store);
    let (file, journal) = (fs::read(&path).unwrap(), fs::read(beside(&path, ".journal")).unwrap());
    let is_used = |number: &usize| file[number * 4096..].iter().take(4096).any(|byte| *byte != 0);
    let (used, unused): (Vec<_>, Vec<_>) = (0..file.len() / 4096).partition(is_used);
    // Several positions of each used page, which differ from page to page. In unused pages, many bytes are
    // flipped at a time.
    let places = [3, 9, 130, 700, 2050, 4095];
    let alone = used
        .iter()
        .flat_map(|page| [page % 6, (page + 3) % 6].map(|place| (*page, vec![page * 4096 + places[place]])));
    let together =
        unused.chunks(64).map(|pages| (0, pages.iter().map(|page| page * 4096 + page % 4096).collect()));
    let (mut repaired, mut last) = (0, usize::MAX);
    for (page, flipped) in alone.chain(together) {
        let mut damaged = file.clone();
        flipped.iter().for_each(|place| damaged[*place] ^= 1 << (place % 8));
        fs::write(&path, &damaged).unwrap();
        let store = match DiskStore::open(&path) {
            Ok(store) => store,
            Err(refused) => {
                assert!(matches!(refused, OpenError::Damaged { .. } | OpenError::Format { .. }), "{refused}");
                assert!(fs::read(&path).unwrap() == damaged, "a file that is refused stays as it is");
                // Once for each page: the contents of the journal do not depend on the byte.
                if std::mem::replace(&mut last, page) == page {
                    continue;
                }
                repaired += 1;
                let saved = DiskStore::repair(&path).unwrap();
                assert_eq!(saved.lost, Some(0), "bytes {flipped:?}");
                assert!(fs::read(&saved.damaged).unwrap() == damaged, "bytes {flipped:?}");
                DiskStore::open(&path).unwrap()
            }
        };
        assert!(everything(&store, CONTEXTS).await == before, "bytes {flipped:?}");
        drop(store);
        fs::write(beside(&path, ".journal"), &journal).unwrap();
    }
    assert!(repaired > 20, "{repaired}");
}

#[tokio::test]
async fn a_damaged_or_missing_journal_is_made_anew_of_the_database() {
    let folder = folder();
    let path = folder.path().join("names");
    let store = filled(&path).await;
    let before = everything(&store, CONTEXTS).await;
    drop(store);
    let (file, journal) = (fs::read(&path).unwrap(), fs::read(beside(&path, ".journal")).unwrap());
    for place in (0..journal.len()).step_by(997) {
        let mut damaged = journal.clone();
        damaged[place] ^= 1 << (place % 8);
        fs::write(&path, &file).unwrap();
        fs::write(beside(&path, ".journal"), &damaged).unwrap();
        let store = DiskStore::open(&path).unwrap();
        assert!(everything(&store, CONTEXTS).await == before, "byte {place}");
        drop(store);
    }
    for cut in (0..journal.len()).step_by(1999) {
        fs::write(&path, &file).unwrap();
        fs::write(beside(&path, ".journal"), &journal[..cut]).unwrap();
        drop(DiskStore::open(&path).unwrap());
        // It is complete now, so the database can be destroyed.
        fs::write(&path, b"nothing").unwrap();
        assert_eq!(DiskStore::repair(&path).unwrap().lost, Some(0));
        let store = DiskStore::open(&path).unwrap();
        assert!(everything(&store, CONTEXTS).await == before, "{cut} bytes");
        drop(store);
    }
}

#[tokio::test]
async fn a_database_that_is_missing_beside_its_journal_is_not_made_empty() {
    let folder = folder();
    let path = folder.path().join("names");
    drop(filled(&path).await);
    fs::remove_file(&path).unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(
        matches!(refused, OpenError::Damaged { .. }) && refused.to_string().contains("journal"),
        "{refused}"
    );
    let repaired = DiskStore::repair(&path).unwrap();
    assert_eq!((repaired.bindings, repaired.lost, repaired.from_journal), (91, Some(0), true));
    DiskStore::open(&path).unwrap();
}

#[tokio::test]
async fn a_batch_that_only_the_journal_has_is_made_when_the_file_is_opened() {
    let folder = folder();
    let path = folder.path().join("names");
    drop(filled(&path).await);
    let older = fs::read(&path).unwrap();
    let store = DiskStore::open(&path).unwrap();
    store.change(bind(ContextId::ROOT, "the last one")).await.unwrap();
    drop(store);
    // The same state as after a kill between the two files.
    let newer = fs::read(&path).unwrap();
    fs::write(&path, &older).unwrap();
    let store = DiskStore::open(&path).unwrap();
    let found = store.lookup(ContextId::ROOT, &key("the last one")).await.unwrap();
    assert!(matches!(found, Lookup::Bound(_)));
    drop(store);
    // Two missing batches cannot result from a kill: an old file was put in place.
    fs::write(&path, &newer).unwrap();
    let store = DiskStore::open(&path).unwrap();
    store.change(bind(ContextId::ROOT, "one more")).await.unwrap();
    drop(store);
    fs::write(&path, &older).unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(refused.to_string().contains("older than its journal"), "{refused}");
    fs::remove_file(beside(&path, ".journal")).unwrap();
    let store = DiskStore::open(&path).unwrap();
    assert!(matches!(store.lookup(ContextId::ROOT, &key("one more")).await.unwrap(), Lookup::Free));
}

#[tokio::test]
async fn the_journal_stays_short_however_often_names_change() {
    let folder = folder();
    let path = folder.path().join("names");
    let store = DiskStore::open(&path).unwrap();
    let target = Target::Object(Bytes::from(vec![7; 100_000]));
    for _ in 0..60 {
        let (context, target) = (ContextId::ROOT, target.clone());
        store.change(Change::Bind { context, key: key("a"), target, over: Over::Object }).await.unwrap();
    }
    let len = fs::metadata(beside(&path, ".journal")).unwrap().len();
    assert!(len < 2 * 1024 * 1024, "{len} bytes");
    drop(store);
    fs::write(&path, b"nothing").unwrap();
    assert_eq!(DiskStore::repair(&path).unwrap().bindings, 1);
}

/// A disk that rejects the operations whose flags are set.
#[derive(Debug, Default)]
struct Full {
    database: AtomicBool,
    syncs: AtomicBool,
    journal: AtomicBool,
}

impl Full {
    fn check(flag: &AtomicBool) -> io::Result<()> {
        if flag.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

struct Faulty {
    disk: Disk,
    path: PathBuf,
    full: Arc<Full>,
}

#[derive(Debug)]
struct FaultyBackend(Arc<dyn StorageBackend>, Arc<Full>);

struct FaultyJournal(Box<dyn JournalFile>, Arc<Full>);

impl Files for Faulty {
    fn path(&self) -> &Path {
        &self.path
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

    fn adopt_journal(&self) -> io::Result<()> {
        self.disk.adopt_journal()
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
        Full::check(&self.1.syncs)?;
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        Full::check(&self.1.database)?;
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
        // A part of it fits.
        match Full::check(&self.1.journal) {
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
async fn a_store_whose_disk_was_full_goes_on_by_itself_and_has_all_that_it_acknowledged() {
    let flags: [fn(&Full) -> &AtomicBool; 3] =
        [|full| &full.database, |full| &full.journal, |full| &full.syncs];
    for (number, flag) in flags.into_iter().enumerate() {
        let folder = folder();
        let path = folder.path().join("names");
        let full = Arc::new(Full::default());
        let files = Faulty { disk: Disk::new(&path), path: path.clone(), full: Arc::clone(&full) };
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
                    Ok(made) => panic!("{made:?} of a disk that takes nothing"),
                    Err(ChangeError::Store(StoreError::NotWritten { .. })) => refused.push(name),
                    // It may be in the file later: the outcome is unknown.
                    Err(ChangeError::Store(StoreError::Broken(_))) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
            assert!(store.problem().unwrap().contains("names are not stored in"), "{:?}", store.problem());
            let found = store.lookup(ContextId::ROOT, &key("before 0")).await.unwrap();
            assert!(matches!(found, Lookup::Bound(_)), "lookups go on");
            flag(&full).store(false, Ordering::Relaxed);
            let until = Instant::now() + Duration::from_secs(60);
            // It must recover without a change too.
            while store.problem().is_some() {
                assert!(Instant::now() < until, "it does not recover: {:?}", store.problem());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let check = async |store: &DiskStore| {
            for name in &bound {
                let found = store.lookup(ContextId::ROOT, &key(name)).await.unwrap();
                assert!(matches!(found, Lookup::Bound(_)), "{name} of kind {number}");
            }
            for name in &refused {
                let found = store.lookup(ContextId::ROOT, &key(name)).await.unwrap();
                assert!(matches!(found, Lookup::Free), "{name} of kind {number}");
            }
        };
        check(&store).await;
        drop(store);
        let store = DiskStore::open(&path).unwrap();
        check(&store).await;
        drop(store);
        // The journal must have them too.
        fs::write(&path, b"nothing").unwrap();
        DiskStore::repair(&path).unwrap();
        check(&DiskStore::open(&path).unwrap()).await;
    }
}
