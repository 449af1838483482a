//! Plan and result of a move, for a person.

use std::io::{self, Write};

use crate::error::printable_text;
use crate::format::{bytes, count, counted, seconds};
use crate::migrate::{LeftOut, MAX_NAMED, Moved, Plan, Scope};

/// Writes what a move would do.
pub(super) fn write_plan(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let direction = if plan.to_windows { " (to the Windows side)" } else { "" };
    writeln!(out, "Move {}{direction}", plan.source)?;
    writeln!(out, "  from       {}", plan.source_fstype)?;
    writeln!(out, "  to         {} on {}", plan.destination, plan.destination_fstype)?;
    let what = match plan.scope {
        Scope::Precious => "all but what can be made again",
        Scope::All => "everything",
        Scope::OnlyTracked => "the git dir and tracked files with their changes",
    };
    writeln!(
        out,
        "  copies     {} in {}, {} ({what}); {} free",
        counted(plan.files, "file", "files"),
        counted(plan.directories, "directory", "directories"),
        bytes(plan.bytes),
        bytes(plan.free_bytes)
    )?;
    if plan.continues {
        writeln!(out, "  continues  an interrupted copy in {}", plan.partial)?;
    }
    list(out, "Left out", plan.left_out.iter().map(|one| restored(one, "restore: ")))?;
    list(out, "Links that lead out", plan.links_outside.iter().cloned())?;
    list(out, "Made right for the new side", plan.repairs.iter().cloned())?;
    list(out, "Good to know", plan.notes.iter().map(|note| printable_text(note)))?;
    list(out, "In the way", plan.blockers.iter().map(|one| format!("{}\n      {}", one.say, one.fix)))?;
    writeln!(out, "\n  The source is only read. The destination appears when the copy is verified, not before.")
}

/// Writes how a move ended, and what is to be done now, without the notes that were shown before.
pub(super) fn write_moved(moved: &Moved, shown: &[String], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nMoved to {}", moved.destination)?;
    if let Some(path) = &moved.windows_path {
        writeln!(out, "  in Windows {path}")?;
    }
    writeln!(
        out,
        "  copied     {}, {} in {}, {} at a time",
        counted(moved.files, "file", "files"),
        bytes(moved.bytes),
        seconds(moved.wall_s),
        counted(moved.in_flight, "request", "requests")
    )?;
    if moved.files_continued > 0 {
        writeln!(out, "  continued  {} were there from an interrupted run", count(moved.files_continued))?;
    }
    write_verified(moved, out)?;
    write_status(moved, out)?;
    for repair in &moved.repairs {
        list(out, &format!("Repaired: {}", repair.say), repair.paths.iter().cloned())?;
    }
    list(out, "To restore", moved.left_out.iter().map(|one| restored(one, "")))?;
    let outside = moved.outside.iter().map(|one| format!("{} ({})   {}", one.path, one.kind, one.fix));
    list(out, "Still points to the old place", outside)?;
    let notes = moved.notes.iter().filter(|note| !shown.contains(note));
    list(out, "Good to know", notes.map(|note| printable_text(note)))?;
    write_after(moved, out)
}

fn restored(left_out: &LeftOut, word: &str) -> String {
    match left_out.restore.as_str() {
        "" => format!("{}   made again when it is needed", left_out.path),
        command => format!("{}   {word}{}", left_out.path, printable_text(command)),
    }
}

fn write_verified(moved: &Moved, out: &mut dyn Write) -> io::Result<()> {
    let verified = &moved.verified;
    writeln!(
        out,
        "  verified   {} read back and compared; {} and {} the same; git fsck clean; {}",
        counted(verified.files_read_back, "file", "files"),
        counted(verified.refs, "ref", "refs"),
        counted(verified.stashes, "stash", "stashes"),
        match (verified.real_changes, verified.artefacts) {
            (changes, 0) => format!("{} in git status, as before", counted(changes, "change", "changes")),
            (changes, gone) => format!(
                "{} in git status, as before; {} gone",
                counted(changes, "change", "changes"),
                counted(gone, "artefact", "artefacts")
            ),
        }
    )
}

fn write_status(moved: &Moved, out: &mut dyn Write) -> io::Result<()> {
    let Some(new_s) = moved.status_new_s else { return Ok(()) };
    match (moved.status_old_s, moved.status_old_at_least_s) {
        (Some(old_s), _) => writeln!(out, "  git status {} here, {} at the old place", seconds(new_s), seconds(old_s)),
        (None, Some(old_s)) => {
            writeln!(out, "  git status {} here, more than {} at the old place", seconds(new_s), seconds(old_s))
        }
        (None, None) => writeln!(out, "  git status {} here", seconds(new_s)),
    }
}

fn write_after(moved: &Moved, out: &mut dyn Write) -> io::Result<()> {
    let place = shell_words::quote(&moved.destination);
    writeln!(out, "\n  Open it    code {place}")?;
    writeln!(
        out,
        "  The files belong to you here: a `safe.directory` entry for the old place is not needed any more."
    )?;
    writeln!(out, "  The old copy is as it was in {}. When you are sure that nothing is missing:", moved.source)?;
    writeln!(out, "    {}", moved.remove_later)
}

fn list(out: &mut dyn Write, title: &str, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  {title}")?;
    for line in lines.iter().take(MAX_NAMED) {
        writeln!(out, "    {line}")?;
    }
    match lines.len().saturating_sub(MAX_NAMED) {
        0 => Ok(()),
        more => writeln!(out, "    ... and {more} more (all in --format json)"),
    }
}
