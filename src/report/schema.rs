//! The JSON Schema of a report, for everybody who reads `--format json`.

use std::io::{self, Write};

use schemars::generate::SchemaSettings;

use super::Report;

/// Writes the JSON Schema (draft 2020-12) of a report, with a newline at its end.
///
/// It is the shape that is written: fields that may be absent are not required. Properties beyond those named are
/// allowed, since later versions add some.
///
/// # Errors
///
/// Those of `out`.
pub fn write_schema(out: &mut dyn Write) -> io::Result<()> {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<Report>();
    serde_json::to_writer_pretty(&mut *out, &schema)?;
    writeln!(out)
}
