//! Writes a saved JSON report in another form, to look at what the forms look like.
//!
//! `cargo run --example render -- REPORT.json text|explain|json|oneline|html [COLUMNS] [color]`

use std::io::{self, Write};

use rehome::report::{Report, Style, write_html, write_human, write_json, write_oneline};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).ok_or("which report?")?;
    let report: Report = serde_json::from_slice(&std::fs::read(path)?)?;
    let form = arguments.get(2).map_or("text", String::as_str);
    let width = arguments.get(3).and_then(|text| text.parse().ok()).unwrap_or(80);
    let color = arguments.iter().any(|argument| argument == "color");
    let out = &mut io::stdout().lock();
    match form {
        "json" => write_json(&report, out)?,
        "html" => write_html(&report, out)?,
        "oneline" => write_oneline(&report, out)?,
        form => write_human(&report, &Style { color, width, explain: form == "explain", unicode: true }, out)?,
    }
    Ok(out.flush()?)
}
