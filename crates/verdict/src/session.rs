//! The floor of a comparison of two sessions: what one session differs from the next although
//! nothing was changed, from a history of sessions.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The fewest sessions of a history.
pub const LEAST: usize = 5;

/// Returns half the width of the interval of a difference between two sessions that differ in
/// nothing: t rms, where rms is the root mean square of the differences from each session of the
/// history to the next, and t is the 1 - `tail` quantile of Student's distribution with as many
/// degrees of freedom as there are differences. `history` holds a number of each session (its
/// median), in the order of time; the session that is compared is its last. `None` for fewer than
/// [`LEAST`] differences.
#[must_use]
pub fn floor(history: &[f64], tail: f64) -> Option<f64> {
    let differences = history.len().checked_sub(1).filter(|differences| *differences >= LEAST)? as f64;
    let squares: f64 = history.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let student = StudentsT::new(0.0, 1.0, differences).ok()?;
    Some(student.inverse_cdf(1.0 - tail) * (squares / differences).sqrt())
}

#[cfg(test)]
mod tests {
    /// `scipy.stats.t.ppf(1 - 0.025 / m, 5) * sqrt(mean(diff(h) ** 2))`.
    #[test]
    fn the_floor_is_students() {
        let history = [0.0, 0.01, -0.02, 0.0, 0.03, 0.01];
        for (tail, floor) in FLOORS {
            let found = super::floor(&history, tail).unwrap();
            assert!((found / floor - 1.0).abs() < 1e-9, "{found}, not {floor}");
        }
        assert_eq!(super::floor(&history[1..], 0.025), None, "four differences");
        assert_eq!(super::floor(&[], 0.025), None);
    }

    const FLOORS: [(f64, f64); 2] =
        [(0.025, 0.059_734_923_836_896_416), (0.025 / 33.0, 0.145_692_619_560_540_66)];
}
