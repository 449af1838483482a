//! Suite `small`: create, read, stat and delete many small files, as checkouts, builds and `npm install` do.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::clock::Stopwatch;
use super::content::Content;
use super::engine::{Outcome, Shrunk, WorkDir, Workload};
use super::fit::Estimate;
use super::result::{Proof, Setup, Suite};
use super::verify::{Crc, Mismatch};
use crate::error::Error;
use crate::signals::Interrupt;

/// The phases, in the order they are run.
const PHASES: [&str; 4] = ["create", "read", "stat", "delete"];
/// Files of the trial that tells how long a round takes.
const TRIAL_FILES: u64 = 20;
/// Fewest files that a round is shrunk to; below, the directories weigh more than the files.
const MIN_FILES: u64 = 20;
/// Read buffer: checksums are computed, with the clock standing still, whenever it is full.
const BATCH_BYTES: usize = 8 << 20;

/// How much one round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallPlan {
    /// Files.
    pub files: u64,
    /// Size of each, in bytes.
    pub size_bytes: u64,
    /// Directories that they are spread over.
    pub dirs: u64,
    /// Whether each file is written through to the disk before the next.
    pub fsync: bool,
}

impl SmallPlan {
    /// Returns the same work with fewer files, and as many of them in a directory.
    fn shrunk_to(self, files: u64) -> Self {
        let dirs = (self.dirs * files).div_ceil(self.files.max(1)).max(1);
        Self { files, dirs, ..self }
    }
}

/// Names and expected results for one number of files.
struct Layout {
    dirs: Vec<CString>,
    files: Vec<CString>,
    crc32: String,
}

/// The workload.
pub(super) struct Small {
    plan: SmallPlan,
    content: Content,
    layout: Layout,
    /// Read buffer; kept between rounds, so that no round pays for the memory's first touch.
    buffer: Vec<u8>,
}

impl Small {
    pub(super) fn new(plan: SmallPlan) -> Result<Self, Error> {
        let size = usize::try_from(plan.size_bytes).map_err(|_| Error::Usage("`--size` is too large".to_owned()))?;
        let content = Content::new(size);
        let layout = Layout::new(plan, &content)?;
        // One byte more than a file has, so that one that is too long is noticed.
        let buffer = vec![u8::MAX; BATCH_BYTES.max(size + 1)];
        Ok(Self { plan, content, layout, buffer })
    }

    fn run(&mut self, place: &WorkDir, trial: Option<&Layout>, interrupt: &Interrupt) -> Result<Outcome, Error> {
        let layout = trial.unwrap_or(&self.layout);
        let pass = Pass { place, layout, plan: &self.plan, content: &self.content, interrupt };
        let create = pass.create()?;
        let mut proof = Proof { files: Some(layout.files.len() as u64), ..Proof::default() };
        let read = pass.read(&mut self.buffer, &mut proof)?;
        let stat = pass.stat(&mut proof)?;
        let delete = pass.delete()?;
        proof.gone = Some(pass.is_empty()?);
        let times = [create, read, stat, delete];
        let fault = layout.check(&proof, self.plan.size_bytes);
        Ok(Outcome {
            phases: PHASES.iter().map(|name| (*name).to_owned()).zip(times).collect(),
            proof,
            fault,
            bytes_written: layout.files.len() as u64 * self.plan.size_bytes,
        })
    }
}

impl Workload for Small {
    fn suite(&self) -> Suite {
        Suite::Small
    }

    fn setup(&self) -> Setup {
        Setup {
            files: Some(self.plan.files),
            size_bytes: Some(self.plan.size_bytes),
            dirs: Some(self.plan.dirs),
            fsync: Some(self.plan.fsync),
            ..Setup::default()
        }
    }

    fn needed_bytes(&self) -> u64 {
        self.plan.files * self.plan.size_bytes
    }

    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let files = TRIAL_FILES.min(self.plan.files);
        let layout = Layout::new(self.plan.shrunk_to(files), &self.content)?;
        let outcome = self.run(place, Some(&layout), interrupt)?;
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let factor = self.plan.files as f64 / files as f64;
        Ok(Estimate { round_s: outcome.total_s() * factor, ..Estimate::default() })
    }

    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error> {
        let files = super::engine::scaled(self.plan.files, factor, MIN_FILES.min(self.plan.files));
        if files >= self.plan.files {
            return Ok(None);
        }
        let shrunk = Shrunk::new(format!("{files} files instead of {}", self.plan.files), self.plan.files, files);
        self.plan = self.plan.shrunk_to(files);
        self.layout = Layout::new(self.plan, &self.content)?;
        Ok(Some(shrunk))
    }

    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        self.run(place, None, interrupt)
    }

    fn operations(&self, _phase: &str) -> Option<u64> {
        Some(self.plan.files)
    }

    fn bytes(&self, phase: &str) -> Option<u64> {
        matches!(phase, "create" | "read").then_some(self.plan.files * self.plan.size_bytes)
    }

    fn has_total(&self) -> bool {
        true
    }
}

impl Layout {
    /// Spreads the files evenly, in order, so that each directory is filled before the next.
    fn new(plan: SmallPlan, content: &Content) -> Result<Self, Error> {
        let files = plan.files;
        let dirs = plan.dirs.clamp(1, files.max(1));
        let name = |text: String| CString::new(text).map_err(|e| Error::Output(io::Error::other(e)));
        let per_dir = files.div_ceil(dirs);
        let mut crc = Crc::default();
        let mut names = Vec::new();
        for number in 0..files {
            names.push(name(format!("d{:02}/f{number:05}", number / per_dir))?);
            crc.update(content.piece(usize::try_from(number).unwrap_or(usize::MAX)));
        }
        // Rounding up may leave the last directories without a file; they are made all the same.
        let dirs = (0..dirs).map(|number| name(format!("d{number:02}"))).collect::<Result<_, _>>()?;
        Ok(Self { dirs, files: names, crc32: crc.hex() })
    }

    /// Returns what a round got wrong; `None` when everything is as it must be.
    fn check(&self, proof: &Proof, size_bytes: u64) -> Option<String> {
        let bytes = self.files.len() as u64 * size_bytes;
        let mut mismatch = Mismatch::default();
        mismatch.number("bytes read", bytes, proof.bytes_read);
        mismatch.number("the sum of the sizes", bytes, proof.stat_bytes);
        mismatch.text("the CRC-32 of what was read", &self.crc32, proof.crc32.as_deref());
        mismatch.truth("the round's directory is not empty after deleting", proof.gone == Some(true));
        mismatch.finish()
    }
}

/// One pass over the files, its calls relative to an open directory.
struct Pass<'a> {
    place: &'a WorkDir,
    layout: &'a Layout,
    plan: &'a SmallPlan,
    content: &'a Content,
    interrupt: &'a Interrupt,
}

impl Pass<'_> {
    fn create(&self) -> Result<f64, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let watch = Stopwatch::start();
        for dir in &self.layout.dirs {
            rustix::fs::mkdirat(&self.place.fd, dir, Mode::RWXU).map_err(|e| self.error("create", dir, e))?;
        }
        for (number, name) in self.layout.files.iter().enumerate() {
            let file = rustix::fs::openat(&self.place.fd, name, flags, Mode::RUSR | Mode::WUSR)
                .map_err(|e| self.error("create", name, e))?;
            write_all(&file, self.content.piece(number)).map_err(|e| self.error("write", name, e))?;
            if self.plan.fsync {
                rustix::fs::fsync(&file).map_err(|e| self.error("sync", name, e))?;
            }
            drop(file);
            self.interrupt.check()?;
        }
        if self.plan.fsync {
            for dir in &self.layout.dirs {
                self.sync_dir(dir)?;
            }
        }
        Ok(watch.stop())
    }

    fn sync_dir(&self, dir: &CString) -> Result<(), Error> {
        let file = rustix::fs::openat(&self.place.fd, dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| self.error("open", dir, e))?;
        match rustix::fs::fsync(&file) {
            // Filesystems that cannot sync a directory say so in this way (fsync(2)); there is nothing to wait for.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(self.error("sync", dir, error)),
        }
    }

    fn read(&self, buffer: &mut [u8], proof: &mut Proof) -> Result<f64, Error> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let room = self.content.piece(0).len() + 1;
        let (mut crc, mut used, mut bytes) = (Crc::default(), 0, 0);
        let mut watch = Stopwatch::start();
        for name in &self.layout.files {
            if buffer.len() - used < room {
                watch.pause();
                crc.update(&buffer[..used]);
                used = 0;
                self.interrupt.check()?;
                watch.resume();
            }
            let file = rustix::fs::openat(&self.place.fd, name, flags, Mode::empty())
                .map_err(|e| self.error("open", name, e))?;
            let limit = used + room;
            while used < limit {
                let read =
                    rustix::io::read(&file, &mut buffer[used..limit]).map_err(|e| self.error("read", name, e))?;
                if read == 0 {
                    break;
                }
                used += read;
                bytes += read as u64;
            }
            self.interrupt.check()?;
        }
        let elapsed_s = watch.stop();
        crc.update(&buffer[..used]);
        proof.bytes_read = Some(bytes);
        proof.crc32 = Some(crc.hex());
        Ok(elapsed_s)
    }

    fn stat(&self, proof: &mut Proof) -> Result<f64, Error> {
        let mut bytes = 0;
        let watch = Stopwatch::start();
        for name in &self.layout.files {
            let stat = rustix::fs::statat(&self.place.fd, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|e| self.error("stat", name, e))?;
            bytes += u64::try_from(stat.st_size).unwrap_or(0);
            self.interrupt.check()?;
        }
        proof.stat_bytes = Some(bytes);
        Ok(watch.stop())
    }

    fn delete(&self) -> Result<f64, Error> {
        let watch = Stopwatch::start();
        for name in &self.layout.files {
            rustix::fs::unlinkat(&self.place.fd, name, AtFlags::empty()).map_err(|e| self.error("delete", name, e))?;
            self.interrupt.check()?;
        }
        for dir in &self.layout.dirs {
            rustix::fs::unlinkat(&self.place.fd, dir, AtFlags::REMOVEDIR).map_err(|e| self.error("delete", dir, e))?;
        }
        Ok(watch.stop())
    }

    fn is_empty(&self) -> Result<bool, Error> {
        let mut entries =
            std::fs::read_dir(&self.place.path).map_err(|e| Error::io("list", self.place.path.clone(), e))?;
        Ok(entries.next().is_none())
    }

    fn error(&self, action: &'static str, name: &CString, errno: rustix::io::Errno) -> Error {
        Error::io(action, self.place.path.join(path_of(name)), errno.into())
    }
}

fn path_of(name: &CString) -> PathBuf {
    Path::new(&*name.to_string_lossy()).to_owned()
}

/// Writes all of it, in one call unless the kernel takes less.
fn write_all(file: &OwnedFd, mut data: &[u8]) -> Result<(), rustix::io::Errno> {
    while !data.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(file, data))?;
        if written == 0 {
            return Err(rustix::io::Errno::IO);
        }
        data = &data[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    const PLAN: SmallPlan = SmallPlan { files: 50, size_bytes: 100, dirs: 4, fsync: false };

    fn with_pass(check: impl FnOnce(&Pass<'_>, &Path)) {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let small = Small::new(PLAN).unwrap();
        let interrupt = Interrupt::default();
        let pass = Pass {
            place: &place,
            layout: &small.layout,
            plan: &small.plan,
            content: &small.content,
            interrupt: &interrupt,
        };
        check(&pass, &scratch.work());
    }

    fn proof(pass: &Pass<'_>) -> Proof {
        let mut proof = Proof::default();
        pass.read(&mut vec![0; BATCH_BYTES], &mut proof).unwrap();
        pass.stat(&mut proof).unwrap();
        proof.gone = Some(true);
        proof
    }

    #[test]
    fn an_untouched_round_is_right_and_leaves_nothing() {
        with_pass(|pass, _| {
            pass.create().unwrap();
            assert_eq!(pass.layout.check(&proof(pass), PLAN.size_bytes), None);
            pass.delete().unwrap();
            assert!(pass.is_empty().unwrap());
        });
    }

    #[test]
    fn one_changed_byte_is_noticed() {
        with_pass(|pass, work| {
            pass.create().unwrap();
            let victim = work.join("d01/f00013");
            let mut data = std::fs::read(&victim).unwrap();
            data[50] ^= 1;
            std::fs::write(&victim, &data).unwrap();
            let fault = pass.layout.check(&proof(pass), PLAN.size_bytes).unwrap();
            assert!(fault.starts_with("the CRC-32 of what was read is "), "{fault}");
        });
    }

    #[test]
    fn a_file_that_is_too_short_or_too_long_is_noticed_by_reading_and_by_stat() {
        for length in [99, 101] {
            with_pass(|pass, work| {
                pass.create().unwrap();
                std::fs::write(work.join("d00/f00000"), vec![0; length]).unwrap();
                let fault = pass.layout.check(&proof(pass), PLAN.size_bytes).unwrap();
                let wrong = 4_900 + length;
                assert!(fault.contains(&format!("bytes read is {wrong} instead of 5000")), "{fault}");
                assert!(fault.contains(&format!("the sum of the sizes is {wrong} instead of 5000")), "{fault}");
            });
        }
    }

    #[test]
    fn a_file_left_behind_is_noticed() {
        with_pass(|pass, work| {
            pass.create().unwrap();
            std::fs::write(work.join("stray"), b"").unwrap();
            let mut proof = proof(pass);
            pass.delete().unwrap();
            proof.gone = Some(pass.is_empty().unwrap());
            let fault = pass.layout.check(&proof, PLAN.size_bytes).unwrap();
            assert_eq!(fault, "the round's directory is not empty after deleting");
        });
    }

    #[test]
    fn more_directories_than_files_are_no_trouble() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        for (files, dirs) in [(1, 1), (3, 7), (7, 3), (20, 20)] {
            let mut small = Small::new(SmallPlan { files, dirs, size_bytes: 0, fsync: true }).unwrap();
            let outcome = small.round(&place, &Interrupt::default()).unwrap();
            assert_eq!(outcome.fault, None);
        }
    }

    #[test]
    fn shrinking_keeps_a_useful_number_of_files_and_says_so() {
        let mut small = Small::new(SmallPlan { files: 1000, dirs: 20, ..PLAN }).unwrap();
        let said = |shrunk: Option<Shrunk>| shrunk.map(|shrunk| shrunk.said);
        assert_eq!(said(small.shrink(0.25).unwrap()).as_deref(), Some("250 files instead of 1000"));
        assert_eq!(small.layout.files.len(), 250);
        assert_eq!(said(small.shrink(0.001).unwrap()).as_deref(), Some("20 files instead of 250"));
        assert_eq!(small.shrink(0.001).unwrap(), None);
    }
}
