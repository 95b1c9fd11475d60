//! The files with the results of one or more experiments. A directory has a file of environments and a file
//! of samples, with one JSON object per line.
//!
//! Each sample is written before the next measurement. Therefore no sample is lost if a run is aborted, and a
//! later run can continue. A truncated line is dropped, and its measurement is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::environment::Environment;
use crate::harness::processor::ProcessorTime;

/// The file with an [`Environment`] for each run.
const ENVIRONMENTS_FILE: &str = "environments.jsonl";
const SAMPLES_FILE: &str = "samples.jsonl";

/// The settings of a measurement by name, such as `type` and `units`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Cell(BTreeMap<String, Setting>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Setting {
    Number(u64),
    Word(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) experiment: String,
    pub(crate) cell: Cell,
    pub(crate) peer: String,
    /// The round, from 0.
    pub(crate) round: u32,
    /// The index of the environment of the run in which the cell was measured.
    pub(crate) run: usize,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    Figures {
        /// The figures by name. A name ends in the unit of its figure, if it has one.
        figures: BTreeMap<String, f64>,
        processor: Option<ProcessorTime>,
        line: Value,
    },
    Failure {
        failure: String,
    },
}

impl Cell {
    /// Adds or replaces a setting.
    pub(crate) fn with(mut self, name: &str, setting: impl Into<Setting>) -> Cell {
        self.0.insert(name.to_owned(), setting.into());
        self
    }

    pub(crate) fn without(&self, name: &str) -> Cell {
        Cell(self.0.iter().filter(|(other, _)| *other != name).map(|(n, s)| (n.clone(), s.clone())).collect())
    }

    /// Returns whether `other` has all settings of this cell.
    pub(crate) fn is_part_of(&self, other: &Cell) -> bool {
        self.0.iter().all(|(name, setting)| other.0.get(name) == Some(setting))
    }

    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Setting::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(Setting::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns a readable name, such as `octet, units 64`.
    pub(crate) fn name(&self) -> String {
        let setting = |(name, setting): (&String, &Setting)| match setting {
            Setting::Number(number) => format!("{name} {number}"),
            Setting::Word(word) => word.clone(),
        };
        self.0.iter().map(setting).collect::<Vec<_>>().join(", ")
    }
}

impl From<u64> for Setting {
    fn from(number: u64) -> Self {
        Setting::Number(number)
    }
}

impl From<&str> for Setting {
    fn from(word: &str) -> Self {
        Setting::Word(word.to_owned())
    }
}

impl Sample {
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        match &self.outcome {
            Outcome::Figures { figures, .. } => figures.get(name).copied(),
            Outcome::Failure { .. } => None,
        }
    }

    pub(crate) fn processor_time(&self) -> Option<ProcessorTime> {
        match self.outcome {
            Outcome::Figures { processor, .. } => processor,
            Outcome::Failure { .. } => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StoredResults {
    pub(crate) environments: Vec<Environment>,
    samples: Vec<Sample>,
    /// The indices of samples by the names of experiment and peer.
    indices: BTreeMap<String, BTreeMap<String, Vec<usize>>>,
}

impl StoredResults {
    pub(crate) fn new(environments: Vec<Environment>, samples: Vec<Sample>) -> StoredResults {
        let mut data = StoredResults { environments, ..StoredResults::default() };
        samples.into_iter().for_each(|sample| data.push(sample));
        data
    }

    pub(crate) fn push(&mut self, sample: Sample) {
        let peers = self.indices.entry(sample.experiment.clone()).or_default();
        peers.entry(sample.peer.clone()).or_default().push(self.samples.len());
        self.samples.push(sample);
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Reads the results in a directory.
    pub(crate) fn read(dir: &Path) -> anyhow::Result<StoredResults> {
        let environments = read_lines(&dir.join(ENVIRONMENTS_FILE))?;
        let data = StoredResults::new(environments, read_lines(&dir.join(SAMPLES_FILE))?);
        if data.samples.is_empty() {
            bail!("{} has no results: use a directory that an experiment had as --out", dir.display());
        }
        Ok(data)
    }

    pub(crate) fn samples_of(&self, experiment: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.experiment == experiment)
    }

    pub(crate) fn peers(&self, experiment: &str) -> Vec<&str> {
        let mut peers = Vec::new();
        for sample in self.samples_of(experiment) {
            if !peers.contains(&sample.peer.as_str()) {
                peers.push(&sample.peer);
            }
        }
        peers
    }

    /// Returns the figures `name` of all samples of a peer and a cell.
    pub(crate) fn figures(&self, experiment: &str, peer: &str, cell: &Cell, name: &str) -> Vec<f64> {
        let indices = self.indices.get(experiment).and_then(|peers| peers.get(peer));
        let samples = indices.into_iter().flatten().filter_map(|index| self.samples.get(*index));
        samples.filter(|sample| sample.cell == *cell).filter_map(|sample| sample.figure(name)).collect()
    }

    /// Returns the distinct failures of measurements that were not successfully repeated.
    pub(crate) fn failures(&self) -> Vec<String> {
        let measured: BTreeSet<_> = self.samples.iter().filter_map(key_if_measured).collect();
        let mut failures = Vec::new();
        for sample in &self.samples {
            let Outcome::Failure { failure } = &sample.outcome else { continue };
            let text = format!("{}, {}, {}: {failure}", sample.experiment, sample.peer, sample.cell.name());
            if !measured.contains(&key(sample)) && !failures.contains(&text) {
                failures.push(text);
            }
        }
        failures
    }
}

/// The key of a measurement: experiment, cell, peer, round.
type Key = (String, Cell, String, u32);

fn key(sample: &Sample) -> Key {
    (sample.experiment.clone(), sample.cell.clone(), sample.peer.clone(), sample.round)
}

fn key_if_measured(sample: &Sample) -> Option<Key> {
    matches!(sample.outcome, Outcome::Figures { .. }).then(|| key(sample))
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    match File::open(path) {
        Ok(mut file) => Ok(complete_lines(&mut file, path)?.0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns the objects of the complete lines, and the number of bytes of these lines.
fn complete_lines<T: DeserializeOwned>(file: &mut File, path: &Path) -> anyhow::Result<(Vec<T>, u64)> {
    let is_file = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.is_file();
    ensure!(is_file, "{} is not a file", path.display());
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
    let complete = text.rfind('\n').map_or(0, |end| end + 1);
    let (text, _incomplete_line) = text.split_at(complete);
    let object = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}, line {}, is not a result", path.display(), number + 1))
    };
    let objects = text.lines().enumerate().map(object).collect::<anyhow::Result<_>>()?;
    Ok((objects, complete as u64))
}

/// A directory to which samples are appended. Only one run at a time can open it.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    data: StoredResults,
    measured_keys: BTreeSet<Key>,
    samples_file: File,
}

impl Store {
    /// Opens a directory for a run in this environment, and creates it if it does not exist.
    pub(crate) fn open(dir: &Path, environment: Environment) -> anyhow::Result<Store> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot create the directory {}", dir.display()))?;
        let (mut file, mut environments) = open_for_append::<Environment>(&dir.join(ENVIRONMENTS_FILE))?;
        let (samples_file, known) = open_for_append(&dir.join(SAMPLES_FILE))?;
        write(&mut file, &environment).with_context(|| format!("cannot write into {}", dir.display()))?;
        environments.push(environment);
        let measured_keys = known.iter().filter_map(key_if_measured).collect();
        let data = StoredResults::new(environments, known);
        Ok(Store { dir: dir.to_owned(), data, measured_keys, samples_file })
    }

    pub(crate) fn is_measured(&self, experiment: &str, cell: &Cell, peer: &str, round: u32) -> bool {
        self.measured_keys.contains(&(experiment.to_owned(), cell.clone(), peer.to_owned(), round))
    }

    /// Appends a sample of this run.
    pub(crate) fn add(&mut self, mut sample: Sample) -> anyhow::Result<()> {
        sample.run = self.data.environments.len() - 1;
        write(&mut self.samples_file, &sample).with_context(|| {
            format!("cannot write into {} (earlier results are intact)", self.dir.display())
        })?;
        self.measured_keys.extend(key_if_measured(&sample));
        self.data.push(sample);
        Ok(())
    }

    pub(crate) fn data(&self) -> &StoredResults {
        &self.data
    }
}

/// Opens a file for appending lines, and removes an incomplete last line. Returns the file and its objects.
fn open_for_append<T: DeserializeOwned>(path: &Path) -> anyhow::Result<(File, Vec<T>)> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = opened.with_context(|| format!("cannot open {}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!("another run writes into {}: use another directory (--out)", path.display());
    }
    let (objects, size) = complete_lines(&mut file, path)?;
    file.set_len(size)
        .and_then(|()| file.seek(SeekFrom::End(0)))
        .with_context(|| format!("cannot append to {}", path.display()))?;
    Ok((file, objects))
}

fn write(file: &mut File, object: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: u32, outcome: Outcome) -> Sample {
        let cell = Cell::default().with("type", "octet").with("units", 64u64);
        Sample { experiment: "latency".into(), cell, peer: "zorb".into(), round, run: 0, outcome }
    }

    fn good(figure: f64) -> Outcome {
        let figures = [("p50_us".to_owned(), figure)].into();
        Outcome::Figures { figures, processor: None, line: Value::Null }
    }

    fn bad() -> Outcome {
        Outcome::Failure { failure: "the server died".into() }
    }

    #[test]
    fn a_run_continues_an_aborted_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), Environment::current()).unwrap();
        store.add(sample(0, good(7.5))).unwrap();
        store.add(sample(1, bad())).unwrap();
        drop(store);
        let path = dir.path().join(SAMPLES_FILE);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"experiment\":\"lat");
        std::fs::write(&path, text).unwrap();

        let mut store = Store::open(dir.path(), Environment::current()).unwrap();
        let cell = sample(0, bad()).cell;
        assert_eq!(
            [0, 1, 2].map(|round| store.is_measured("latency", &cell, "zorb", round)),
            [true, false, false]
        );
        assert!(
            !store.is_measured("latency", &cell, "raw", 0) && !store.is_measured("scale", &cell, "zorb", 0)
        );
        assert_eq!(store.data().failures(), ["latency, zorb, octet, units 64: the server died"]);
        store.add(sample(1, good(8.5))).unwrap();
        assert_eq!(store.data().failures(), [""; 0]);
        let data = StoredResults::read(dir.path()).unwrap();
        assert_eq!((data.environments.len(), data.samples().len()), (2, 3));
        assert_eq!(data.samples().iter().map(|sample| sample.run).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(data.figures("latency", "zorb", &cell, "p50_us"), [7.5, 8.5]);
        assert_eq!(
            (cell.word("type"), cell.number("units"), cell.number("type")),
            (Some("octet"), Some(64), None)
        );
    }

    #[test]
    fn a_directory_cannot_be_used_by_two_runs() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Store::open(dir.path(), Environment::current()).unwrap();
        let error = Store::open(dir.path(), Environment::current()).unwrap_err().to_string();
        assert!(error.contains("another run writes into"), "{error}");
    }

    #[test]
    fn errors_contain_the_line_that_is_not_a_result() {
        let dir = tempfile::tempdir().unwrap();
        let error = StoredResults::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("has no results"), "{error}");
        std::fs::write(dir.path().join(SAMPLES_FILE), "{}\n").unwrap();
        let error = format!("{:#}", StoredResults::read(dir.path()).unwrap_err());
        assert!(error.contains("samples.jsonl, line 1, is not a result: missing field"), "{error}");
    }
}
