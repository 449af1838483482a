//! Lines of text for a terminal: wrapped, painted, and free of control characters that are not ours.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Ansi};

use crate::error::printable_text;

/// How a text report is drawn; the command layer asks the terminal, this layer does as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to write colours.
    pub color: bool,
    /// Columns of the terminal; 80 where there is none.
    pub width: usize,
    /// Whether to show every rule that fired and what the scan cost.
    pub explain: bool,
    /// Whether characters outside ASCII may be drawn.
    pub unicode: bool,
}

impl Default for Style {
    /// Plain text of 80 columns.
    fn default() -> Self {
        Self { color: false, width: 80, explain: false, unicode: true }
    }
}

/// Prose wider than this is tiring to read, however wide the terminal is.
const MAX_PROSE_COLUMNS: usize = 100;
/// Below this a wrapped line would hold one word; then lines are left to the terminal.
const MIN_COLUMNS: usize = 40;

/// What a piece of text means; colour never carries anything alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Strong,
    Faint,
    Good,
    Caution,
    Bad,
}

impl Paint {
    fn ansi(self) -> Ansi {
        match self {
            Self::Plain => Ansi::new(),
            Self::Strong => Ansi::new().bold(),
            Self::Faint => Ansi::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Caution => AnsiColor::Yellow.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// Writes lines. Every text that goes through it is escaped first: names in a repository are hostile.
pub(super) struct Page<'a> {
    out: &'a mut dyn Write,
    style: &'a Style,
}

impl<'a> Page<'a> {
    pub(super) fn new(out: &'a mut dyn Write, style: &'a Style) -> Self {
        Self { out, style }
    }

    pub(super) fn style(&self) -> &Style {
        self.style
    }

    /// Columns that prose may fill.
    pub(super) fn width(&self) -> usize {
        self.style.width.clamp(MIN_COLUMNS, MAX_PROSE_COLUMNS)
    }

    pub(super) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes one line made of painted pieces, however long it is.
    pub(super) fn line(&mut self, pieces: &[(Paint, &str)]) -> io::Result<()> {
        for (paint, text) in pieces {
            let text = self.drawable(text);
            if self.style.color && *paint != Paint::Plain {
                let ansi = paint.ansi();
                write!(self.out, "{ansi}{text}{ansi:#}")?;
            } else {
                write!(self.out, "{text}")?;
            }
        }
        writeln!(self.out)
    }

    /// Writes a label, then text that is wrapped beside it; `column` is where the text begins.
    ///
    /// Words are never broken, so that a path or a command can be copied.
    pub(super) fn beside(&mut self, label: (Paint, &str), column: usize, text: (Paint, &str)) -> io::Result<()> {
        let body = self.drawable(text.1);
        let gap = column.saturating_sub(textwrap::core::display_width(label.1)).max(1);
        let lines = wrapped(&body, self.width().saturating_sub(column));
        let mut prefix = format!("{}{}", label.1, " ".repeat(gap));
        for line in lines {
            self.line(&[(label.0, &prefix), (text.0, &line)])?;
            prefix = " ".repeat(column);
        }
        Ok(())
    }

    /// Writes wrapped text at an indent.
    pub(super) fn paragraph(&mut self, indent: usize, paint: Paint, text: &str) -> io::Result<()> {
        let body = self.drawable(text);
        for line in wrapped(&body, self.width().saturating_sub(indent)) {
            self.line(&[(Paint::Plain, &" ".repeat(indent)), (paint, &line)])?;
        }
        Ok(())
    }

    fn drawable(&self, text: &str) -> String {
        let safe = printable_text(text);
        if self.style.unicode { safe } else { ascii(&safe) }
    }
}

/// Returns how many columns a text takes on a terminal, its control characters escaped.
pub(super) fn columns(text: &str) -> usize {
    textwrap::core::display_width(&printable_text(text))
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let options = textwrap::Options::new(width.max(1))
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::wrap(text.trim(), options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Writes what is not ASCII with the nearest ASCII, and anything else as its escape.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'µ' => out.push('u'),
            '█' => out.push('#'),
            '▒' => out.push('~'),
            '│' => out.push('|'),
            '✗' => out.push('X'),
            '·' => out.push('-'),
            c if c.is_ascii() => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(style: Style, write: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&mut out, &style)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_wrapped_below_itself_and_words_stay_whole() {
        let path = "/mnt/c/a-very-long-name/".repeat(4);
        let text = written(Style { width: 40, ..Style::default() }, |page| {
            page.beside(
                (Paint::Strong, "  Where"),
                10,
                (Paint::Plain, &format!("one two three four five six seven {path}")),
            )
        });
        assert_eq!(text, format!("  Where   one two three four five six\n          seven\n          {path}\n"));
    }

    #[test]
    fn an_escape_sequence_in_a_text_is_written_out() {
        let text = written(Style { color: true, ..Style::default() }, |page| {
            page.line(&[(Paint::Plain, "a\u{1b}]0;x\u{7}b\nforged")])
        });
        assert_eq!(text, "a\\u{1b}]0;x\\u{7}b\\nforged\n");
    }

    #[test]
    fn colour_is_written_only_when_asked_for() {
        let write = |page: &mut Page<'_>| page.line(&[(Paint::Bad, "no")]);
        assert_eq!(written(Style::default(), write), "no\n");
        assert!(written(Style { color: true, ..Style::default() }, write).contains("\u{1b}["));
    }

    #[test]
    fn without_unicode_every_byte_is_ascii() {
        let text = written(Style { unicode: false, ..Style::default() }, |page| {
            page.paragraph(2, Paint::Plain, "2.2 µs ██▒ 日")
        });
        assert_eq!(text, "  2.2 us ##~ \\u{65e5}\n");
    }
}
