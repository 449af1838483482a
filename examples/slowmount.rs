//! Mounts a directory slowly, for trying things by hand and from scripts.
//!
//! Prints the counters as one line of JSON on SIGUSR1 and at the end; unmounts on SIGTERM, SIGINT and SIGHUP.
//! SIGUSR2 sets the counters to zero. With `--control`, a Unix socket takes one command a line and answers each with
//! one line:
//!
//! ```text
//! counts | reset | delay US | delay CALL US | parallel N | hung | release | heal
//! fail GLOB CALLS ERRNO | hang GLOB CALLS      (CALLS: `all`, or names with commas between them)
//! lie PATH BYTES | truth PATH | trace | traced
//! ```

#[path = "../tests/support/slow_mount/mod.rs"]
mod slow_mount;

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::Parser;
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use slow_mount::{Call, Options, SlowMount};

/// Mount a directory slowly
#[derive(Parser)]
struct Args {
    /// The directory to show
    backing: PathBuf,
    /// Where to mount it
    mount_point: PathBuf,
    /// Delay of every call, in microseconds
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// How many requests are served at once; 0 for no limit
    #[arg(long, default_value_t = 0)]
    parallel: usize,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// List directories together with attributes
    #[arg(long)]
    readdirplus: bool,
    /// Let the kernel check modes
    #[arg(long)]
    default_permissions: bool,
    /// The source that the mount table shows
    #[arg(long)]
    fsname: Option<String>,
    /// The filesystem type that the mount table shows after `fuse.`; empty for plain `fuse`
    #[arg(long, default_value = "slow")]
    subtype: String,
    /// A Unix socket that takes commands
    #[arg(long)]
    control: Option<PathBuf>,
}

fn main() -> io::Result<()> {
    let args = Args::parse();
    let options = Options {
        delay_us: args.delay_us,
        parallel: args.parallel,
        read_only: args.read_only,
        fsname: args.fsname,
        subtype: Some(args.subtype).filter(|subtype| !subtype.is_empty()),
        readdirplus: args.readdirplus,
        default_permissions: args.default_permissions,
        mount_point: Some(args.mount_point),
    };
    // Signals that come while it mounts must not leave it mounted.
    let mut signals = Signals::new([SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP])?;
    let mount = Arc::new(SlowMount::new(&args.backing, options)?);
    if let Some(socket) = &args.control {
        listen(socket, &mount)?;
    }
    for signal in signals.forever() {
        match signal {
            SIGUSR1 => print_line(&mount.counts().to_string())?,
            SIGUSR2 => mount.reset_counts(),
            _ => break,
        }
    }
    print_line(&mount.counts().to_string())?;
    if let Some(socket) = &args.control {
        std::fs::remove_file(socket)?;
    }
    mount.unmount();
    Ok(())
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn listen(socket: &Path, mount: &Arc<SlowMount>) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    let mount = Arc::clone(mount);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mount = Arc::clone(&mount);
            thread::spawn(move || converse(stream, &mount));
        }
    });
    Ok(())
}

fn converse(stream: UnixStream, mount: &SlowMount) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let answer = obey(&line?, mount).unwrap_or_else(|| "cannot do that".to_owned());
        writeln!(answers, "{answer}")?;
    }
    Ok(())
}

/// Does what one line says and returns the answer; `None` if it makes no sense.
fn obey(line: &str, mount: &SlowMount) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["counts"] => return Some(mount.counts().to_string()),
        ["hung"] => return Some(mount.hung().to_string()),
        ["traced"] => {
            let calls = mount.take_trace();
            let calls: Vec<_> = calls.iter().map(|(call, path)| (call.name(), path.to_string_lossy())).collect();
            return serde_json::to_string(&calls).ok();
        }
        ["trace"] => mount.start_trace(),
        ["reset"] => mount.reset_counts(),
        ["delay", us] => mount.set_delay(us.parse().ok()?),
        ["delay", call, us] => mount.set_delay_of(Call::from_name(call)?, us.parse().ok()?),
        ["parallel", most] => mount.set_parallel(most.parse().ok()?),
        ["release"] => mount.release(),
        ["heal"] => mount.heal(),
        ["fail", glob, names, errno] => mount.fail(glob, &calls(names)?, errno_named(errno)?).ok()?,
        ["hang", glob, names] => mount.hang(glob, &calls(names)?).ok()?,
        ["lie", path, bytes] => mount.lie_about_size(Path::new(path), bytes.parse().ok()?),
        ["truth", path] => mount.tell_the_truth(Path::new(path)),
        _ => return None,
    }
    Some("ok".to_owned())
}

fn calls(names: &str) -> Option<Vec<Call>> {
    if names == "all" { Some(Vec::new()) } else { names.split(',').map(Call::from_name).collect() }
}

fn errno_named(name: &str) -> Option<Errno> {
    Some(match name {
        "EIO" => Errno::IO,
        "ESTALE" => Errno::STALE,
        "EACCES" => Errno::ACCESS,
        "EPERM" => Errno::PERM,
        "ENOENT" => Errno::NOENT,
        "ENOSPC" => Errno::NOSPC,
        "EROFS" => Errno::ROFS,
        "ETIMEDOUT" => Errno::TIMEDOUT,
        "EBUSY" => Errno::BUSY,
        "EINTR" => Errno::INTR,
        _ => return None,
    })
}
