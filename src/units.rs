//! Quantities with their unit in the type or in the name.

use std::time::Duration;

/// Parses a duration as a person writes it: `10s`, `500ms`, `2m`, `1h`, `7d`; a bare number is seconds.
///
/// # Errors
///
/// A sentence for the command line when the text is no non-negative number with one of these units.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        other => return Err(format!("unknown unit `{other}`: use ms, s, m, h or d")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no duration; write for example `10s` or `500ms`"))?;
    Duration::try_from_secs_f64(number * seconds_per_unit)
        .map_err(|_| format!("`{text}` is out of range; write for example `10s` or `500ms`"))
}

/// Parses a size as a person writes it: `4096`, `4k`, `4KiB`, `512M`, `1GiB`; every unit is a power of 1024.
///
/// # Errors
///
/// A sentence for the command line when the text is no whole number with one of these units.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(format!("`{text}` is no size; write for example `4096`, `4KiB` or `512MiB`")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("`{text}` is no size; write for example `4096`, `4KiB` or `512MiB`"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_unit() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("4k"), Ok(4096));
        assert_eq!(parse_bytes("512 MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("1G"), Ok(1 << 30));
        for wrong in ["", "k", "-1", "1.5M", "4 parsecs"] {
            assert!(parse_bytes(wrong).unwrap_err().contains("is no size"), "{wrong}");
        }
        assert!(parse_bytes("99999999999999G").unwrap_err().contains("out of range"));
    }

    #[test]
    fn durations_are_read_with_and_without_unit() {
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn a_wrong_duration_names_what_would_be_right() {
        assert!(parse_duration("10 parsecs").unwrap_err().contains("use ms, s, m, h or d"));
        assert!(parse_duration("-1s").unwrap_err().contains("out of range"));
        assert!(parse_duration("").unwrap_err().contains("is no duration"));
    }
}
