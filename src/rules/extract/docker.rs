//! Dockerfiles.

use std::collections::HashSet;

use super::Extracted;

/// Takes the base images out of a Dockerfile, stages of its own left out.
///
/// The format is one instruction a line, so it is read by lines; a base in a build argument is unknown.
pub(super) fn dockerfile(path: &str, text: &str, out: &mut Extracted) {
    let mut stages = HashSet::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("from")) {
            continue;
        }
        let mut words = words.filter(|word| !word.starts_with("--"));
        let Some(base) = words.next() else { continue };
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case("as")) {
            stages.extend(words.next().map(str::to_ascii_lowercase));
        }
        if base.contains('$') {
            out.add_unresolved("docker.bases");
        } else if !stages.contains(&base.to_ascii_lowercase()) {
            out.add("docker.bases", base, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_of_the_file_is_no_base() {
        let mut out = Extracted::default();
        dockerfile("Dockerfile", "FROM --platform=x golang:1 AS build\nFROM build\nfrom $BASE\n", &mut out);
        assert_eq!(out.items["docker.bases"].len(), 1);
        assert_eq!(out.unresolved["docker.bases"], 1);
    }
}
