//! Times that options give, within bounds: an instant so far ahead must exist.

use std::time::Duration;

use measure::units;

/// The longest time of an option: that of a point in a plan, too.
const MOST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Reads a time that may be zero.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(text).map_err(|error| error.to_string())?;
    if time > MOST {
        return Err(format!("{text} is longer than 30 days"));
    }
    Ok(time)
}

/// Reads a time above zero.
pub(crate) fn time_above_zero(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("give a time above zero, such as 30s".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_bounds() {
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(time_above_zero("1.5"), Ok(Duration::from_millis(1500)));
        assert!(time_above_zero("0s").unwrap_err().contains("above zero"));
        assert!(time("721h").unwrap_err().contains("30 days"));
        assert!(time("soon").unwrap_err().contains("\"soon\""));
    }
}
