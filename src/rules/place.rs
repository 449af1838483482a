//! Finds places of the working copy that may hold `*`, from the listings that are there, or says what to list.

use super::evaluate::{Seen, Want};
use super::source::{Listed, Place};

/// What is known about a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    /// These are there; none when empty.
    Found(Vec<String>),
    /// It cannot be known.
    Unknown,
    /// This has to be read first.
    Wanting(Want),
}

/// Folders that a `*` in the middle of a place descends into; more would be a walk.
const FOLDERS_PER_STAR: usize = 3;

/// Splits a place into its folder and its name.
#[must_use]
pub(super) fn parent_of(place: &str) -> (&str, &str) {
    place.rsplit_once('/').unwrap_or(("", place))
}

/// Finds what is at a place.
///
/// A place whose first folder is not in the worktree's listing is absent without another call. A place without `*` is
/// looked up on its own, unless its folder was listed already.
pub(super) fn find_places(place: &str, seen: &Seen) -> Lookup {
    let mut found = vec![String::new()];
    let components: Vec<&str> = place.split('/').collect();
    let mut rest = components.as_slice();
    while let Some((component, next)) = rest.split_first() {
        if found.is_empty() {
            return Lookup::Found(found);
        }
        if component.contains('*') {
            match expand_star(&found, component, !next.is_empty(), seen) {
                Ok(names) => found = names,
                Err(other) => return other,
            }
            rest = next;
            continue;
        }
        // Components without a star are taken together, so that a deep place costs one call.
        let plain = rest.iter().take_while(|component| !component.contains('*')).count();
        let tail = rest[..plain].join("/");
        rest = &rest[plain..];
        let mut there = Vec::new();
        for folder in &found {
            match look(&join(folder, &tail), seen) {
                Ok(true) => there.push(join(folder, &tail)),
                Ok(false) => {}
                // With a star behind it, the listing that follows tells as well whether it is there.
                Err(Lookup::Wanting(_)) if !rest.is_empty() => there.push(join(folder, &tail)),
                Err(other) => return other,
            }
        }
        found = there;
    }
    Lookup::Found(found)
}

fn expand_star(folders: &[String], pattern: &str, is_inner: bool, seen: &Seen) -> Result<Vec<String>, Lookup> {
    let mut names = Vec::new();
    for folder in folders {
        match seen.lists.get(folder) {
            Some(Listed::Names(entries)) => {
                names.extend(
                    entries.iter().filter(|(name, _)| star_match(pattern, name)).map(|(name, _)| join(folder, name)),
                );
            }
            Some(Listed::Absent) => {}
            Some(Listed::Unknown) => return Err(Lookup::Unknown),
            None => {
                let want = Want::List(folder.clone());
                return Err(if seen.refused.contains(&want) { Lookup::Unknown } else { Lookup::Wanting(want) });
            }
        }
    }
    names.sort_unstable();
    if is_inner {
        names.truncate(FOLDERS_PER_STAR);
    }
    Ok(names)
}

/// Returns whether something is at a place without `*`.
fn look(place: &str, seen: &Seen) -> Result<bool, Lookup> {
    // The nearest listed folder above tells whether the way there exists at all.
    let components: Vec<&str> = place.split('/').collect();
    for (depth, name) in components.iter().enumerate().rev() {
        match seen.lists.get(&components[..depth].join("/")) {
            Some(Listed::Names(names)) if !names.iter().any(|(known, _)| known == name) => return Ok(false),
            Some(Listed::Names(_)) if depth + 1 == components.len() => return Ok(true),
            Some(Listed::Names(_)) => break,
            Some(Listed::Absent) => return Ok(false),
            Some(Listed::Unknown) | None => {}
        }
    }
    match seen.places.get(place) {
        Some(Place::There(_)) => Ok(true),
        Some(Place::Absent) => Ok(false),
        Some(Place::Unknown) => Err(Lookup::Unknown),
        None => {
            let want = Want::Look(place.to_owned());
            Err(if seen.refused.contains(&want) { Lookup::Unknown } else { Lookup::Wanting(want) })
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Matches a name against a component with `*`, which stands for any text.
fn star_match(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lists: &[(&str, &[&str])]) -> Seen {
        let mut seen = Seen::default();
        for (folder, names) in lists {
            let names = names.iter().map(|name| ((*name).to_owned(), None)).collect();
            seen.lists.insert((*folder).to_owned(), Listed::Names(names));
        }
        seen
    }

    #[test]
    fn stars_match_any_text() {
        assert!(star_match("*.cmd", "tsc.cmd") && star_match("a*c", "abbc") && star_match("*", "x"));
        assert!(!star_match("*.cmd", "tsc") && !star_match("a*c", "ab") && !star_match("linux-*", "win32-x64"));
    }

    #[test]
    fn a_folder_that_is_not_listed_costs_nothing() {
        let seen = seen(&[("", &["src"])]);
        assert_eq!(find_places("node_modules/.bin/*.cmd", &seen), Lookup::Found(vec![]));
        assert_eq!(find_places("target/debug", &seen), Lookup::Found(vec![]));
    }

    #[test]
    fn what_is_needed_next_is_wanted() {
        let with_folder = seen(&[("", &["node_modules"])]);
        let wanted = Lookup::Wanting(Want::List("node_modules/.bin".to_owned()));
        assert_eq!(find_places("node_modules/.bin/*.cmd", &with_folder), wanted);
        let listed = seen(&[("", &["node_modules"]), ("node_modules/.bin", &["tsc", "tsc.cmd"])]);
        assert_eq!(
            find_places("node_modules/.bin/*.cmd", &listed),
            Lookup::Found(vec!["node_modules/.bin/tsc.cmd".to_owned()])
        );
        assert_eq!(
            find_places(".venv/Scripts", &seen(&[("", &[".venv"])])),
            Lookup::Wanting(Want::Look(".venv/Scripts".to_owned()))
        );
    }
}
