//! A slow mount for tests: a FUSE passthrough that delays, counts, limits, fails and hangs on demand.
//!
//! The kernel keeps no attribute and no entry of it, so that every look at a file arrives here, as it does on a 9p mount
//! without a cache. All settings can be changed while it is mounted. It shows the backing files as they are: inode
//! numbers, modes, times in nanoseconds, hard links, symlinks, extended attributes.
//!
//! A test that needs it says so with [`available`], which is loud where it cannot run.

#![allow(dead_code, reason = "each test uses its own part")]

mod calls;
mod filesystem;
mod server;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

pub(crate) use calls::{Call, Counts};
use filesystem::Passthrough;
use server::{Action, Server, locked};
use tree::Tree;

/// How long unmounting waits for the kernel to end the connection before it leaves the rest to it.
const GOODBYE: Duration = Duration::from_secs(2);
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(2);

/// What a slow mount starts with; all but the first four are fixed while it is mounted.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The delay of every call, in microseconds.
    pub(crate) delay_us: u64,
    /// How many requests are served at once; a delay holds its place. 0 for no limit.
    pub(crate) parallel: usize,
    pub(crate) read_only: bool,
    /// The source that the mount table shows; the backing directory when `None`.
    pub(crate) fsname: Option<String>,
    /// The filesystem type in the mount table is `fuse.<subtype>`, or plain `fuse` when `None`.
    pub(crate) subtype: Option<String>,
    /// Directories are listed together with attributes, as NFS does.
    pub(crate) readdirplus: bool,
    /// The kernel checks modes itself, which costs a `getattr` a path component.
    pub(crate) default_permissions: bool,
    /// Where to mount; a new temporary directory when `None`.
    pub(crate) mount_point: Option<PathBuf>,
}

impl Options {
    /// A mount that looks like sshfs, so like a network mount to the rules.
    #[allow(dead_code, reason = "each test uses its own part")]
    pub(crate) fn like_a_network() -> Options {
        Options { subtype: Some("sshfs".to_owned()), fsname: Some("host:/srv".to_owned()), ..Options::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            delay_us: 0,
            parallel: 0,
            read_only: false,
            fsname: None,
            subtype: Some("slow".to_owned()),
            readdirplus: false,
            default_permissions: false,
            mount_point: None,
        }
    }
}

/// A mounted slow mount; dropping it unmounts, whatever hangs or is open.
pub(crate) struct SlowMount {
    server: Arc<Server>,
    tree: Arc<Tree>,
    session: Mutex<Option<BackgroundSession>>,
    mount_point: PathBuf,
    is_own_mount_point: bool,
    /// The kernel's number of the connection.
    connection: Option<u32>,
}

/// Whether FUSE can be used here; if not, says loudly that `test` is skipped.
///
/// # Panics
///
/// Where FUSE cannot be used and the environment says `REHOME_REQUIRE_ALL=1`.
pub(crate) fn available(test: &str) -> bool {
    let is_there = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    if !is_there {
        assert!(env::var_os("REHOME_REQUIRE_ALL").is_none_or(|v| v != "1"), "{test} needs /dev/fuse");
        // Past the test harness's capture, which hides what a passing test prints.
        let _ = writeln!(io::stderr(), "SKIPPED {test}: needs /dev/fuse");
    }
    is_there
}

impl SlowMount {
    /// Mounts `backing`.
    pub(crate) fn new(backing: &Path, options: Options) -> io::Result<SlowMount> {
        let tree = Arc::new(Tree::new(backing)?);
        let server = Server::new(Duration::from_micros(options.delay_us), options.parallel);
        let is_own_mount_point = options.mount_point.is_none();
        let mount_point = match &options.mount_point {
            Some(path) => path.canonicalize()?,
            // Never removed with its contents: they would be the backing files if unmounting failed.
            None => tempfile::Builder::new().prefix("slow-mount-").tempdir()?.keep().canonicalize()?,
        };
        let filesystem =
            Passthrough { tree: Arc::clone(&tree), server: Arc::clone(&server), readdirplus: options.readdirplus };
        let config = config(options, backing)?;
        let session = fuser::spawn_mount(filesystem, &mount_point, &config).inspect_err(|_| {
            if is_own_mount_point {
                let _ = fs::remove_dir(&mount_point);
            }
        })?;
        let connection = connection(&mount_point);
        Ok(SlowMount { server, tree, session: Mutex::new(Some(session)), mount_point, is_own_mount_point, connection })
    }

    /// Returns the mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.mount_point
    }

    /// Sets the delay of every kind of call, in microseconds.
    pub(crate) fn set_delay(&self, delay_us: u64) {
        self.server.set_delay(None, Duration::from_micros(delay_us));
    }

    /// Sets the delay of one kind of call, in microseconds.
    pub(crate) fn set_delay_of(&self, call: Call, delay_us: u64) {
        self.server.set_delay(Some(call), Duration::from_micros(delay_us));
    }

    /// Sets how many requests are served at once; 0 for no limit.
    pub(crate) fn set_parallel(&self, parallel: usize) {
        self.server.set_parallel(parallel);
    }

    /// Refuses calls of these kinds (none given: every kind) on paths that match the glob `pattern`, which is relative
    /// to the mount point; `*` stays in a directory, `**` does not.
    pub(crate) fn fail(&self, pattern: &str, calls: &[Call], errno: Errno) -> io::Result<()> {
        self.server.add_fault(pattern, calls, Action::Fail(errno), (0, None))
    }

    /// Refuses as [`SlowMount::fail`] does, but only the first `times` calls.
    pub(crate) fn fail_times(&self, pattern: &str, calls: &[Call], errno: Errno, times: u64) -> io::Result<()> {
        self.server.add_fault(pattern, calls, Action::Fail(errno), (0, Some(times)))
    }

    /// Never answers calls of these kinds (none given: every kind) on paths that match, until released.
    ///
    /// A process that waits for the answer cannot be killed, as on a network mount whose server is gone.
    pub(crate) fn hang(&self, pattern: &str, calls: &[Call]) -> io::Result<()> {
        self.server.add_fault(pattern, calls, Action::Hang, (0, None))
    }

    /// Hangs as [`SlowMount::hang`] does, every call on every path.
    pub(crate) fn hang_everything(&self) -> io::Result<()> {
        self.hang("**", &[])
    }

    /// Answers `calls` more calls, then none at all.
    pub(crate) fn hang_everything_after(&self, calls: u64) -> io::Result<()> {
        self.server.add_fault("**", &[], Action::Hang, (calls, None))
    }

    /// Ends every fault and answers what hangs.
    pub(crate) fn heal(&self) {
        self.server.clear_faults();
        self.server.release();
    }

    /// Answers what hangs now; later calls meet the fault again.
    pub(crate) fn release(&self) {
        self.server.release();
    }

    /// Returns how many requests hang.
    pub(crate) fn hung(&self) -> usize {
        self.server.hung()
    }

    /// Waits until this many requests hang; false if that takes longer than `patience`.
    pub(crate) fn wait_for_hung(&self, requests: usize, patience: Duration) -> bool {
        wait_until(patience, || self.hung() >= requests)
    }

    /// Waits until no request is served or waits (the kernel closes files in the background); false if that takes
    /// longer than `patience`.
    pub(crate) fn wait_until_idle(&self, patience: Duration) -> bool {
        wait_until(patience, || self.server.pending() == 0)
    }

    /// Lets the attributes of one file (path relative to the mount point) say another size.
    pub(crate) fn lie_about_size(&self, path: &Path, size_bytes: u64) {
        self.tree.lie(path, Some(size_bytes));
    }

    /// Ignores changes of one of a file's two times from now on, as filesystems made with libfuse 2 do.
    pub(crate) fn take_both_times_or_none(&self) {
        self.tree.take_both_times_or_none();
    }

    /// Ends a lie.
    pub(crate) fn tell_the_truth(&self, path: &Path) {
        self.tree.lie(path, None);
    }

    /// Returns the calls since the mount or the last reset.
    pub(crate) fn counts(&self) -> Counts {
        self.server.counts()
    }

    /// Starts counting from zero.
    pub(crate) fn reset_counts(&self) {
        self.server.reset_counts();
    }

    /// Starts to keep kind and path of every call.
    pub(crate) fn start_trace(&self) {
        self.server.set_trace(true);
    }

    /// Stops that and returns what was kept, in order of arrival.
    pub(crate) fn take_trace(&self) -> Vec<(Call, PathBuf)> {
        let trace = self.server.trace();
        self.server.set_trace(false);
        trace
    }

    /// Unmounts, whatever hangs or is open; again does nothing.
    pub(crate) fn unmount(&self) {
        let Some(session) = locked(&self.session).take() else { return };
        // Answering everything frees who waits, also where the control files that abort a connection are not mounted.
        let is_aborted = self.abort();
        if rustix::mount::unmount(&self.mount_point, UnmountFlags::DETACH).is_err() {
            // Without privileges the helper does it.
            let _ = std::process::Command::new("fusermount3").arg("-uz").arg(&self.mount_point).status();
        }
        // A process that still has a file open keeps an unmounted connection alive; an aborted one ends.
        if is_aborted {
            wait_until(GOODBYE, || session.guard.is_finished());
        }
        drop(session);
        if self.is_own_mount_point {
            let _ = fs::remove_dir(&self.mount_point);
        }
    }

    /// Cuts the connection, as when a server dies: every call, also those that hang, fails from now on.
    pub(crate) fn abort(&self) -> bool {
        self.server.stop();
        self.connection.is_some_and(|number| fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1").is_ok())
    }
}

impl Drop for SlowMount {
    fn drop(&mut self) {
        self.unmount();
    }
}

fn wait_until(patience: Duration, mut is_done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !is_done() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

fn config(options: Options, backing: &Path) -> io::Result<Config> {
    let name = |given: &str| {
        (!given.is_empty() && !given.contains('\0'))
            .then(|| given.to_owned())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty name of a mount"))
    };
    let mut mount_options = Vec::new();
    let shown = options.fsname.unwrap_or_else(|| backing.to_string_lossy().into_owned());
    mount_options.push(MountOption::FSName(name(&shown)?));
    if let Some(subtype) = &options.subtype {
        // Not `MountOption::Subtype`, which is dropped when the mount is made without the helper.
        mount_options.push(MountOption::CUSTOM(format!("subtype={}", name(subtype)?)));
    }
    if options.read_only {
        mount_options.push(MountOption::RO);
    }
    if options.default_permissions {
        mount_options.push(MountOption::DefaultPermissions);
    }
    let mut config = Config::default();
    config.mount_options = mount_options;
    // Others may only be let in by the administrator.
    config.acl = if rustix::process::geteuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    Ok(config)
}

/// Returns the device number of a mount point from the mount table, which asks nothing of the mount itself.
fn connection(mount_point: &Path) -> Option<u32> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let wanted = escaped(mount_point);
    let line = table
        .split(|byte| *byte == b'\n')
        .rfind(|line| line.split(|byte| *byte == b' ').nth(4).is_some_and(|place| place == wanted.as_bytes()))?;
    let device = std::str::from_utf8(line.split(|byte| *byte == b' ').nth(2)?).ok()?;
    device.split_once(':')?.1.parse().ok()
}

/// Writes a path as the mount table does.
fn escaped(path: &Path) -> OsString {
    let mut out = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => out.extend(format!("\\{byte:03o}").into_bytes()),
            other => out.push(*other),
        }
    }
    OsString::from_vec(out)
}
