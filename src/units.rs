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

#[cfg(test)]
mod tests {
    use super::*;

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
