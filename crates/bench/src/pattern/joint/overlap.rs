//! How much of a call a computation hides.

use serde_json::{Map, Value, json};

use super::stamps::OverlapTimes;

/// Returns the overlap of the ranks' times, for the record; nothing where a rank has reported none.
///
/// * `overlap` is that of the Intel MPI Benchmarks (IMB-NBC, "Measuring Communication and
///   Computation Overlap"): (t_pure + t_cpu - t_ovrl) / min(t_pure, t_cpu) within 0 and 1, of the
///   rank with the largest t_ovrl, whose times stand beside it.
/// * `overlap_osu` is that of the OSU Micro-Benchmarks (`osu_iallreduce` and so on): 1 - (t_ovrl -
///   t_cpu) / t_pure, at least 0, of the means over the ranks.
///
/// Both programs take means over the calls; here they are medians, which a preempted call does not
/// change.
pub(super) fn of(told: &[Option<OverlapTimes>]) -> Map<String, Value> {
    let Some(all) = told.iter().copied().collect::<Option<Vec<OverlapTimes>>>() else { return Map::new() };
    let slowest = all.iter().max_by(|one, other| one.overlapped_ns.total_cmp(&other.overlapped_ns));
    let Some(slowest) = slowest else { return Map::new() };
    let mean = |of: fn(&OverlapTimes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let means = OverlapTimes {
        pure_ns: mean(|one| one.pure_ns),
        calculated_ns: mean(|one| one.calculated_ns),
        overlapped_ns: mean(|one| one.overlapped_ns),
    };
    let values = [
        ("t_pure_ns", json!(slowest.pure_ns)),
        ("t_cpu_ns", json!(slowest.calculated_ns)),
        ("t_ovrl_ns", json!(slowest.overlapped_ns)),
        ("overlap", json!(slowest.overlap())),
        ("overlap_osu", json!(means.overlap_osu())),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

impl OverlapTimes {
    /// As the Intel MPI Benchmarks define it; `None` where there is nothing to hide.
    fn overlap(self) -> Option<f64> {
        let hidden = self.pure_ns + self.calculated_ns - self.overlapped_ns;
        let most = self.pure_ns.min(self.calculated_ns);
        (most > 0.0).then(|| (hidden / most).clamp(0.0, 1.0))
    }

    /// As the OSU Micro-Benchmarks define it.
    fn overlap_osu(self) -> Option<f64> {
        let shown = (self.overlapped_ns - self.calculated_ns) / self.pure_ns;
        (self.pure_ns > 0.0).then(|| (1.0 - shown).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pure_ns: f64, calculated_ns: f64, overlapped_ns: f64) -> OverlapTimes {
        OverlapTimes { pure_ns, calculated_ns, overlapped_ns }
    }

    #[test]
    fn all_is_hidden_or_nothing_or_a_part() {
        for (overlapped, imb, osu) in
            [(100.0, 1.0, 1.0), (200.0, 0.0, 0.0), (150.0, 0.5, 0.5), (90.0, 1.0, 1.1)]
        {
            let one = times(100.0, 100.0, overlapped);
            assert_eq!((one.overlap(), one.overlap_osu()), (Some(imb), Some(osu)), "{overlapped}");
        }
        // A computation of half the time can hide half of the call: an overlap of 1 for IMB, and of
        // 0.5 for OSU.
        let half = times(100.0, 50.0, 100.0);
        assert_eq!((half.overlap(), half.overlap_osu()), (Some(1.0), Some(0.5)));
        assert_eq!(times(100.0, 100.0, 300.0).overlap(), Some(0.0));
        assert_eq!(times(0.0, 0.0, 1.0).overlap(), None);
    }

    #[test]
    fn the_rank_that_takes_longest_tells_and_osu_takes_the_mean() {
        let told = [Some(times(100.0, 100.0, 100.0)), Some(times(100.0, 100.0, 200.0))];
        let all = of(&told);
        assert_eq!(
            (&all["t_ovrl_ns"], &all["overlap"], &all["overlap_osu"]),
            (&json!(200.0), &json!(0.0), &json!(0.5))
        );
        assert!(of(&[told[0], None]).is_empty() && of(&[]).is_empty());
    }
}
