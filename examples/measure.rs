//! Measures a repository as `rehome check` does and prints what came out as one line of JSON, for scripts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use rehome::error::Error;
use rehome::measure::{Request, Workload, measure, measure_in_place_only, probe};
use rehome::progress::Silent;
use rehome::scan::access::Access;
use rehome::scan::git;
use rehome::scan::repo::scan;
use rehome::signals::Interrupt;

/// Measure a repository
#[derive(Parser)]
struct Args {
    /// A path in the repository; `__probe` makes this program serve as a probe
    repository: PathBuf,
    /// A directory on the target filesystem
    #[arg(default_value = "/tmp")]
    target: PathBuf,
    /// Seconds that it may take
    #[arg(long, default_value_t = 10.0)]
    budget: f64,
    /// Rounds
    #[arg(long)]
    rounds: Option<u32>,
    /// Do not make a copy
    #[arg(long)]
    in_place_only: bool,
    /// Workloads
    #[arg(long, value_delimiter = ',', default_value = "git_status,stat,walk")]
    workloads: Vec<String>,
}

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let mut out = io::stdout().lock();
    if args.repository.as_os_str() == probe::client::PROBE_ARGUMENT {
        return probe::server::serve_stdin(&mut out).map_err(Error::Output);
    }
    let started = Instant::now();
    let interrupt = Interrupt::on_signals()?;
    let profile = scan(&args.repository, &Access::default())?;
    let scan_s = started.elapsed().as_secs_f64();
    let git = git::find();
    let workloads: Vec<Workload> = args
        .workloads
        .iter()
        .map(|name| match name.as_str() {
            "stat" => Workload::Stat,
            "walk" => Workload::Walk,
            _ => Workload::GitStatus,
        })
        .collect();
    let program = std::env::current_exe().map_err(|e| Error::io("find", "/proc/self/exe", e))?;
    let request = Request {
        profile: &profile,
        target: &args.target,
        cache_home: None,
        budget: Duration::from_secs_f64(args.budget),
        rounds: args.rounds,
        workloads: &workloads,
        git: git.as_ref(),
        probe_program: Some(&program),
    };
    let run = if args.in_place_only { measure_in_place_only } else { measure };
    let outcome = run(&request, &Silent, &interrupt)?;
    let report = serde_json::json!({
        "measurements": outcome.measurements,
        "complete": outcome.complete,
        "interrupted": outcome.interrupted,
        "hung": outcome.hung,
        "notes": outcome.notes,
        "stat_dirty": outcome.stat_dirty,
        "racy": outcome.racy,
        "case_collisions": outcome.case_collisions,
        "copy": outcome.copy,
        "scan_s": scan_s,
        "wall_s": started.elapsed().as_secs_f64(),
    });
    writeln!(out, "{report}").map_err(Error::Output)
}
