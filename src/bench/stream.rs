//! Suite `stream`: one writer fed by a pipe, as `wsl.exe ... > file`, `tar | ...` and log collectors are.
//!
//! What differs is the size of each write. On a share every write is a round trip, so a relay that passes on 4 KiB at a
//! time pays for it 256 times a mebibyte.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::path::Path;
use std::sync::mpsc;

use super::clock::Stopwatch;
use super::content::{CHUNK_BYTES, Content};
use super::engine::{Outcome, Shrunk, WorkDir, Workload, scaled};
use super::fit::Estimate;
use super::result::{Proof, Setup, Suite};
use super::seq::create_new;
use super::verify::{Mismatch, Sha};
use crate::error::Error;
use crate::signals::Interrupt;

/// Sizes of one write, with the name of the phase.
const WRITES: [(&str, usize); 6] = [
    ("write_4k", 4 << 10),
    ("write_16k", 16 << 10),
    ("write_64k", 64 << 10),
    ("write_256k", 256 << 10),
    ("write_1m", 1 << 20),
    ("write_4m", 4 << 20),
];
/// The phase that writes as little at a time as the relay of `wsl.exe` does.
pub(super) const RELAY: &str = WRITES[0].0;
/// The phase that it is compared with: of the size from which on larger writes gain little more.
pub(super) const RELAY_AGAINST: &str = WRITES[4].0;
/// Name of the phase that reads and writes at once.
const OVERLAPPED: &str = "overlapped";
/// Buffers that go round between its reader and its writer.
const BUFFERS: usize = 4;
/// Size of each of them.
const BUFFER_BYTES: usize = 1 << 20;
/// Name of the file that is written.
const TARGET: &str = "stream";
/// Length of the first trial, which is mostly what does not depend on the length.
const SHORT_TRIAL: u64 = 64 << 10;
/// Length of the second trial.
const LONG_TRIAL: u64 = 1 << 20;
/// Length of the second trial where the first was quick.
const QUICK_TRIAL: u64 = 4 << 20;
/// A first trial that took less than this, in seconds, was quick.
const QUICK_TRIAL_S: f64 = 0.1;
/// Shortest stream that a round is shrunk to: one of the largest writes.
const MIN_BYTES: u64 = 4 << 20;

/// The workload.
pub(super) struct Stream {
    bytes: u64,
    content: Content,
}

impl Stream {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, content: Content::new(CHUNK_BYTES) }
    }

    fn run(&self, place: &WorkDir, bytes: u64, interrupt: &Interrupt) -> Result<Outcome, Error> {
        let mut expected = Sha::default();
        self.content.stream(bytes).for_each(|piece| expected.update(piece));
        let expected = expected.hex();
        let mut phases = Vec::new();
        let mut mismatch = Mismatch::default();
        let mut proof = Proof::default();
        let variants = WRITES.iter().map(|(name, size)| (*name, Some(*size))).chain([(OVERLAPPED, None)]);
        for (name, size) in variants {
            let path = place.path.join(TARGET);
            let elapsed_s = self.relay(&path, bytes, |input, file| match size {
                Some(size) => relay_blocks(input, file, size, interrupt),
                None => relay_overlapped(input, file, interrupt),
            });
            // A signal closes the pipe, which may look like a failure of the writer.
            interrupt.check()?;
            phases.push((name.to_owned(), elapsed_s?));
            let (length, sha256) = digest(&path, interrupt)?;
            mismatch.number(&format!("the length after {name}"), bytes, Some(length));
            mismatch.text(&format!("the SHA-256 after {name}"), &expected, Some(&sha256));
            proof.bytes_read = Some(length);
            proof.sha256 = Some(sha256);
            std::fs::remove_file(&path).map_err(|e| Error::io("delete", path, e))?;
        }
        let bytes_written = bytes * phases.len() as u64;
        Ok(Outcome { phases, proof, fault: mismatch.finish(), bytes_written })
    }

    /// Times one stream, from the opening of the file to the end of its sync.
    fn relay(
        &self,
        path: &Path,
        bytes: u64,
        relay: impl FnOnce(PipeReader, &mut File) -> std::io::Result<()>,
    ) -> Result<f64, Error> {
        let (input, mut output) = std::io::pipe().map_err(|e| Error::io("make a pipe for", path, e))?;
        std::thread::scope(|scope| {
            let watch = Stopwatch::start();
            scope.spawn(move || {
                for piece in self.content.stream(bytes) {
                    // The reader gave up and says why itself.
                    if output.write_all(piece).is_err() {
                        break;
                    }
                }
            });
            let mut file = create_new(path).map_err(|e| Error::io("create", path, e))?;
            relay(input, &mut file).map_err(|e| Error::io("write", path, e))?;
            file.sync_all().map_err(|e| Error::io("sync", path, e))?;
            drop(file);
            Ok(watch.stop())
        })
    }
}

/// Collects `size` bytes from the pipe, writes them in one call, and so on.
fn relay_blocks(mut input: PipeReader, file: &mut File, size: usize, interrupt: &Interrupt) -> std::io::Result<()> {
    let mut buffer = vec![0; size];
    loop {
        let filled = fill(&mut input, &mut buffer)?;
        if filled == 0 || interrupt.is_set() {
            return Ok(());
        }
        file.write_all(&buffer[..filled])?;
    }
}

/// Reads the next buffer while the one before it is being written; the buffers are used again and again.
fn relay_overlapped(mut input: PipeReader, file: &mut File, interrupt: &Interrupt) -> std::io::Result<()> {
    let (full, filled) = mpsc::sync_channel::<std::io::Result<(Vec<u8>, usize)>>(BUFFERS);
    let (free, emptied) = mpsc::sync_channel::<Vec<u8>>(BUFFERS);
    for _ in 0..BUFFERS {
        // The channel has room for exactly these.
        let _ = free.send(vec![0; BUFFER_BYTES]);
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(mut buffer) = emptied.recv() {
                let read = fill(&mut input, &mut buffer);
                let is_end = !matches!(read, Ok(length) if length > 0);
                if full.send(read.map(|length| (buffer, length))).is_err() || is_end {
                    break;
                }
            }
        });
        // `free` goes at the end of this block, early returns included, and ends the reader.
        let free = free;
        for message in filled {
            let (buffer, length) = message?;
            if length == 0 || interrupt.is_set() {
                break;
            }
            file.write_all(&buffer[..length])?;
            let _ = free.send(buffer);
        }
        Ok(())
    })
}

/// Reads until the buffer is full or the pipe ends.
fn fill(input: &mut PipeReader, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn digest(path: &Path, interrupt: &Interrupt) -> Result<(u64, String), Error> {
    let mut file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut sha, mut length) = (Sha::default(), 0);
    loop {
        match file.read(&mut buffer).map_err(|e| Error::io("read", path, e))? {
            0 => return Ok((length, sha.hex())),
            read => {
                sha.update(&buffer[..read]);
                length += read as u64;
            }
        }
        interrupt.check()?;
    }
}

impl Workload for Stream {
    fn suite(&self) -> Suite {
        Suite::Stream
    }

    fn setup(&self) -> Setup {
        Setup { bytes: Some(self.bytes), ..Setup::default() }
    }

    fn needed_bytes(&self) -> u64 {
        self.bytes
    }

    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let trial = |bytes: u64| {
            // Reading back for the check takes its time, too, so the clock on the wall counts here.
            let began = std::time::Instant::now();
            self.run(place, bytes, interrupt)?;
            Ok::<f64, Error>(began.elapsed().as_secs_f64())
        };
        let short_s = trial(SHORT_TRIAL)?;
        let long = if short_s < QUICK_TRIAL_S { QUICK_TRIAL } else { LONG_TRIAL };
        let long_s = trial(long)?;
        #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
        let (short, long, whole) = (SHORT_TRIAL as f64, long as f64, self.bytes as f64);
        // Opening, syncing and removing cost the same whatever the length.
        let per_byte_s = ((long_s - short_s) / (long - short)).max(0.0);
        let round_fixed_s = (short_s - per_byte_s * short).max(0.0);
        Ok(Estimate { round_fixed_s, round_s: per_byte_s * whole, ..Estimate::default() })
    }

    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error> {
        let bytes = scaled(self.bytes, factor, MIN_BYTES.min(self.bytes));
        if bytes >= self.bytes {
            return Ok(None);
        }
        let said = format!("streams of {} MiB instead of {}", bytes.div_ceil(1 << 20), self.bytes.div_ceil(1 << 20));
        let shrunk = Shrunk::new(said, self.bytes, bytes);
        self.bytes = bytes;
        Ok(Some(shrunk))
    }

    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        self.run(place, self.bytes, interrupt)
    }

    fn operations(&self, phase: &str) -> Option<u64> {
        let size = WRITES.iter().find(|(name, _)| *name == phase).map_or(BUFFER_BYTES, |(_, size)| *size);
        Some(self.bytes.div_ceil(size as u64))
    }

    fn bytes(&self, _phase: &str) -> Option<u64> {
        Some(self.bytes)
    }

    fn notes(&self) -> Vec<String> {
        vec!["from opening the file to the end of its `fsync`, fed by a pipe".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    #[test]
    fn every_size_of_write_gives_the_same_file() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let outcome = Stream::new((5 << 20) + 123).round(&place, &Interrupt::default()).unwrap();
        assert_eq!(outcome.fault, None);
        assert_eq!(outcome.phases.len(), WRITES.len() + 1);
        assert_eq!(outcome.proof.bytes_read, Some((5 << 20) + 123));
        assert_eq!(std::fs::read_dir(scratch.work()).unwrap().count(), 0);
    }

    #[test]
    fn a_disk_that_refuses_ends_the_stream_with_its_error() {
        let stream = Stream::new(8 << 20);
        for size in [Some(4096), None] {
            let dir = tempfile::tempdir().unwrap();
            let error = stream
                .relay(&dir.path().join("x"), 8 << 20, |input, _| {
                    let mut full = File::options().write(true).open("/dev/full").unwrap();
                    match size {
                        Some(size) => relay_blocks(input, &mut full, size, &Interrupt::default()),
                        None => relay_overlapped(input, &mut full, &Interrupt::default()),
                    }
                })
                .unwrap_err();
            assert!(matches!(&error, Error::Io { action: "write", .. }), "{error}");
        }
    }

    #[test]
    fn a_signal_ends_a_stream_early() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let interrupt = Interrupt::default();
        interrupt.set();
        let error = Stream::new(64 << 20).round(&place, &interrupt).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
    }
}
