//! Where an answer goes: standard output or a file, as text or for a program.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use crate::cli::{CheckArgs, Format};
use crate::error::Error;
use crate::report::{Report, Style, write_html, write_human, write_json, write_oneline};

/// Writes a report in the form and to the place that the command line asks for.
///
/// # Errors
///
/// [`Error::Output`] when standard output refuses, [`Error::Io`] when the file does.
pub fn write_report(report: &Report, args: &CheckArgs, out: &mut dyn Write) -> Result<(), Error> {
    match &args.output {
        None => {
            let style = terminal_style(args.explain);
            write_as(report, args.format, &style, &mut BufWriter::new(out)).map_err(Error::Output)
        }
        Some(path) => {
            let style = Style { explain: args.explain, ..Style::default() };
            write_file(path, |file| write_as(report, args.format, &style, file))
        }
    }
}

fn write_as(report: &Report, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => write_human(report, style, out),
        Format::Json => write_json(report, out),
        Format::Oneline => write_oneline(report, out),
        Format::Html => write_html(report, out),
    }?;
    out.flush()
}

/// Writes a file as a whole or not at all: a reader never sees half an answer.
///
/// # Errors
///
/// [`Error::Io`] when the file or its directory refuses.
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |source: io::Error| Error::io("write", path, source);
    // A device or a pipe (`--output /dev/stderr`) cannot be replaced by a rename.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
        return write(&mut file).map_err(failed);
    }
    let mut file = tempfile::Builder::new().prefix(".rehome-").tempfile_in(parent).map_err(failed)?;
    {
        let mut buffered = BufWriter::new(file.as_file_mut());
        write(&mut buffered).and_then(|()| buffered.flush()).map_err(failed)?;
    }
    make_ordinary(file.as_file()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Gives a temporary file (mode 0600) the mode that a newly created file has.
fn make_ordinary(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    /// Read and write for all, as `open(2)` is called by most programs, less the umask.
    const ORDINARY: u32 = 0o666;
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    file.set_permissions(std::fs::Permissions::from_mode(ORDINARY & !umask.bits()))
}

/// Returns how to draw on standard output: colours and width of a terminal, plain text of 80 columns elsewhere.
#[must_use]
pub fn terminal_style(explain: bool) -> Style {
    let stdout = io::stdout();
    let color = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let mut style = Style { color, explain, unicode: is_unicode(), ..Style::default() };
    if stdout.is_terminal()
        && let Ok(size) = rustix::termios::tcgetwinsize(&stdout)
        && size.ws_col > 0
    {
        style.width = usize::from(size.ws_col);
    }
    style
}

/// Returns whether the locale can show more than ASCII; a pipe into a file is taken for UTF-8 unless the locale is `C`.
fn is_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    !io::stdout().is_terminal() || locale.contains("utf-8") || locale.contains("utf8")
}
