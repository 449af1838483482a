//! One repository of the copy: its real changes, its artefacts, the repair, and the proof that only they are gone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use crate::error::Error;
use crate::migrate::copy::times;
use crate::migrate::fsys::FileStat;
use crate::migrate::git::{Abilities, Git, Origin};
use crate::migrate::inventory::Entry;
use crate::migrate::repair::index::{Opened, modes, open, trust, was_clean};
use crate::migrate::repair::{Repair, Repairer, content, in_tree};
use crate::migrate::status::{Changes, differing, status, without_artefact};
use crate::migrate::unit::{Unit, UnitKind};
use crate::migrate::verify::named;
use crate::scan::config;

/// A repository after its repair.
pub(in crate::migrate) struct Checked {
    pub(in crate::migrate) git: Git,
    /// What git reports in the copy: the real changes.
    pub(in crate::migrate) changes: Changes,
    /// What the raw copy showed, artefacts included.
    pub(in crate::migrate) raw: Changes,
    /// The configuration as it was read from the copy.
    pub(in crate::migrate) config: gix::config::File,
}

/// Artefacts of the old side in one repository, by kind.
#[derive(Default)]
struct Artefacts {
    endings: Vec<PathBuf>,
    collisions: Vec<PathBuf>,
    links: Vec<(PathBuf, Vec<u8>)>,
    /// Converted by a program that is not run here; unchanged by git's own word at the old place.
    filtered: Vec<PathBuf>,
}

/// Repairs one repository of the copy and proves that what git reports of it are the source's real changes.
///
/// # Errors
///
/// [`Error::Refused`] when git reports something else than before, with the names.
pub(in crate::migrate) fn check_unit(
    repairer: &mut Repairer<'_>,
    unit: &Unit,
    number: usize,
    entries: &HashMap<&Path, &Entry>,
) -> Result<Checked, Error> {
    let tree = repairer.tree().to_path_buf();
    let worktree = in_tree(&tree, &unit.worktree);
    let opened = open(&tree.join(&unit.git_dir), &tree.join(&unit.common_dir))?;
    let old = old_side(repairer, &opened);
    let origin = Origin {
        git_dir: &tree.join(&unit.git_dir),
        common_dir: &tree.join(&unit.common_dir),
        worktree: &worktree,
        config: &opened.config,
        stand_in: None,
    };
    let dir = repairer.partial.git_dirs.join(format!("git-{number}"));
    let git = Git::private(repairer.git_program, &dir, origin, old)?;
    let raw = status(&git, repairer.with_untracked)?;
    let artefacts = find(repairer, unit, &git, &opened, &raw, entries)?;
    let mut expected = raw.clone();
    let links = artefacts.links.iter().map(|(path, _)| path);
    for path in artefacts.endings.iter().chain(&artefacts.collisions).chain(&artefacts.filtered) {
        without_artefact(&mut expected, path);
    }
    let unchanged_links: Vec<&PathBuf> =
        links.filter(|path| raw.get(*path).is_some_and(|c| c.unstaged == b'T')).collect();
    for path in unchanged_links {
        without_artefact(&mut expected, path);
    }
    git.configure(repairer.new_side, &opened.config)?;
    apply(repairer, unit, &git, &artefacts, entries)?;
    let trusted = [artefacts.endings.as_slice(), &artefacts.collisions, &artefacts.filtered].concat();
    if opened.index.is_some() {
        // Paths that differ make it exit with 1; they are compared below.
        git.output(&["update-index", "-q", "--refresh"], b"")?;
        if !trusted.is_empty() {
            trust(&git.dir.join("index"), opened.hash, &worktree, &trusted)?;
        }
    }
    let changes = status(&git, repairer.with_untracked)?;
    compare(unit, &expected, &changes)?;
    install_index(repairer, unit, &git)?;
    report(repairer, unit, artefacts);
    Ok(Checked { git, changes, raw, config: opened.config })
}

/// What the source's git assumed about its filesystem, as far as the raw copy can show it.
fn old_side(repairer: &Repairer<'_>, opened: &Opened) -> Abilities {
    let new = repairer.new_side;
    let holds = |key| config::boolean(&opened.config, key) != Some(false);
    Abilities {
        modes: repairer.modes_are_real && new.modes && holds("core.fileMode"),
        symlinks: new.symlinks && holds("core.symlinks"),
        // The files are on the new filesystem already.
        ignores_case: repairer.new_side.ignores_case,
    }
}

fn find(
    repairer: &Repairer<'_>,
    unit: &Unit,
    git: &Git,
    opened: &Opened,
    raw: &Changes,
    entries: &HashMap<&Path, &Entry>,
) -> Result<Artefacts, Error> {
    let Some(index) = &opened.index else { return Ok(Artefacts::default()) };
    let worktree = in_tree(repairer.tree(), &unit.worktree);
    let modes = modes(index);
    let old_ignores_case = config::boolean(&opened.config, "core.ignoreCase") == Some(true);
    let mut artefacts = Artefacts::default();
    if !repairer.new_side.ignores_case {
        let place = &unit.worktree;
        artefacts.collisions =
            content::collisions(git, &worktree, place, &modes, raw, repairer.source, old_ignores_case)?;
    }
    if repairer.new_side.symlinks {
        let old_holds_links = config::boolean(&opened.config, "core.symlinks") != Some(false);
        artefacts.links = content::links_as_text(git, &worktree, &modes, raw, old_holds_links)?;
    }
    artefacts.endings = content::line_endings(git, &worktree, raw)?;
    artefacts.endings.retain(|path| !artefacts.collisions.contains(path));
    let modified: Vec<&Path> =
        raw.iter().filter(|(_, change)| change.unstaged == b'M').map(|(path, _)| path.as_path()).collect();
    let attributes = content::attributes(git, &modified)?;
    let stat = |path: &Path| entries.get(in_tree(&unit.worktree, path).as_path()).map(|entry| entry.stat);
    artefacts.filtered = modified
        .into_iter()
        .filter(|path| attributes.get(*path).is_some_and(|attribute| attribute.has_filter))
        .filter(|path| stat(path).is_some_and(|stat| was_clean(index, path, &stat)))
        .map(Path::to_path_buf)
        .collect();
    Ok(artefacts)
}

fn apply(
    repairer: &Repairer<'_>,
    unit: &Unit,
    git: &Git,
    artefacts: &Artefacts,
    entries: &HashMap<&Path, &Entry>,
) -> Result<(), Error> {
    let worktree = in_tree(repairer.tree(), &unit.worktree);
    let written: Vec<PathBuf> = artefacts.endings.iter().chain(&artefacts.collisions).cloned().collect();
    let links = artefacts.links.iter().map(|(path, _)| path);
    let places: Vec<PathBuf> = written.iter().chain(links).map(|path| in_tree(&unit.worktree, path)).collect();
    repairer.announce(places.iter().map(PathBuf::as_path))?;
    if !written.is_empty() {
        content::check_out(git, &worktree, &written)?;
    }
    for (path, target) in &artefacts.links {
        make_link(&worktree.join(path), target)?;
    }
    for place in places {
        if let Some(entry) = entries.get(place.as_path()) {
            keep_time(repairer, &place, &entry.stat)?;
        }
    }
    Ok(())
}

fn make_link(path: &Path, target: &[u8]) -> Result<(), Error> {
    use std::os::unix::ffi::OsStrExt;
    let failed = |source| Error::io("make a link of", path, source);
    std::fs::remove_file(path).map_err(failed)?;
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), path).map_err(failed)
}

/// A repaired file is as old as it was: build tools have nothing to do anew.
fn keep_time(repairer: &Repairer<'_>, path: &Path, stat: &FileStat) -> Result<(), Error> {
    rustix::fs::utimensat(&repairer.partial.tree_fd, path, &times(stat), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|source| Error::io("set the time of", repairer.tree().join(path), source.into()))
}

fn compare(unit: &Unit, expected: &Changes, found: &Changes) -> Result<(), Error> {
    let paths = differing(expected, found);
    if paths.is_empty() {
        return Ok(());
    }
    let what = if unit.kind == UnitKind::Main {
        "the copy".to_owned()
    } else {
        format!("`{}` in the copy", crate::error::printable(&unit.worktree))
    };
    Err(Error::refused(
        format!("`git status` of {what} is not that of the source: {}", named(&paths)),
        "the destination was not made, and the source is as it was; look at these files with `git status` and \
         `git diff`, commit or stash what is yours, and run the same command again",
    ))
}

fn install_index(repairer: &Repairer<'_>, unit: &Unit, git: &Git) -> Result<(), Error> {
    let names = std::fs::read_dir(&git.dir).map_err(|source| Error::io("read", &git.dir, source))?;
    for name in names.filter_map(Result::ok).map(|entry| entry.file_name()) {
        if name == "index" || name.as_encoded_bytes().starts_with(b"sharedindex.") {
            let fresh = git.dir.join(&name);
            let text = std::fs::read(&fresh).map_err(|source| Error::io("read", &fresh, source))?;
            repairer.rewrite(&unit.git_dir.join(&name), &text)?;
        }
    }
    Ok(())
}

fn report(repairer: &mut Repairer<'_>, unit: &Unit, artefacts: Artefacts) {
    let place = |paths: Vec<PathBuf>| paths.into_iter().map(|path| in_tree(&unit.worktree, &path)).collect::<Vec<_>>();
    let links = artefacts.links.into_iter().map(|(path, _)| path).collect();
    repairer.report(Repair::new(
        "line-endings",
        "files that differed by CRLF alone written as attributes and configuration ask",
        place(artefacts.endings),
    ));
    repairer.report(Repair::new(
        "case-collisions",
        "files that the old side could not hold beside another name taken from the object database",
        place(artefacts.collisions),
    ));
    repairer.report(Repair::new("links", "links that were checked out as text are links again", place(links)));
    let filtered = place(artefacts.filtered);
    if !filtered.is_empty() {
        repairer.notes.push(format!(
            "{} files are converted by a filter program (as LFS does) and were taken for unchanged, as git did at the \
             old place: {}; see that the program is installed here",
            filtered.len(),
            named(&filtered)
        ));
    }
}
