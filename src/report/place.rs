//! What `rehome fs` tells about one path.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::printable_text;
use crate::facts::{Platform, Site};
use crate::scan::filesystem::{FoundBy, Location, System};

/// One path: the system, the place, and how both are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The system that rehome runs on, or that a saved table is of.
    pub platform: Platform,
    /// The place and its mount.
    pub site: Site,
    /// How that is known.
    pub known: Known,
}

/// Where an answer of `rehome fs` comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// How the mount was found: `statx`, `fdinfo` or `mount-table`.
    pub mount_by: String,
    /// The kernel's id of the mount; absent where the table does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_id: Option<u64>,
    /// Why the mount is of its class, in the words of `site.rule`.
    pub class_because: String,
    /// The signs that the platform was told by.
    pub platform_signs: Vec<String>,
    /// Lines of the mount table that could not be read and were left out, by number from 1.
    pub malformed_lines: Vec<usize>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Place {
    /// Puts together what is known about a location.
    #[must_use]
    pub fn new(system: &System, location: Location) -> Self {
        let mount_by = match location.found_by {
            FoundBy::Statx => "statx",
            FoundBy::Fdinfo => "fdinfo",
            FoundBy::Table => "mount-table",
        };
        Self {
            platform: system.platform.platform,
            known: Known {
                mount_by: mount_by.to_owned(),
                mount_id: location.mount.id,
                class_because: location.because,
                platform_signs: system.platform.because.clone(),
                malformed_lines: system.table.malformed_lines.clone(),
                notes: location.notes,
            },
            site: location.site,
        }
    }
}

/// Writes the places for a person, an empty line between two.
///
/// # Errors
///
/// Those of the writer.
pub fn write_text(places: &[Place], out: &mut dyn Write) -> io::Result<()> {
    for (index, place) in places.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_place(place, out)?;
    }
    Ok(())
}

fn write_place(place: &Place, out: &mut dyn Write) -> io::Result<()> {
    let Place { platform, site, known } = place;
    writeln!(out, "{}", printable_text(&site.path))?;
    let mut line = |label: &str, value: &str| writeln!(out, "  {label:<13}{}", printable_text(value));
    if site.real_path != site.path {
        line("real path", &site.real_path)?;
    }
    if let Some(windows) = &site.windows_path {
        line("on Windows", windows)?;
    }
    line("mount point", &site.mount_point)?;
    let name = if site.name == site.fstype { String::new() } else { format!(" ({})", site.name) };
    line("filesystem", &format!("{}{name}", site.fstype))?;
    line("source", &site.source)?;
    if let Some(transport) = &site.transport {
        line("transport", transport)?;
    }
    line("options", &site.options)?;
    line("class", &format!("{}{}", word(&site.class), if site.read_only { ", read-only" } else { "" }))?;
    line("platform", &word(platform))?;
    for note in &known.notes {
        line("note", note)?;
    }
    let mount = match (known.mount_by.as_str(), known.mount_id) {
        ("mount-table", Some(id)) => format!("mount {id}, by following the mounts of the table"),
        ("mount-table", None) => "the last mount of the table that covers the path".to_owned(),
        (by, id) => format!("mount {}, by {by} and /proc/self/mountinfo", id.unwrap_or_default()),
    };
    line("how we know", &mount)?;
    line("", &format!("rule {}: {}", site.rule, known.class_because))?;
    line("", &format!("platform: {}", known.platform_signs.join("; ")))?;
    match known.malformed_lines.as_slice() {
        [] => Ok(()),
        [one] => line("", &format!("line {one} of the mount table could not be read and was left out")),
        many => line("", &format!("{} lines of the mount table could not be read and were left out", many.len())),
    }
}

/// The word that stands for a value in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
