//! The output of `git status --porcelain=v1 -z`.

/// One line of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'a> {
    /// State of the index against HEAD.
    pub x: u8,
    /// State of the worktree against the index.
    pub y: u8,
    /// The path; an untracked directory ends in a slash.
    pub path: &'a [u8],
    /// Where it was, for a rename or a copy.
    pub from: Option<&'a [u8]>,
}

impl Change<'_> {
    /// Returns whether the worktree has something else at the path than a clean checkout would.
    #[must_use]
    pub fn is_in_worktree(&self) -> bool {
        self.is_unmerged() || self.y != b' '
    }

    /// Returns whether the path is in a conflict.
    #[must_use]
    pub fn is_unmerged(&self) -> bool {
        self.x == b'U' || self.y == b'U' || (self.x == self.y && matches!(self.x, b'A' | b'D'))
    }

    /// Returns whether the index differs from HEAD.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        !matches!(self.x, b' ' | b'?' | b'!')
    }
}

/// Reads the output; stops at the first part that makes no sense.
#[must_use]
pub fn parse(output: &[u8]) -> Vec<Change<'_>> {
    let mut parts = output.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(&[x, y, b' ', ref path @ ..]) = parts.next() {
        let is_moved = matches!(x, b'R' | b'C') || matches!(y, b'R' | b'C');
        changes.push(Change { x, y, path, from: if is_moved { parts.next() } else { None } });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_take_two_parts_and_names_may_hold_anything() {
        let changes = parse(b" M a b\0R  new\0old\0?? dir/\0UU x\ny\0AA z\0");
        let paths: Vec<_> = changes.iter().map(|c| (c.path, c.from)).collect();
        assert_eq!(
            paths,
            [(&b"a b"[..], None), (b"new", Some(&b"old"[..])), (b"dir/", None), (b"x\ny", None), (b"z", None)]
        );
        let in_worktree: Vec<_> = changes.iter().map(Change::is_in_worktree).collect();
        assert_eq!(in_worktree, [true, false, true, true, true]);
    }
}
