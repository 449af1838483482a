//! The JSON Schemas of everything that is printed as JSON, for everybody who reads it.

use std::io::{self, Write};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Writes the JSON Schema (draft 2020-12) of a type, with a newline at its end.
///
/// It is the shape that is written: fields that may be absent are not required. Properties beyond those named are
/// allowed, since later versions add some.
///
/// # Errors
///
/// Those of `out`.
pub fn write_schema_of<T: JsonSchema>(out: &mut dyn Write) -> io::Result<()> {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    serde_json::to_writer_pretty(&mut *out, &generator.into_root_schema_for::<T>())?;
    writeln!(out)
}
