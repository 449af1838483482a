//! The order of a run, its budget, and what becomes of it when time or the mount runs out.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::measure::copy_side::CopySide;
use crate::measure::dirty::{self, StatRules};
use crate::measure::files::Files;
use crate::measure::load::Load;
use crate::measure::private_git::{Parts, PrivateGit, ahead_of_now};
use crate::measure::probe::client::{Probe, Trouble};
use crate::measure::probe::{Answer, Ask, Calibration, Setup};
use crate::measure::raw_index::RawIndex;
use crate::measure::request::{Halt, Outcome, Request, Workload};
use crate::measure::settings::Settings;
use crate::measure::sweep::Stop;
use crate::measure::temp::RunDir;
use crate::progress::Progress;
use crate::signals::Interrupt;

/// Longest time for the first sample of the mount, in seconds: it only has to tell milliseconds from microseconds.
const CALIBRATION_S: f64 = 0.2;
/// Share of the budget that stays for what comes after measuring, and for the one call that runs over each limit.
const END_SHARE: f64 = 0.05;
/// Shares of the budget: none may eat what the others need. What is left over goes to `git status`.
const SKELETON_SHARE: f64 = 0.3;
/// Share for the workloads `stat` and `walk` each.
const WORKLOAD_SHARE: f64 = 0.08;
/// Longest time for the skeleton in seconds: the copy's time is the small one, so a part of it will do.
const SKELETON_MOST_S: f64 = 3.0;
/// Share of the budget that a workload needs to be worth starting.
const FEWEST_SHARE: f64 = 0.02;
/// Where a filesystem in memory is mounted on every Linux with a C library (`shm_overview(7)`).
const MEMORY: &str = "/dev/shm";
/// Share of the files that a copy has to hold for its figures to be scaled up: what git does once would count too often
/// in a smaller one.
const FEWEST_PART: f64 = 0.05;
/// What is said when time runs out.
const BUDGET_USED_UP: &str = "the budget was used up before every workload was measured; give more with `--budget`";
/// How long after the deadline an answer may still come: a mount this slow counts as hung.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a run on a repository that is already native may take, in seconds: it is run by scripts and prompts.
const NATIVE_BUDGET: Duration = Duration::from_millis(600);

/// Measures the workloads in place and in a copy.
///
/// An interrupt and a mount that hangs are no errors: what was finished by then is in the outcome.
///
/// # Errors
///
/// [`Error`] when the copy cannot be made or the probe does not work.
pub fn measure(request: &Request, progress: &dyn Progress, interrupt: &Interrupt) -> Result<Outcome, Error> {
    run(request, progress, interrupt, true)
}

/// Measures the workloads where the repository is, in a fraction of a second and without a copy.
///
/// # Errors
///
/// As [`measure`].
pub fn measure_in_place_only(
    request: &Request,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> Result<Outcome, Error> {
    let request = Request { budget: request.budget.min(NATIVE_BUDGET), ..*request };
    run(&request, progress, interrupt, false)
}

fn run(request: &Request, progress: &dyn Progress, interrupt: &Interrupt, copies: bool) -> Result<Outcome, Error> {
    let started = Instant::now();
    let nothing_tracked = || {
        let notes = vec!["nothing is tracked, so there is nothing to measure".to_owned()];
        Ok(Outcome { complete: true, notes, ..Outcome::default() })
    };
    let Some(index) = &request.profile.index else { return nothing_tracked() };
    let bytes = whole_index(index)?;
    let hash = index.state.object_hash();
    let raw = RawIndex::parse(&bytes, hash)?;
    if raw.entries.is_empty() {
        return nothing_tracked();
    }
    let files = Files::of(&raw)?;
    let run_dir = RunDir::create(request.target, request.cache_home)?;
    let settings = Settings::of(request.profile);
    let outcome = Outcome {
        racy: Some(dirty::racy(&raw, &bytes, index.mtime.0)),
        case_collisions: case_collisions(&raw, &files),
        run_dir: Some(run_dir),
        ..Outcome::default()
    };
    let probe = Probe::start(request.probe_program).map_err(|e| Error::io("start a probe for", request.target, e))?;
    let mut session = Session {
        request,
        progress,
        interrupt,
        deadline: started + request.budget.mul_f64(1.0 - END_SHARE),
        settings,
        bytes,
        raw,
        files,
        probe,
        calibration: Calibration::default(),
        load: Load::default(),
        place_git_dir: None,
        outcome,
    };
    let result = session.everything(copies);
    let busy = session.load.remark();
    let mut outcome = session.outcome;
    outcome.notes.extend(busy);
    match result {
        Ok(()) => outcome.complete = true,
        Err(Halt::Interrupted) => outcome.interrupted = true,
        Err(Halt::Hung) => {
            outcome.hung = true;
            outcome.notes.push("the mount stopped answering; what was measured before that is kept".to_owned());
        }
        Err(Halt::Late) => outcome.notes.push(BUDGET_USED_UP.to_owned()),
        Err(Halt::Failed(error)) => return Err(error),
    }
    Ok(outcome)
}

/// A run under way; the workloads add to it.
pub(crate) struct Session<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) deadline: Instant,
    pub(crate) settings: Settings,
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) raw: RawIndex,
    pub(crate) files: Files,
    pub(crate) probe: Probe,
    pub(crate) calibration: Calibration,
    pub(crate) load: Load,
    /// The private git dir of runs in place: git's own work in it is in every run, and the real one would replace it.
    pub(crate) place_git_dir: Option<PathBuf>,
    pub(crate) outcome: Outcome,
}

impl Session<'_> {
    fn everything(&mut self, copies: bool) -> Result<(), Halt> {
        self.open()?;
        self.calibrate()?;
        let place = self.place_git()?;
        let mut copy = if copies { self.build_copy(place.as_ref())? } else { None };
        if self.wants(Workload::GitStatus) {
            match &place {
                Some(place) => self.git_status(place, copy.as_mut())?,
                None => self.note("git was not found on PATH, so `git status` was not measured"),
            }
        }
        for workload in [Workload::Stat, Workload::Walk] {
            if !self.wants(workload) {
                continue;
            }
            if self.is_late() {
                self.note(BUDGET_USED_UP);
                break;
            }
            match workload {
                Workload::Stat => self.stat(copy.as_ref())?,
                _ => self.walk(copy.as_ref())?,
            }
        }
        Ok(())
    }

    fn wants(&self, workload: Workload) -> bool {
        self.request.workloads.contains(&workload)
    }

    /// Adds a sentence to the outcome.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.outcome.notes.push(text.into());
    }

    /// Asks the probe; it is given up when it is still silent some time after the deadline.
    ///
    /// What is asked stops by itself at the deadline, but for the one call that is under way.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Answer, Halt> {
        let is_late = Instant::now() >= self.deadline;
        match self.probe.ask(ask, self.deadline + PATIENCE, self.interrupt) {
            // Asked after the deadline: the silence says nothing about the mount.
            Err(Trouble::Hung) if is_late => Err(Halt::Late),
            answer => Ok(answer?),
        }
    }

    /// Returns whether the budget is used up, so that a further workload would not end in time.
    pub(crate) fn is_late(&self) -> bool {
        self.share_s(1.0) < self.request.budget.as_secs_f64() * FEWEST_SHARE
    }

    /// Returns seconds of a share of the budget, or of what is left if that is less.
    pub(crate) fn share_s(&self, share: f64) -> f64 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        (self.request.budget.as_secs_f64() * share).min(left.as_secs_f64())
    }

    /// Returns seconds for one of the workloads `stat` and `walk`.
    pub(crate) fn workload_share_s(&self) -> f64 {
        self.share_s(WORKLOAD_SHARE)
    }

    /// Returns when `git status` has to be done, so that the workloads behind it get their share.
    pub(crate) fn git_limit(&self) -> Instant {
        let others = [Workload::Stat, Workload::Walk].into_iter().filter(|workload| self.wants(*workload)).count();
        let reserve = self.request.budget.mul_f64(WORKLOAD_SHARE).saturating_mul(u32::try_from(others).unwrap_or(0));
        self.deadline.checked_sub(reserve).unwrap_or(self.deadline)
    }

    fn run_dir(&self) -> Result<&Path, Halt> {
        self.outcome.run_dir.as_ref().map(RunDir::path).ok_or(Halt::Interrupted)
    }

    fn open(&mut self) -> Result<(), Halt> {
        let copied = self.run_dir()?.join("index");
        std::fs::write(&copied, &self.bytes).map_err(|e| Error::io("write", &copied, e))?;
        let profile = self.request.profile;
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let setup = Setup {
            worktree: bytes(&profile.worktree),
            index: bytes(&copied),
            is_sha256: self.raw.hash() == gix::hash::Kind::Sha256,
            rules: StatRules::from(&self.settings),
            git_dir: bytes(&profile.git_dir),
            common_dir: bytes(&profile.common_dir),
        };
        self.ask(&Ask::Open(setup)).map(drop)
    }

    fn calibrate(&mut self) -> Result<(), Halt> {
        self.progress.begin("sampling the mount", None);
        let limit_s = CALIBRATION_S.min(self.share_s(0.05));
        let answer = self.ask(&Ask::Calibrate { limit_s })?;
        self.progress.end();
        if let Answer::Calibrated(calibration) = answer {
            self.calibration = calibration;
            self.outcome.stat_dirty = scale(calibration.unsure, calibration.calls, self.files.paths.len());
        }
        Ok(())
    }

    /// Makes the private git dir for runs in place; `None` without git.
    fn place_git(&mut self) -> Result<Option<PrivateGit>, Halt> {
        let Some(git) = self.request.git else { return Ok(None) };
        if self.settings.has_fsmonitor {
            self.note("core.fsmonitor is set; it was left out, so your `git status` may be faster than measured here");
        }
        let profile = self.request.profile;
        let parts = Parts {
            program: Path::new(&git.path),
            worktree: &profile.worktree,
            settings: &self.settings,
            info: &profile.info,
            head: profile.head_commit.as_deref(),
            objects: Some(&profile.common_dir.join("objects")),
        };
        let place = PrivateGit::create(&self.run_dir()?.join("place.git"), &parts)?;
        place.write_index(&self.bytes, self.index_mtime())?;
        self.place_git_dir = Some(place.dir().to_owned());
        Ok(Some(place))
    }

    /// Returns the time of the repository's own index, which decides what is racy.
    pub(crate) fn index_mtime(&self) -> SystemTime {
        let (seconds, nanos) = self.request.profile.index.as_ref().map_or((0, 0), |index| index.mtime);
        UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or(0), nanos)
    }

    /// Returns whether an ordinary `git status` would change what the next one costs.
    pub(crate) fn is_stale(&self) -> bool {
        self.calibration.unsure > 0 || self.outcome.racy.is_some_and(|racy| racy > 0)
    }

    /// Makes the copy; `None` when the time was not enough for any part of it.
    fn build_copy(&mut self, place: Option<&PrivateGit>) -> Result<Option<CopySide>, Halt> {
        self.progress.begin("making the copy", None);
        let started = Instant::now();
        let run_dir = self.run_dir()?.to_owned();
        let mut copy = CopySide::build(self, &run_dir, self.skeleton_stop())?;
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let is_too_small = (copy.facts.files as f64) < FEWEST_PART * self.files.paths.len() as f64;
        if is_too_small && let Some(in_memory) = self.build_in_memory()? {
            copy = in_memory;
        }
        if copy.facts.files == 0 {
            self.note("the copy could not be made in time, so only the place was measured; give more with `--budget`");
            self.progress.end();
            return Ok(None);
        }
        copy.take_contents(self)?;
        if let Some(place) = place {
            copy.add_git(self, place)?;
        }
        if !copy.facts.is_whole {
            self.note(format!(
                "the copy holds {} of {} files, as many as could be made in time; its figures are scaled up",
                copy.facts.files,
                self.files.paths.len()
            ));
        }
        copy.facts.build_s = started.elapsed().as_secs_f64();
        self.outcome.copy = Some(copy.facts.clone());
        self.progress.end();
        Ok(Some(copy))
    }

    fn skeleton_stop(&self) -> Stop<'_> {
        let limit_s = SKELETON_MOST_S.min(self.share_s(SKELETON_SHARE));
        Stop { at: Instant::now() + Duration::try_from_secs_f64(limit_s).unwrap_or_default(), flag: self.interrupt }
    }

    /// Makes the copy in memory, the last resort: a status there takes about as long as on a disk whose metadata are in
    /// the cache. `None` when there is no such place, or no room or time for the whole.
    fn build_in_memory(&mut self) -> Result<Option<CopySide>, Halt> {
        self.interrupt.check()?;
        let Ok(dir) = RunDir::create(Path::new(MEMORY), None) else { return Ok(None) };
        let built = CopySide::build(self, dir.path(), self.skeleton_stop());
        self.outcome.memory_dir = Some(dir);
        let Some(mut copy) = built.ok().filter(|copy| copy.facts.is_whole) else { return Ok(None) };
        copy.facts.is_in_memory = true;
        self.note(format!(
            "the target is too slow for a copy in time, so it was made in memory ({MEMORY}): the figures on that side \
             are those of memory, which a disk reaches once it is in the cache"
        ));
        Ok(Some(copy))
    }

    /// Gives a private index the time that makes none of its entries racy.
    pub(crate) fn set_ahead(git: &PrivateGit) -> Result<(), Error> {
        git.set_index_mtime(ahead_of_now())
    }
}

/// Returns `part / of * whole`, rounded; `None` when nothing was looked at.
fn scale(part: u64, of: u64, whole: usize) -> Option<u64> {
    (part * whole as u64 + of / 2).checked_div(of)
}

/// Returns an index in one piece: a split one is put together from its two files.
///
/// gix writes that one, which keeps the cache of trees and loses the untracked cache; for every other index the bytes
/// stay as git wrote them.
fn whole_index(index: &crate::scan::Index) -> Result<Cow<'_, [u8]>, Error> {
    if index.shared.is_none() {
        return Ok(Cow::Borrowed(&index.bytes));
    }
    let mut bytes = Vec::new();
    gix::index::File::from_state(index.state.clone(), "index")
        .write_to(&mut bytes, gix::index::write::Options::default())
        .map_err(|_| {
            Error::refused("the split index cannot be put together", "run `git update-index --no-split-index`")
        })?;
    Ok(Cow::Owned(bytes))
}

/// Counts the paths that equal another one when case is ignored: two files on ext4, one on the original mount.
fn case_collisions(raw: &RawIndex, files: &Files) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let hasher = RandomState::new();
    let mut folded: Vec<u64> = files
        .paths
        .iter()
        .filter_map(|number| raw.entries.get(*number as usize))
        .map(|entry| hasher.hash_one(String::from_utf8_lossy(raw.name(entry)).to_lowercase()))
        .collect();
    folded.sort_unstable();
    folded.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}
