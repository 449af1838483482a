//! Suite `seq`: one large file written and read in order, and a burst of small files.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::clock::Stopwatch;
use super::content::{CHUNK_BYTES, Content};
use super::engine::{Outcome, Shrunk, WorkDir, Workload, extrapolate, scaled};
use super::fit::Estimate;
use super::result::{Proof, Setup, Suite};
use super::verify::{Crc, Mismatch};
use crate::error::Error;
use crate::signals::Interrupt;

/// Name of the large file.
const LARGE: &str = "large";
/// Name of the directory with the small files.
const BURST: &str = "burst";
/// Small files that are created.
pub(super) const BURST_FILES: u64 = 2_000;
/// Parts of the work that trials do: 1 MiB and four files, then 16 MiB and 63 files.
const TRIAL_DIVISORS: [u32; 2] = [512, 32];
/// Smallest large file that a round is shrunk to: below, the sync weighs more than the writing.
const MIN_BYTES: u64 = 4 << 20;
/// Fewest small files that a round is shrunk to.
const MIN_FILES: u64 = 40;

/// The workload.
pub(super) struct Seq {
    bytes: u64,
    files: u64,
    size_bytes: u64,
    content: Content,
    small: Content,
}

impl Seq {
    pub(super) fn new(bytes: u64, size_bytes: u64) -> Result<Self, Error> {
        let size = usize::try_from(size_bytes).map_err(|_| Error::Usage("`--size` is too large".to_owned()))?;
        Ok(Self {
            bytes,
            files: BURST_FILES,
            size_bytes,
            content: Content::new(CHUNK_BYTES),
            small: Content::new(size),
        })
    }

    fn run(&self, place: &WorkDir, bytes: u64, files: u64, interrupt: &Interrupt) -> Result<Outcome, Error> {
        let write = self.write(place, bytes, interrupt)?;
        let mut proof = Proof::default();
        let read = Self::read(place, &mut proof, interrupt)?;
        let large = place.path.join(LARGE);
        std::fs::remove_file(&large).map_err(|e| Error::io("delete", large, e))?;
        let create = self.create(place, files, interrupt)?;
        Self::count(place, &mut proof)?;
        let burst = place.path.join(BURST);
        std::fs::remove_dir_all(&burst).map_err(|e| Error::io("delete", burst, e))?;

        let mut crc = Crc::default();
        self.content.stream(bytes).for_each(|piece| crc.update(piece));
        let mut mismatch = Mismatch::default();
        mismatch.number("bytes read", bytes, proof.bytes_read);
        mismatch.text("the CRC-32 of what was read", &crc.hex(), proof.crc32.as_deref());
        mismatch.number("small files", files, proof.files);
        mismatch.number("the sum of their sizes", files * self.size_bytes, proof.stat_bytes);
        Ok(Outcome {
            phases: vec![("write".to_owned(), write), ("read".to_owned(), read), ("create".to_owned(), create)],
            proof,
            fault: mismatch.finish(),
            bytes_written: bytes + files * self.size_bytes,
        })
    }

    fn write(&self, place: &WorkDir, bytes: u64, interrupt: &Interrupt) -> Result<f64, Error> {
        let path = place.path.join(LARGE);
        let watch = Stopwatch::start();
        let mut file = create_new(&path).map_err(|e| Error::io("create", path.clone(), e))?;
        for piece in self.content.stream(bytes) {
            file.write_all(piece).map_err(|e| Error::io("write", path.clone(), e))?;
            interrupt.check()?;
        }
        file.sync_data().map_err(|e| Error::io("sync", path.clone(), e))?;
        drop(file);
        Ok(watch.stop())
    }

    fn read(place: &WorkDir, proof: &mut Proof, interrupt: &Interrupt) -> Result<f64, Error> {
        let path = place.path.join(LARGE);
        let mut buffer = vec![0; CHUNK_BYTES];
        let (mut crc, mut bytes) = (Crc::default(), 0);
        let mut watch = Stopwatch::start();
        let mut file = File::open(&path).map_err(|e| Error::io("open", path.clone(), e))?;
        loop {
            let read = file.read(&mut buffer).map_err(|e| Error::io("read", path.clone(), e))?;
            if read == 0 {
                break;
            }
            watch.pause();
            crc.update(&buffer[..read]);
            bytes += read as u64;
            interrupt.check()?;
            watch.resume();
        }
        let elapsed_s = watch.stop();
        proof.bytes_read = Some(bytes);
        proof.crc32 = Some(crc.hex());
        Ok(elapsed_s)
    }

    fn create(&self, place: &WorkDir, files: u64, interrupt: &Interrupt) -> Result<f64, Error> {
        let dir = place.path.join(BURST);
        let paths: Vec<_> = (0..files).map(|number| dir.join(format!("f{number:05}"))).collect();
        let watch = Stopwatch::start();
        std::fs::create_dir(&dir).map_err(|e| Error::io("create", dir.clone(), e))?;
        for (number, path) in paths.iter().enumerate() {
            let mut file = create_new(path).map_err(|e| Error::io("create", path.clone(), e))?;
            file.write_all(self.small.piece(number)).map_err(|e| Error::io("write", path.clone(), e))?;
            interrupt.check()?;
        }
        Ok(watch.stop())
    }

    fn count(place: &WorkDir, proof: &mut Proof) -> Result<(), Error> {
        let dir = place.path.join(BURST);
        let failed = |e| Error::io("list", dir.clone(), e);
        let (mut files, mut bytes) = (0, 0);
        for entry in std::fs::read_dir(&dir).map_err(failed)? {
            bytes += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
            files += 1;
        }
        proof.files = Some(files);
        proof.stat_bytes = Some(bytes);
        Ok(())
    }
}

impl Workload for Seq {
    fn suite(&self) -> Suite {
        Suite::Seq
    }

    fn setup(&self) -> Setup {
        Setup {
            files: Some(self.files),
            size_bytes: Some(self.size_bytes),
            bytes: Some(self.bytes),
            ..Setup::default()
        }
    }

    fn needed_bytes(&self) -> u64 {
        self.bytes.max(self.files * self.size_bytes)
    }

    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let round_s = extrapolate(&TRIAL_DIVISORS, |divisor| {
            let outcome = self.run(place, self.bytes / divisor, self.files.div_ceil(divisor), interrupt)?;
            Ok(outcome.total_s())
        })?;
        Ok(Estimate { round_s, ..Estimate::default() })
    }

    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error> {
        let bytes = scaled(self.bytes, factor, MIN_BYTES.min(self.bytes));
        let files = scaled(self.files, factor, MIN_FILES);
        if bytes >= self.bytes && files >= self.files {
            return Ok(None);
        }
        let said = format!(
            "a file of {} MiB instead of {}, {files} small files instead of {}",
            bytes.div_ceil(1 << 20),
            self.bytes.div_ceil(1 << 20),
            self.files
        );
        let shrunk = Shrunk::new(said, self.bytes, bytes);
        (self.bytes, self.files) = (bytes, files);
        Ok(Some(shrunk))
    }

    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        self.run(place, self.bytes, self.files, interrupt)
    }

    fn operations(&self, phase: &str) -> Option<u64> {
        (phase == "create").then_some(self.files)
    }

    fn bytes(&self, phase: &str) -> Option<u64> {
        (phase != "create").then_some(self.bytes)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "write: until `fdatasync` returns; read: caches as they are, so what was just written may come from memory"
                .to_owned(),
        ]
    }
}

pub(super) fn create_new(path: &std::path::Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    #[test]
    fn a_round_reads_what_it_wrote_and_cleans_up() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let mut seq = Seq::new((3 << 20) + 17, 10).unwrap();
        seq.files = 30;
        let outcome = seq.round(&place, &Interrupt::default()).unwrap();
        assert_eq!(outcome.fault, None);
        assert_eq!((outcome.proof.bytes_read, outcome.proof.stat_bytes), (Some((3 << 20) + 17), Some(300)));
        assert_eq!(std::fs::read_dir(scratch.work()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_changed_behind_its_back_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let seq = Seq::new(1 << 20, 10).unwrap();
        seq.write(&place, 1 << 20, &Interrupt::default()).unwrap();
        let mut right = Proof::default();
        Seq::read(&place, &mut right, &Interrupt::default()).unwrap();
        std::fs::write(place.path.join(LARGE), vec![0; 1 << 20]).unwrap();
        let mut wrong = Proof::default();
        Seq::read(&place, &mut wrong, &Interrupt::default()).unwrap();
        assert_eq!(right.bytes_read, wrong.bytes_read);
        assert_ne!(right.crc32, wrong.crc32);
    }
}
