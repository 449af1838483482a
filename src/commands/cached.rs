//! `--cached`: what the last run found, for prompts and editors, in milliseconds.
//!
//! Nothing that goes wrong here may disturb the caller: no result, a broken file, a mount that hangs, even a bug of ours
//! ends in silence and exit status 0.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use serde::Deserialize;

use crate::cli::{CheckArgs, Format, MaxAgeOrPath};
use crate::commands::check::exit_code;
use crate::commands::output;
use crate::error::{EXIT_OK, Error};
use crate::lock::FileLock;
use crate::report::oneline::one_line;
use crate::scan::access::{Access, is_absent};
use crate::scan::filesystem::System;
use crate::scan::filesystem::mount_table::{Lookup, MountTable, normalize};
use crate::scan::filesystem::rules::FilesystemRuleSet;
use crate::state::{Entry, Seen, Store};

/// Drivers, mounts and repositories change; what is older is better measured again.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Calls on the repository's mount that one answer may cost; on a slow one each takes milliseconds.
const MAX_CALLS: u64 = 3;
/// A mount that needs longer for [`MAX_CALLS`] calls holds up its user enough without us.
const MOUNT_DEADLINE: Duration = Duration::from_secs(1);
/// Pause between two measurements in the background of one place.
const REFRESH_PAUSE: Duration = Duration::from_secs(10 * 60);
/// The lowest priority that `nice(1)` knows.
const LOWEST_PRIORITY: i32 = 19;
/// A git configuration file or `.rehome.yaml` beyond this is not read; usual ones have some hundred bytes.
const MAX_CONFIG_BYTES: usize = 64 << 10;

/// Answers from the last result and returns the exit status, which is 0 unless `--exit-code` asks for more.
///
/// # Errors
///
/// [`Error::Usage`] alone, when the command line names two paths.
pub fn run(args: &CheckArgs, wanted: Option<&MaxAgeOrPath>, out: &mut dyn Write) -> Result<u8, Error> {
    let (max_age, path) = match (wanted, &args.path) {
        (Some(MaxAgeOrPath::Path(path)), Some(_)) => {
            return Err(Error::Usage(format!("`{}` is no duration; write for example `--cached 7d`", path.display())));
        }
        (Some(MaxAgeOrPath::Path(path)), None) => (DEFAULT_MAX_AGE, Some(path.clone())),
        (Some(MaxAgeOrPath::MaxAge(age)), path) => (*age, path.clone()),
        (None, path) => (DEFAULT_MAX_AGE, path.clone()),
    };
    // The message of a panic would land in somebody's prompt.
    std::panic::set_hook(Box::new(|_| {}));
    let answer = || {
        let store = Store::of_user()?;
        let access = Arc::new(Access::default());
        let request = Request { args, max_age, path: path.as_deref(), store: &store, access: &access };
        request.answer(out)
    };
    Ok(catch_unwind(AssertUnwindSafe(answer)).ok().flatten().unwrap_or(EXIT_OK))
}

/// Makes this process the one measurement in the background; `None` when there is one already.
#[must_use]
pub fn enter_background(store: &Store) -> Option<FileLock> {
    let lock = store.lock()?;
    // Neither is needed for the result: a session of its own outlives the terminal, and a low priority disturbs less.
    let _ = rustix::process::setsid();
    let _ = rustix::process::nice(LOWEST_PRIORITY);
    Some(lock)
}

struct Request<'a> {
    args: &'a CheckArgs,
    max_age: Duration,
    path: Option<&'a Path>,
    store: &'a Store,
    access: &'a Arc<Access>,
}

/// What the repository's mount says about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Fresh,
    Stale,
    Muted,
}

impl Request<'_> {
    /// Writes the answer where there is one and returns the exit status; `None` when there is nothing to say.
    fn answer(&self, out: &mut dyn Write) -> Option<u8> {
        if is_muted_by_environment() || is_muted_by_user() {
            return None;
        }
        let (start, found) = self.find()?;
        let Some((entry, levels)) = found.filter(|(entry, _)| entry.age() < self.max_age) else {
            self.refresh(&start);
            return None;
        };
        // A program that asks for the whole report decides itself what to show, and how often.
        let is_for_person = matches!(self.args.format, Format::Text | Format::Oneline);
        let is_silent = is_for_person && (one_line(&entry.report).is_none() || self.store.was_shown(&entry));
        if is_silent && !self.args.exit_code && !self.args.refresh {
            return None;
        }
        match self.standing(&start, &entry, levels, is_silent) {
            Standing::Muted => return None,
            Standing::Stale => {
                self.refresh(&start);
                return None;
            }
            Standing::Fresh => {}
        }
        if !is_silent {
            output::write_report(&entry.report, self.args, out).ok()?;
            if is_for_person {
                // At worst it is shown twice.
                let _ = self.store.mark_shown(&entry);
            }
        }
        self.args.exit_code.then(|| exit_code(&entry.report))
    }

    /// Returns where the search began, and the entry that was found there or above.
    fn find(&self) -> Option<(PathBuf, Option<(Entry, usize)>)> {
        let Some(path) = self.path else {
            let here = std::env::current_dir().ok()?;
            let found = self.store.find(&here);
            return Some((here, found));
        };
        let text = path.to_str().unwrap_or_default();
        let path = if text.contains('\\') || text.get(1..2) == Some(":") {
            System::live(FilesystemRuleSet::builtin().ok()?).ok()?.resolve_spelling(path).ok()?
        } else {
            path.to_owned()
        };
        let path = normalize(&std::path::absolute(path).ok()?);
        if let Some(found) = self.store.find(&path) {
            return Some((path, Some(found)));
        }
        // Perhaps a link leads to what is known under another name.
        let real = self.on_mount(move |access| {
            access.add_calls(1);
            let place = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
            std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()
        })??;
        let found = self.store.find(&real);
        Some((real, found))
    }

    fn standing(&self, start: &Path, entry: &Entry, levels: usize, is_silent: bool) -> Standing {
        let (start, entry) = (start.to_owned(), entry.clone());
        let look = move |access: &Access| look(access, &start, &entry, levels, is_silent);
        // A mount that does not answer in time has no index that could be compared.
        self.on_mount(look).unwrap_or(Standing::Muted)
    }

    /// Runs something that touches the repository's mount; `None` when it takes too long.
    ///
    /// The thread is left behind then; it ends with the process.
    fn on_mount<T: Send + 'static>(&self, ask: impl FnOnce(&Access) -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = mpsc::channel();
        let access = Arc::clone(self.access);
        // The receiver may be gone when the answer comes too late.
        std::thread::Builder::new().spawn(move || drop(sender.send(ask(&access)))).ok()?;
        receiver.recv_timeout(MOUNT_DEADLINE).ok()
    }

    /// Starts a measurement of `start` in the background if that was asked for, and is not under way or just over.
    fn refresh(&self, start: &Path) {
        if !self.args.refresh || !self.store.may_try(start, REFRESH_PAUSE) {
            return;
        }
        let mut command = Command::new("/proc/self/exe");
        command.args(["check", "--background", "--quiet", "--format", "oneline", "--output", "/dev/null"]);
        command.arg("--budget").arg(format!("{}s", self.args.budget.as_secs_f64()));
        if let Some(target) = self.args.target.as_ref().and_then(|target| std::path::absolute(target).ok()) {
            command.arg("--target").arg(target);
        }
        if !self.args.target_fs.is_empty() {
            command.arg("--target-fs").arg(self.args.target_fs.join(","));
        }
        command.arg("--").arg(start);
        // Elsewhere than in the repository, which might have to be unmounted meanwhile.
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Nobody waits for it: init takes it over when this process ends.
        drop(command.spawn());
    }
}

/// Asks the repository's mount whether an entry still holds, with as many questions as are left of [`MAX_CALLS`].
///
/// All questions are put at the same time: none needs another's answer, and on a slow mount each takes milliseconds.
fn look(access: &Access, start: &Path, entry: &Entry, levels: usize, is_silent: bool) -> Standing {
    let (Some(index), Some(config)) = (entry.index_path(), entry.config_path()) else { return Standing::Stale };
    let mut left = MAX_CALLS.saturating_sub(access.count().calls + 1);
    let mut may_ask = |is_needed: bool| {
        let may = is_needed && left > 0;
        left -= u64::from(may);
        may
    };
    let asks_config = may_ask(!is_silent);
    // A repository within the one that is known, which was never looked at.
    let asks_below = may_ask(levels > 0);
    let worktree = entry.repo().and_then(|repo| repo.worktree.as_ref()).map(Path::new);
    let worktree = worktree.filter(|_| may_ask(!is_silent));
    std::thread::scope(|scope| {
        let muted = scope.spawn(|| asks_config && is_muted_by_config(access, &config));
        let below = scope.spawn(|| asks_below && access.exists(&start.join(".git")).unwrap_or(false));
        let muted_there = scope.spawn(|| worktree.is_some_and(|worktree| is_muted_by_repository(access, worktree)));
        let holds = entry.holds(&seen(access, &index));
        // A thread that panicked knows nothing, and silence disturbs nobody.
        let answer = |thread: std::thread::ScopedJoinHandle<bool>| thread.join().unwrap_or(true);
        let (muted, below, muted_there) = (answer(muted), answer(below), answer(muted_there));
        if !holds || below {
            Standing::Stale
        } else if muted || muted_there {
            Standing::Muted
        } else {
            Standing::Fresh
        }
    })
}

/// Returns the index's size and its mount, in one call.
fn seen(access: &Access, index: &Path) -> Seen {
    access.add_calls(1);
    let statx = rustix::fs::statx(CWD, index, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::SIZE | StatxFlags::MNT_ID);
    let is_missing = statx.as_ref().err().is_some_and(|&errno| is_absent(&errno.into()));
    let Some(text) = std::fs::read("/proc/self/mountinfo").ok().filter(|_| statx.is_ok() || is_missing) else {
        return Seen { mount: None, index_bytes: None };
    };
    let table = MountTable::parse(&text);
    let told =
        statx.as_ref().ok().filter(|statx| StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::MNT_ID));
    let mount = match told {
        Some(statx) => table.by_id(statx.stx_mnt_id),
        None => match table.lookup(index) {
            Lookup::Mount(mount) => Some(mount),
            Lookup::Automount(_) | Lookup::Nothing => None,
        },
    };
    let identity = |mount: &crate::scan::filesystem::mount_table::Mount| {
        (mount.mount_point.to_string_lossy().into_owned(), mount.fstype.clone(), mount.source.clone())
    };
    Seen { mount: mount.map(identity), index_bytes: statx.ok().map(|statx| statx.stx_size) }
}

/// `REHOME_MUTE` with anything but nothing, `0` and `false`.
fn is_muted_by_environment() -> bool {
    std::env::var("REHOME_MUTE").is_ok_and(|value| !matches!(value.trim(), "" | "0" | "false"))
}

/// `rehome.mute` in the user's or the system's git configuration; their includes are not followed.
fn is_muted_by_user() -> bool {
    let own = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = own("HOME");
    let xdg = own("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    // In the order of git: what is read later wins.
    let files = match own("GIT_CONFIG_GLOBAL") {
        Some(only) => vec![Some(only)],
        None => vec![xdg.map(|dir| dir.join("git/config")), home.map(|dir| dir.join(".gitconfig"))],
    };
    let system = own("GIT_CONFIG_SYSTEM").or_else(|| Some(PathBuf::from("/etc/gitconfig")));
    let not_counted = Access::default();
    let muted = [system].into_iter().chain(files).flatten().filter_map(|file| muted_in(&not_counted, &file));
    muted.last().unwrap_or(false)
}

fn is_muted_by_config(access: &Access, file: &Path) -> bool {
    muted_in(access, file).unwrap_or(false)
}

/// Returns `rehome.mute` of one configuration file; `None` when it does not set it.
fn muted_in(access: &Access, file: &Path) -> Option<bool> {
    let bytes = access.read(file, MAX_CONFIG_BYTES).ok()?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let metadata = gix::config::file::Metadata::from(gix::config::Source::Local);
    let options = gix::config::file::init::Options::default();
    let config = gix::config::File::from_bytes_no_includes(bytes, metadata, options).ok()?;
    crate::scan::config::boolean(&config, "rehome.mute")
}

/// The one line of `.rehome.yaml` that counts here.
#[derive(Deserialize)]
struct RepositoryFile {
    #[serde(default)]
    mute: bool,
}

fn is_muted_by_repository(access: &Access, worktree: &Path) -> bool {
    let Ok(bytes) = access.read(&worktree.join(".rehome.yaml"), MAX_CONFIG_BYTES) else { return false };
    serde_yaml::from_slice::<RepositoryFile>(&bytes).is_ok_and(|file| file.mute)
}
