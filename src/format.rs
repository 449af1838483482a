//! Seconds, bytes, ratios and counts as words; the only place that rounds.
//!
//! Figures carry two or three significant digits: more would suggest a precision that a handful of rounds does not
//! have. JSON carries the values as they are.

/// What stands where a figure should be and none is known.
pub const UNKNOWN: &str = "unknown";

/// Units of time below two minutes: name and length in seconds, the shortest first.
const TIME_UNITS: [(&str, f64); 4] = [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// From here on minutes read better than seconds: nobody pictures 340 s.
const MINUTES_FROM_S: f64 = 120.0;
/// An interval is written in one unit unless an end is so many times away from the middle.
const MOST_IN_ONE_UNIT: f64 = 20.0;
const SECONDS_PER_MINUTE: f64 = 60.0;
const MINUTES_PER_HOUR: f64 = 60.0;
const HOURS_PER_DAY: f64 = 24.0;

/// Decimal units, as drives and `ls --si` count: name and size in bytes, the smallest first.
const BYTE_UNITS: [(&str, f64); 5] = [("bytes", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// Returns a duration in words: `2.2 µs`, `951 ms`, `88 s`, `5 min 40 s`, `2 h 5 min`.
///
/// One decimal below ten of a unit, none above. Neither 0 nor a negative duration is hidden: `0 s`, `-5.3 ms`.
#[must_use]
pub fn seconds(value_s: f64) -> String {
    if !value_s.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value_s < 0.0 {
        return format!("-{}", seconds(-value_s));
    }
    if value_s == 0.0 {
        return "0 s".to_owned();
    }
    if value_s.round() >= MINUTES_FROM_S {
        return long_duration(value_s);
    }
    let (unit, length_s) = time_unit(value_s);
    format!("{} {unit}", short_number(value_s / length_s))
}

/// Returns a duration whose fraction does not matter: `3 s` for 3.02 s, `400 ms` for 0.4 s.
#[must_use]
pub fn rough_seconds(value_s: f64) -> String {
    seconds(if value_s >= 1.0 { value_s.round() } else { value_s }).replace(".0 ", " ")
}

/// Returns both ends of an interval in the unit that `mid_s` is written in: `84 to 92` beside `88 s`.
///
/// An interval whose ends read the same is written once.
#[must_use]
pub fn seconds_interval(low_s: f64, mid_s: f64, high_s: f64) -> String {
    if mid_s.round() >= MINUTES_FROM_S || !(low_s.is_finite() && mid_s.is_finite() && high_s.is_finite()) {
        return joined(seconds(low_s), &seconds(high_s));
    }
    // An end far from the middle would read as 0.0 or as 64,451 in its unit.
    if low_s * MOST_IN_ONE_UNIT < mid_s || high_s > mid_s * MOST_IN_ONE_UNIT {
        return joined(seconds(low_s), &seconds(high_s));
    }
    let (_, length_s) = time_unit(mid_s);
    joined(short_number(low_s / length_s), &short_number(high_s / length_s))
}

/// Returns a ratio in words: `2,087x`, `1.9x`, `0.43x`.
#[must_use]
pub fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{}x", ratio_number(value)) } else { UNKNOWN.to_owned() }
}

/// Returns both ends of a ratio's interval: `1,950 to 2,210`.
#[must_use]
pub fn ratio_interval(low: f64, high: f64) -> String {
    joined(ratio_number(low), &ratio_number(high))
}

/// Returns a share of 1 in percent; `100 %` and `0 %` only where that is exact.
#[must_use]
pub fn percent(share: f64) -> String {
    let hundredths = (share * 100.0).round();
    if !share.is_finite() {
        UNKNOWN.to_owned()
    } else if hundredths >= 100.0 && share < 1.0 {
        "over 99 %".to_owned()
    } else if hundredths <= 0.0 && share > 0.0 {
        "under 1 %".to_owned()
    } else {
        format!("{hundredths:.0} %")
    }
}

/// Returns a distance from a median as a signed percentage: `+4 %`, `-0.5 %`, `0 %`.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    if share == 0.0 {
        "0 %".to_owned()
    } else {
        format!("{}{} %", if share > 0.0 { "+" } else { "" }, short_number(share * 100.0))
    }
}

/// Returns a share of 1 as a length for a style sheet: `62.5%`.
#[must_use]
pub fn css_percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Returns a size in decimal units: `950 bytes`, `38 MB`, `1.2 GB`.
#[must_use]
pub fn bytes(size_bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are printed")]
    let size = size_bytes as f64;
    if size_bytes == 1 {
        return "1 byte".to_owned();
    }
    // 999.6 kB would read as `1000 kB`: the next unit begins where the number above it would round up.
    let (unit, unit_bytes) =
        BYTE_UNITS.into_iter().rev().find(|(_, unit_bytes)| size >= unit_bytes * 0.9995).unwrap_or(BYTE_UNITS[0]);
    if unit == "bytes" {
        format!("{} bytes", count(size_bytes))
    } else {
        format!("{} {unit}", short_number(size / unit_bytes))
    }
}

/// Returns a whole number with commas between thousands: `41,200`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number with its noun: `1 file`, `1,284 files`.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Returns the position of a positive value on a log axis, in decades; for plots and bars.
#[must_use]
pub fn decades(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).log10()
}

/// Returns the label of a decade on a ratio's axis: `1x`, `1,000x`, `0.1x`.
#[must_use]
pub fn axis_ratio(value: f64) -> String {
    if value < 1.0 { format!("{value}x") } else { ratio_of_whole(value) }
}

/// Returns the label of a decade on a time axis: `1 µs`, `100 ms`, `10 s`, `1,000 s`.
#[must_use]
pub fn axis_seconds(value_s: f64) -> String {
    let (unit, length_s) = time_unit(value_s);
    format!("{} {unit}", whole(value_s / length_s))
}

fn ratio_of_whole(value: f64) -> String {
    format!("{}x", whole(value))
}

fn joined(low: String, high: &str) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

/// Picks the unit that leaves the number between 1 and 1000 after rounding.
fn time_unit(value_s: f64) -> (&'static str, f64) {
    TIME_UNITS.into_iter().rev().find(|(_, length_s)| value_s >= length_s * 0.9995).unwrap_or(TIME_UNITS[0])
}

fn long_duration(value_s: f64) -> String {
    let minutes = (value_s / SECONDS_PER_MINUTE).floor();
    let hours = (minutes / MINUTES_PER_HOUR).floor();
    if hours >= 2.0 * HOURS_PER_DAY {
        format!("{:.0} days", hours / HOURS_PER_DAY)
    } else if hours >= 1.0 {
        format!("{hours:.0} h {:.0} min", minutes - hours * MINUTES_PER_HOUR)
    } else {
        let whole = value_s.round();
        let minutes = (whole / SECONDS_PER_MINUTE).floor();
        format!("{minutes:.0} min {:.0} s", whole - minutes * SECONDS_PER_MINUTE)
    }
}

/// One decimal below 10, whole numbers with thousands separators above.
fn short_number(value: f64) -> String {
    // 9.96 rounds to 10, which has no decimal.
    if value.abs() < 9.95 { trimmed(format!("{value:.1}")) } else { whole(value) }
}

/// Returns a ratio as a bare number, with two decimals below 1, where the first one alone would say little.
#[must_use]
pub fn ratio_number(value: f64) -> String {
    if !value.is_finite() {
        UNKNOWN.to_owned()
    } else if value.abs() < 0.0095 {
        format!("{value:.4}")
    } else if value.abs() < 0.995 {
        format!("{value:.2}")
    } else {
        short_number(value)
    }
}

/// A zero that stands for 'less than the last digit' keeps its decimal; everything else is as it is.
fn trimmed(text: String) -> String {
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// Returns a number without a fraction, with commas between thousands: `-1,284`.
#[must_use]
pub fn whole(value: f64) -> String {
    // Through text, since no cast from f64 to an integer is free of doubt: `{:.0}` rounds half to even.
    let text = format!("{:.0}", value.abs());
    let sign = if value < 0.0 { "-" } else { "" };
    match text.parse::<u64>() {
        Ok(number) => format!("{sign}{}", count(number)),
        Err(_) => format!("{sign}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_a_person_would_choose() {
        let cases = [
            (2.2e-6, "2.2 µs"),
            (0.951, "951 ms"),
            (88.0, "88 s"),
            (0.0047, "4.7 ms"),
            (9.6, "9.6 s"),
            (5e-10, "0.5 ns"),
            (119.4, "119 s"),
            (340.0, "5 min 40 s"),
            (7_500.0, "2 h 5 min"),
            (260_000.0, "3 days"),
        ];
        for (value_s, words) in cases {
            assert_eq!(seconds(value_s), words);
        }
    }

    #[test]
    fn a_duration_that_rounds_up_takes_the_next_unit() {
        assert_eq!(seconds(0.999_6), "1.0 s");
        assert_eq!(seconds(0.009_96), "10 ms");
        assert_eq!(seconds(119.7), "2 min 0 s");
        assert_eq!(seconds(179.8), "3 min 0 s");
    }

    #[test]
    fn a_negative_or_impossible_duration_does_not_look_like_a_good_one() {
        assert_eq!(seconds(-0.0053), "-5.3 ms");
        assert_eq!(seconds(f64::NAN), UNKNOWN);
        assert_eq!(seconds(f64::INFINITY), UNKNOWN);
        assert_eq!(seconds(0.0), "0 s");
    }

    #[test]
    fn an_interval_is_written_in_the_unit_of_its_middle() {
        assert_eq!(seconds_interval(84.2, 88.0, 91.7), "84 to 92");
        assert_eq!(seconds_interval(0.95, 1.2, 1.4), "0.9 to 1.4");
        assert_eq!(seconds_interval(0.0051, 0.0053, 0.0053), "5.1 to 5.3");
        assert_eq!(seconds_interval(0.00531, 0.0053, 0.00532), "5.3");
        assert_eq!(seconds_interval(8e-7, 0.007, 64.0), "800 ns to 64 s");
        assert_eq!(seconds_interval(200.0, 240.0, 300.0), "3 min 20 s to 5 min 0 s");
    }

    #[test]
    fn a_ratio_keeps_two_digits_below_ten_and_groups_thousands() {
        assert_eq!(ratio(2_087.3), "2,087x");
        assert_eq!(ratio(180.06), "180x");
        assert_eq!(ratio(1.94), "1.9x");
        assert_eq!(ratio(0.432), "0.43x");
        assert_eq!(ratio(0.0031), "0.0031x");
        assert_eq!(ratio(0.999), "1.0x");
        assert_eq!(ratio(f64::INFINITY), UNKNOWN);
        assert_eq!(ratio_interval(1_949.6, 2_210.2), "1,950 to 2,210");
        assert_eq!(ratio_interval(0.97, 1.13), "0.97 to 1.1");
    }

    #[test]
    fn certainty_is_not_rounded_up_to_full() {
        assert_eq!(percent(0.97), "97 %");
        assert_eq!(percent(0.997), "over 99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.001), "under 1 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn sizes_are_decimal_and_have_no_false_digits() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(950), "950 bytes");
        assert_eq!(bytes(38_200_000), "38 MB");
        assert_eq!(bytes(1_240_000_000), "1.2 GB");
        assert_eq!(bytes(999_700), "1.0 MB");
        assert_eq!(bytes(5_000_000_000_000_000), "5,000 TB");
    }

    #[test]
    fn counts_have_thousands_separators_and_the_right_noun() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(1_284, "file", "files"), "1,284 files");
    }
}
