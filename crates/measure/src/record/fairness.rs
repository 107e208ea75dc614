//! How evenly several pairs or ranks were served.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How evenly pairs were served, by their throughputs or by the inverses of their mean latencies.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index, (sum x)^2 / (n sum x^2): 1 where all got the same, 1/n where one got all
    /// (Jain, Chiu and Hawe 1984).
    pub jain: f64,
    /// The smallest share of a pair, relative to the largest.
    pub least_share: f64,
}

impl Fairness {
    /// The fairness of several shares; `None` for fewer than two.
    pub fn of(got: &[f64]) -> Option<Self> {
        let (sum, squares) = got.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let least = got.iter().copied().fold(f64::INFINITY, f64::min);
        let most = got.iter().copied().fold(0.0, f64::max);
        (got.len() > 1 && most > 0.0)
            .then(|| Self { jain: sum * sum / (got.len() as f64 * squares), least_share: least / most })
    }
}
