//! Whether a new side differs from a base, for all points of a comparison at once.
//!
//! The unit is one run (or, of single sessions, one repetition). A point is compared among the
//! units of one regime of placement ([`crate::regime`]). The points whose units are the same share
//! one critical value ([`crate::permutation`]); sets of points with other units divide the error
//! probability in proportion to their points. The interval of a point is that of its test
//! ([`crate::ranks`], [`crate::signs`]), and never narrower than one step of the clock and than
//! what sessions differ anyway ([`crate::session`]).

use std::collections::BTreeMap;

use crate::orders::middle;
use crate::permutation::{self, Sides};
use crate::{ranks, regime, session, signs};

/// The probability that any interval of a comparison excludes 0 although nothing differs.
pub const ALPHA: f64 = 0.05;
/// From this many pairs on, turns are analysed as pairs: below, pairs leave many points undecided,
/// and few pairs drift little.
pub const PAIRED_FROM: usize = 16;

/// How the units of the two sides belong together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Design {
    /// The units of the sides are independent.
    Unpaired,
    /// The units of equal number are a pair.
    Paired,
    /// One side was measured after the other: each is one session, whatever its number of units.
    Sessions,
}

impl Design {
    /// Returns the design of measurements by turns.
    #[must_use]
    pub fn of_turns(pairs: usize) -> Self {
        if pairs >= PAIRED_FROM { Self::Paired } else { Self::Unpaired }
    }

    /// Returns the fewest units of a side that can decide this many points.
    #[must_use]
    pub fn least(self, points: usize) -> usize {
        self.steps().iter().find(|(most, _)| points <= *most).map_or(0, |(_, least)| *least)
    }

    /// Returns the most points that this many units of a side can decide: 0 if they are too few for
    /// one, `usize::MAX` if they suffice for any number.
    #[must_use]
    pub fn most(self, units: usize) -> usize {
        self.steps().iter().rev().find(|(_, least)| *least <= units).map_or(0, |(most, _)| *most)
    }

    /// Numbers of points, and the fewest units that can decide as many.
    fn steps(self) -> &'static [(usize, usize)] {
        match self {
            Self::Unpaired | Self::Sessions => &[(1, 5), (10, 8), (usize::MAX, 10)],
            Self::Paired => &[(1, 6), (10, 10), (usize::MAX, 20)],
        }
    }
}

/// A number of one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its logarithm, such that larger is better: ln(throughput), -ln(latency).
    pub y: f64,
    /// The larger core-to-core latency around it, in ns, if it was measured.
    pub placement_ns: Option<f64>,
}

/// The numbers of one point.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The numbers of the base and of the new side, by unit.
    pub sides: [BTreeMap<u32, Cell>; 2],
    /// The least difference that the clock shows, as a logarithm; 0 where it shows any.
    pub step: f64,
    /// The median of each session of a history, in the order of time, and that of the base's
    /// session last; empty without a history.
    pub history: Vec<f64>,
}

/// The answer for one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How many units of each side were compared.
    pub counts: [usize; 2],
    /// How many units of each side have a number.
    pub all: [usize; 2],
    /// The estimate of the difference new - base, as a logarithm: below 0 the new side is worse.
    pub shift: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Answer {
    /// Returns the detectable difference: half the width of the interval. A true difference of
    /// twice this is found with 95 % probability.
    #[must_use]
    pub fn detectable(&self) -> Option<f64> {
        self.interval.map(|[low, high]| (high - low) / 2.0)
    }
}

/// What is said of a point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The whole interval lies within the margin.
    Same,
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// The interval excludes 0, but so does that of many sessions that differ in nothing: the sides
    /// are sessions without a history from which their floor follows.
    Differs,
    /// Nothing can be said.
    Undecided(Why),
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// The counts of the regimes of placement differ between the sides.
    Placement,
    /// So few units cannot decide so many points.
    TooFew {
        /// The least number of units of a side.
        least: usize,
    },
    /// The interval is too wide; this many units of a side would decide.
    Wide {
        /// Units of a side.
        units: usize,
    },
    /// The interval is too wide, and even ten times the units would not decide.
    Noise,
    /// The clock's step is too large: units do not make it smaller.
    Clock,
    /// Earlier sessions differ by too much anyway: units of a session do not make it less.
    Sessions,
}

/// Repetitions beyond this many times those at hand are not proposed.
const MORE_MAX: usize = 10;

/// Answers all questions. `margin` is the ratio, as a share, up to which sides count as the same.
///
/// The answers are in the order of the questions. The probability that any interval excludes 0
/// although nothing differs is at most [`ALPHA`], if the units were measured in random order or by
/// turns, or the questions have a history. Of [`Design::Sessions`] without a history, nothing is
/// said to be better or worse.
#[must_use]
pub fn compare(questions: &[Question], design: Design, margin: f64) -> Vec<Answer> {
    let prepared: Vec<Prepared> = questions.iter().map(|question| Prepared::of(question, design)).collect();
    let mut blocks: BTreeMap<[Vec<u32>; 2], Vec<usize>> = BTreeMap::new();
    for (index, prepared) in prepared.iter().enumerate().filter(|(_, prepared)| !prepared.differs) {
        blocks.entry(prepared.units.clone()).or_default().push(index);
    }
    let total: usize = blocks.values().map(Vec::len).sum();
    let mut critical = vec![None; questions.len()];
    for block in blocks.values() {
        let alpha = ALPHA * block.len() as f64 / total as f64;
        let sides: Vec<&Sides> = block.iter().map(|index| &prepared[*index].sides).collect();
        let k = match design {
            Design::Unpaired | Design::Sessions => {
                permutation::unpaired(&sides.into_iter().cloned().collect::<Vec<_>>(), alpha)
            }
            Design::Paired => {
                permutation::paired(&sides.into_iter().map(differences).collect::<Vec<_>>(), alpha)
            }
        };
        block.iter().for_each(|index| critical[*index] = k);
    }
    let limits = Limits { design, margin: margin.ln_1p(), points: questions.len() };
    let answered = questions.iter().zip(prepared).zip(critical);
    answered.map(|((question, prepared), k)| limits.answer(question, &prepared, k)).collect()
}

/// A question with the numbers that are compared.
struct Prepared {
    sides: Sides,
    /// The units of `sides`.
    units: [Vec<u32>; 2],
    all: [usize; 2],
    differs: bool,
}

impl Prepared {
    fn of(question: &Question, design: Design) -> Self {
        let placements = |side: &BTreeMap<u32, Cell>| -> Vec<Option<f64>> {
            side.values().map(|cell| cell.placement_ns).collect()
        };
        let [base, new] = &question.sides;
        let common = regime::common(&placements(base), &placements(new));
        let kept = |side: usize| {
            let kept = question.sides[side].iter().zip(&common.kept[side]).filter(|(_, kept)| **kept);
            kept.map(|((unit, cell), _)| (*unit, cell.y)).collect::<BTreeMap<u32, f64>>()
        };
        let mut sides = [kept(0), kept(1)];
        if design == Design::Paired {
            let other = sides[1].clone();
            sides[0].retain(|unit, _| other.contains_key(unit));
            let other = sides[0].clone();
            sides[1].retain(|unit, _| other.contains_key(unit));
        }
        Self {
            units: sides.each_ref().map(|side| side.keys().copied().collect()),
            sides: sides.map(|side| side.into_values().collect()),
            all: question.sides.each_ref().map(BTreeMap::len),
            differs: common.differs,
        }
    }
}

/// Returns the differences of pairs.
fn differences([base, new]: &Sides) -> Vec<f64> {
    base.iter().zip(new).map(|(base, new)| new - base).collect()
}

/// Widens an interval to what the clock shows at least, and to what sessions differ anyway.
fn widened([low, high]: [f64; 2], shift: f64, least: f64) -> [f64; 2] {
    [low.min(shift - least), high.max(shift + least)]
}

/// What all answers have in common.
struct Limits {
    design: Design,
    /// The logarithm of the largest ratio that counts as the same.
    margin: f64,
    points: usize,
}

impl Limits {
    fn answer(&self, question: &Question, prepared: &Prepared, k: Option<usize>) -> Answer {
        let sides = &prepared.sides;
        let all = match self.design {
            Design::Unpaired | Design::Sessions => ranks::differences(&sides[0], &sides[1]),
            Design::Paired => signs::averages(&differences(sides)),
        };
        let counts = sides.each_ref().map(Vec::len);
        let shift = middle(&all);
        let own = k.and_then(|k| crate::orders::inner(&all, k));
        let floor = session::floor(&question.history, ALPHA / 2.0 / self.points as f64);
        let (least, cause) = match floor {
            Some(floor) if floor > question.step => (floor, Why::Sessions),
            _ => (question.step, Why::Clock),
        };
        let interval = own.zip(shift).map(|(own, shift)| widened(own, shift, least));
        let holds = self.design != Design::Sessions || floor.is_some();
        let verdict = match (interval, shift) {
            _ if prepared.differs => Verdict::Undecided(Why::Placement),
            (Some(interval), Some(shift)) => {
                match self.verdict(interval, shift, (least, cause), prepared.all) {
                    Verdict::Worse | Verdict::Better if !holds => Verdict::Differs,
                    verdict => verdict,
                }
            }
            _ => {
                let one_more = prepared.all[0].min(prepared.all[1]) + 1;
                Verdict::Undecided(Why::TooFew { least: self.design.least(self.points).max(one_more) })
            }
        };
        Answer { counts, all: prepared.all, shift, interval, verdict }
    }

    /// The verdict on an interval. `all` are the units of each side, of which those of other
    /// regimes were left out, as they will be of more units. No number of units makes the interval
    /// narrower than `least` on each side, for this cause.
    fn verdict(
        &self,
        [low, high]: [f64; 2],
        shift: f64,
        (least, cause): (f64, Why),
        all: [usize; 2],
    ) -> Verdict {
        if -self.margin < low && high < self.margin {
            return Verdict::Same;
        }
        if high < 0.0 {
            return Verdict::Worse;
        }
        if low > 0.0 {
            return Verdict::Better;
        }
        // The interval shrinks with the square root of the units, until it excludes 0 or lies
        // within the margin.
        let n = all[0].min(all[1]);
        let half = (high - low) / 2.0;
        let enough = shift.abs().max(self.margin - shift.abs());
        if least > 0.0 && least >= enough {
            return Verdict::Undecided(cause);
        }
        let needed = half / enough;
        let units = (n as f64 * needed * needed).ceil();
        Verdict::Undecided(match units <= (MORE_MAX * n) as f64 {
            true => Why::Wide { units: (units as usize).max(n + 1) },
            false => Why::Noise,
        })
    }
}

#[cfg(test)]
mod tests {
    use measure::random::Random;

    use super::*;

    /// A question from numbers around 0, of `n` units a side, with a shift of the new side.
    fn question(random: &mut Random, n: u32, scale: f64, shift: f64) -> Question {
        let mut side = |shift: f64| -> BTreeMap<u32, Cell> {
            (0..n)
                .map(|unit| (unit, Cell { y: shift + scale * random.normal(), placement_ns: None }))
                .collect()
        };
        Question { sides: [side(0.0), side(shift)], ..Question::default() }
    }

    fn verdicts(questions: &[Question], design: Design) -> Vec<Verdict> {
        compare(questions, design, 0.05).into_iter().map(|answer| answer.verdict).collect()
    }

    #[test]
    fn differences_beyond_the_noise_are_found_in_their_direction() {
        for (design, n) in [(Design::Unpaired, 10), (Design::Paired, 20)] {
            let mut random = Random(1);
            let mut new = |shift| question(&mut random, n, 0.01, shift);
            let all = [new(0.0), new(-0.2), new(0.2), new(0.0), new(-0.1)];
            use Verdict::{Better, Same, Worse};
            assert_eq!(verdicts(&all, design), [Same, Worse, Better, Same, Worse], "{design:?}");
            let answer = &compare(&all, design, 0.05)[1];
            let [low, high] = answer.interval.unwrap();
            assert!(low < -0.2 && -0.2 < high && answer.detectable().unwrap() < 0.02, "{answer:?}");
        }
    }

    #[test]
    fn the_reason_says_what_would_decide() {
        let mut random = Random(2);
        let few = verdicts(&[question(&mut random, 3, 0.01, 0.0)], Design::Unpaired);
        assert_eq!(few, [Verdict::Undecided(Why::TooFew { least: 5 })]);
        let many: Vec<Question> = (0..33).map(|_| question(&mut random, 5, 0.01, -0.5)).collect();
        assert_eq!(verdicts(&many, Design::Unpaired), [Verdict::Undecided(Why::TooFew { least: 10 }); 33]);
        // Sides of the same numbers: the estimate is 0.
        let mut alike = |scale: f64| {
            let [base, _] = question(&mut random, 10, scale, 0.0).sides;
            Question { sides: [base.clone(), base], ..Question::default() }
        };
        let wide = verdicts(&[alike(0.15)], Design::Unpaired);
        assert!(matches!(wide[0], Verdict::Undecided(Why::Wide { units: 11..=100 })), "{wide:?}");
        let noisy = verdicts(&[alike(1.0)], Design::Unpaired);
        assert_eq!(noisy, [Verdict::Undecided(Why::Noise)]);
        // No number of runs shows that two numbers are equal.
        let equal = compare(&[alike(0.01)], Design::Unpaired, 0.0).remove(0);
        assert_eq!(equal.verdict, Verdict::Undecided(Why::Noise));
    }

    #[test]
    fn no_interval_is_narrower_than_a_step_of_the_clock_or_than_sessions_differ() {
        let cell = |y| Cell { y, placement_ns: None };
        let side = |y: f64| (0..10).map(|unit| (unit, cell(y))).collect();
        let mut tied = Question { sides: [side(0.0), side(0.0)], step: 0.1, history: Vec::new() };
        let answer =
            |question: &Question| compare(std::slice::from_ref(question), Design::Unpaired, 0.05).remove(0);
        assert_eq!(answer(&tied).interval, Some([-0.1, 0.1]));
        tied.sides[1] = side(-0.09);
        assert_eq!(answer(&tied).verdict, Verdict::Undecided(Why::Clock));
        tied.step = 0.01;
        assert_eq!(answer(&tied).verdict, Verdict::Worse);
        tied.history = vec![0.0, 0.05, 0.0, 0.05, 0.0, 0.05];
        let half = answer(&tied).detectable().unwrap();
        assert!((half - 2.5706 * 0.05).abs() < 1e-4, "{half}");
        assert_eq!(answer(&tied).verdict, Verdict::Undecided(Why::Sessions));
    }

    /// Two blocks of runs, the second of which is far off: nothing tells a change from drift.
    #[test]
    fn sessions_without_a_history_only_differ() {
        let mut random = Random(6);
        let mut of = question(&mut random, 10, 0.01, -0.2);
        assert_eq!(verdicts(std::slice::from_ref(&of), Design::Sessions), [Verdict::Differs]);
        of.history = vec![0.0, 0.01, 0.0, 0.01, 0.0];
        assert_eq!(verdicts(std::slice::from_ref(&of), Design::Sessions), [Verdict::Differs], "four of five");
        of.history.push(0.01);
        assert_eq!(verdicts(&[of], Design::Sessions), [Verdict::Worse]);
        let alike = question(&mut random, 10, 0.01, 0.0);
        assert_eq!(verdicts(&[alike], Design::Sessions), [Verdict::Same]);
    }

    #[test]
    fn points_with_ties_keep_an_interval_beside_others() {
        let mut random = Random(3);
        let mut all: Vec<Question> = (0..8).map(|_| question(&mut random, 10, 0.01, 0.0)).collect();
        let step = (100.0_f64 / 95.0).ln();
        for question in &mut all[..4] {
            for cell in question.sides.iter_mut().flat_map(BTreeMap::values_mut) {
                cell.y = if random.fraction() < 0.8 { 0.0 } else { -step };
            }
            question.step = step;
        }
        let answers = compare(&all, Design::Unpaired, 0.05);
        assert!(answers.iter().all(|answer| answer.interval.is_some()), "{answers:?}");
        assert!(answers[..4].iter().all(|answer| answer.detectable().unwrap() >= step - 1e-12));
    }

    #[test]
    fn runs_of_other_regimes_are_left_out_and_other_counts_of_them_decide_nothing() {
        let mut random = Random(4);
        let mut alike = question(&mut random, 12, 0.01, 0.0);
        let mut other = question(&mut random, 12, 0.01, 0.0);
        let set = |question: &mut Question, side: usize, far: std::ops::Range<u32>| {
            for (unit, cell) in &mut question.sides[side] {
                let is_far = far.contains(unit);
                cell.placement_ns = Some(if is_far { 198.0 } else { 30.0 });
                cell.y -= if is_far { 1.17 } else { 0.0 };
            }
        };
        set(&mut alike, 0, 0..2);
        set(&mut alike, 1, 9..12);
        set(&mut other, 0, 0..0);
        set(&mut other, 1, 2..12);
        let answers = compare(&[alike, other], Design::Unpaired, 0.05);
        assert_eq!(
            (answers[0].counts, answers[0].all, answers[0].verdict),
            ([10, 9], [12, 12], Verdict::Same)
        );
        assert_eq!(answers[1].verdict, Verdict::Undecided(Why::Placement));
    }

    #[test]
    fn designs_have_their_least_units() {
        let of = |design: Design| [1, 8, 33].map(|points| design.least(points));
        assert_eq!((of(Design::Unpaired), of(Design::Paired)), ([5, 8, 10], [6, 10, 20]));
        assert_eq!((Design::of_turns(15), Design::of_turns(16)), (Design::Unpaired, Design::Paired));
        let most = |design: Design| [4, 5, 7, 8, 9, 10].map(|units| design.most(units));
        assert_eq!(most(Design::Unpaired), [0, 1, 1, 10, 10, usize::MAX]);
        assert_eq!((most(Design::Paired)[5], Design::Paired.most(20)), (10, usize::MAX));
    }
}
