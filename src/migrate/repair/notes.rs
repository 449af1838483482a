//! What is named rather than repaired: it is the user's to decide.

use std::path::Path;

use crate::error::{Error, printable, printable_text};
use crate::migrate::fsys::Kind;
use crate::migrate::inventory::Inventory;
use crate::migrate::repair::Repairer;
use crate::migrate::repair::settings::{git_dirs, own_file};

/// A hook is a script; a longer file is a program, and its line endings are nobody's business.
const MAX_HOOK_BYTES: u64 = 256 * 1024;
/// A configuration file is some kilobytes; more than this is not searched.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

impl Repairer<'_> {
    /// Names hooks with CRLF, Windows credential helpers, and configuration that mentions the old place.
    pub(super) fn name_what_stays(&mut self, inventory: &Inventory) -> Result<(), Error> {
        let mut notes = Vec::new();
        for git_dir in git_dirs(inventory) {
            self.hooks(inventory, &git_dir, &mut notes);
            self.helpers(&git_dir, &mut notes)?;
        }
        self.mentions(inventory, &mut notes);
        self.notes.extend(notes);
        Ok(())
    }

    fn hooks(&self, inventory: &Inventory, git_dir: &Path, notes: &mut Vec<String>) {
        let directory = git_dir.join("hooks");
        let hooks = inventory.entries.iter().filter(|entry| {
            entry.stat.kind == Kind::File
                && entry.path.parent() == Some(&directory)
                && entry.path.extension().is_none_or(|extension| extension != "sample")
                && entry.stat.size < MAX_HOOK_BYTES
        });
        for hook in hooks {
            let text = std::fs::read(self.tree().join(&hook.path)).unwrap_or_default();
            if text.starts_with(b"#!") && text.windows(2).any(|pair| pair == b"\r\n") {
                notes.push(format!(
                    "the hook `{}` has CRLF line endings and will not start on Linux; convert it with \
                     `sed -i 's/\\r$//'`",
                    printable(&hook.path)
                ));
            }
        }
    }

    fn helpers(&self, git_dir: &Path, notes: &mut Vec<String>) -> Result<(), Error> {
        let own = own_file(&self.tree().join(git_dir).join("config"))?;
        let sections = own.sections_by_name("credential").into_iter().flatten();
        for helper in sections.flat_map(|section| section.values("helper")) {
            let helper = helper.to_string();
            if helper.to_ascii_lowercase().contains(".exe") {
                notes.push(format!(
                    "the credential helper `{}` is a Windows program: signing in may fail in linked worktrees and \
                     without Windows",
                    printable_text(&helper)
                ));
            }
        }
        Ok(())
    }

    /// Looks for the old place in configuration and in local environment files.
    fn mentions(&self, inventory: &Inventory, notes: &mut Vec<String>) {
        const NAMES: &[&str] = &["config", "config.worktree", ".env", ".envrc", "settings.json", "launch.json"];
        let is_searched = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            NAMES.contains(&name)
                || path.extension().is_some_and(|extension| extension == "code-workspace")
                || path.parent().is_some_and(|parent| parent.file_name().is_some_and(|name| name == ".idea"))
        };
        for entry in &inventory.entries {
            let is_small_file = entry.stat.kind == Kind::File && entry.stat.size < MAX_CONFIG_BYTES;
            if !is_small_file || !is_searched(&entry.path) {
                continue;
            }
            let text = std::fs::read(self.tree().join(&entry.path)).unwrap_or_default();
            if self.spellings.is_mentioned(&String::from_utf8_lossy(&text)) {
                notes.push(format!("`{}` still names the old place", printable(&entry.path)));
            }
        }
    }
}
