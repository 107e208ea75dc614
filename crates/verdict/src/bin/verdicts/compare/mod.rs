//! Comparisons of runs whose difference is known.

mod machine;

use std::collections::BTreeMap;

use measure::random::Random;
use verdict::compare::{Answer, Cell, Design, Question, Verdict, compare};

use self::machine::{Machine, Recorded, Synthetic};
use crate::noise::{RECORDED, mixed};
use crate::settings::Settings;
use crate::{Answer as Outcome, Row};

/// The margin of all comparisons: the program's default.
const MARGIN: f64 = 0.05;
/// A difference that must not be called the same.
const BEYOND_MARGIN: f64 = 0.06;
/// A step of the clock: 5 ns of 95 ns.
const STEP: f64 = 0.051;
/// Sessions of a history.
const SESSIONS: usize = 5;

/// The order in which the runs of both sides are measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    /// All runs in random order.
    Random,
    /// Pairs in random order.
    Pairs,
    /// One side after the other, after a history of sessions.
    History,
    /// One side after the other.
    Blocks,
}

/// The runs of a comparison.
#[derive(Clone, Copy, Debug)]
struct Plan {
    order: Order,
    points: usize,
    /// Runs of a side.
    runs: usize,
    source: Source,
}

/// Where the numbers of the runs come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Source {
    /// They are made.
    Synthetic,
    /// They are made, and half of the points sit on steps of the clock.
    Steps,
    /// They were recorded.
    Recorded,
}

/// All rows.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for points in [1, 8, 33, 100] {
        rows.extend(rows_of(settings, Source::Synthetic, points));
    }
    for points in [1, RECORDED.len()] {
        rows.extend(rows_of(settings, Source::Recorded, points));
    }
    let steps = Plan { order: Order::Random, points: 8, runs: 20, source: Source::Steps };
    rows.extend(KINDS.map(|kind| row(steps, kind, trials(settings, 8))));
    rows
}

/// The rows of one number of points, in all orders.
fn rows_of(settings: &Settings, source: Source, points: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut orders = vec![
        (Order::Random, 10),
        (Order::Random, 20),
        (Order::Pairs, 10),
        (Order::Pairs, 20),
        (Order::History, 10),
        (Order::Blocks, 10),
    ];
    // Few pairs have the order of pairs, and are compared as runs in random order are.
    let least = Design::of_turns(1).least(points);
    orders.extend((least < 10).then_some((Order::Pairs, least)));
    for (order, runs) in orders {
        let plan = Plan { order, points, runs, source };
        let kinds: &[Kind] = match order {
            Order::History | Order::Blocks => &KINDS[..1],
            Order::Random | Order::Pairs => &KINDS,
        };
        let trials = trials(settings, points);
        rows.extend(kinds.iter().filter(|_| trials > 0).map(|kind| row(plan, *kind, trials)));
    }
    rows
}

/// Trials of a row: the time of a trial grows with the points.
fn trials(settings: &Settings, points: usize) -> u64 {
    match (settings.is_full, points) {
        (true, ..=8) => 4000,
        (true, ..=33) => 2000,
        (true, _) => 1000,
        (false, ..=8) => 200,
        (false, ..=33) => 60,
        // Without `--full`, the rows of 33 points stand for more.
        (false, _) => 0,
    }
}

/// What is true, what would be an error, and how often it may be made.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    bar: f64,
    trial: fn(Plan, u64) -> Outcome,
}

const KINDS: [Kind; 3] = [
    Kind { name: "no difference, worse or better said", bar: 0.05, trial: no_difference },
    Kind { name: "twice the stated, not found", bar: 0.05, trial: twice_the_stated },
    Kind { name: "6 % worse, same said", bar: 0.025, trial: beyond_the_margin },
];

fn row(plan: Plan, kind: Kind, trials: u64) -> Row {
    let Plan { order, points, runs, source } = plan;
    let order = match order {
        Order::Random => "random order",
        Order::Pairs => "by turns",
        Order::History => "sessions with history",
        Order::Blocks => "one side after the other",
    };
    let source = match source {
        Source::Synthetic => "",
        Source::Steps => " on clock steps",
        Source::Recorded => " recorded",
    };
    let trial = kind.trial;
    Row {
        name: format!("m={points}{source} n={runs} {order}: {}", kind.name),
        bar: Some(kind.bar),
        trials,
        trial: Box::new(move |seed| trial(plan, seed)),
    }
}

fn no_difference(plan: Plan, seed: u64) -> Outcome {
    let answers = plan.answers(&plan.questions(seed));
    match answers.iter().find(|answer| matches!(answer.verdict, Verdict::Worse | Verdict::Better)) {
        Some(answer) => Outcome::Wrong(format!("{answer:?}")),
        None => Outcome::Right,
    }
}

/// Adds twice the difference that this very run states as detectable, to one point.
fn twice_the_stated(plan: Plan, seed: u64) -> Outcome {
    let mut questions = plan.questions(seed);
    let at = (seed % plan.points as u64) as usize;
    // A comparison that states nothing promises nothing.
    let Some(stated) = plan.answers(&questions)[at].detectable() else {
        return Outcome::NotPromised;
    };
    shift(&mut questions[at], -2.0 * stated);
    let found = plan.answers(&questions).swap_remove(at);
    match found.interval {
        Some([_, high]) if high < 0.0 => Outcome::Right,
        _ => Outcome::Wrong(format!("twice {stated:.4} added: {found:?}")),
    }
}

fn beyond_the_margin(plan: Plan, seed: u64) -> Outcome {
    let mut questions = plan.questions(seed);
    let at = (seed % plan.points as u64) as usize;
    shift(&mut questions[at], -BEYOND_MARGIN.ln_1p());
    let found = plan.answers(&questions).swap_remove(at);
    match found.verdict {
        Verdict::Same => Outcome::Wrong(format!("{found:?}")),
        _ => Outcome::Right,
    }
}

fn shift(question: &mut Question, by: f64) {
    question.sides[1].values_mut().for_each(|cell| cell.y += by);
}

impl Plan {
    fn answers(self, questions: &[Question]) -> Vec<Answer> {
        let design = match self.order {
            Order::Pairs => Design::of_turns(self.runs),
            Order::Random => Design::Unpaired,
            Order::History | Order::Blocks => Design::Sessions,
        };
        compare(questions, design, MARGIN)
    }

    /// The questions of one comparison without a difference.
    fn questions(self, seed: u64) -> Vec<Question> {
        match self.source {
            Source::Synthetic | Source::Steps => self.measured(Synthetic::new(self.points, seed), seed),
            Source::Recorded => {
                let sessions = if self.order == Order::History { SESSIONS } else { 0 };
                let runs = (sessions + 2) * self.runs;
                self.measured(Recorded::new(self.points, runs, seed), seed)
            }
        }
    }

    /// The questions of the runs of a machine.
    fn measured(self, mut machine: impl Machine, seed: u64) -> Vec<Question> {
        let mut questions = vec![Question::default(); self.points];
        if self.order == Order::History {
            for _ in 0..SESSIONS {
                let session: Vec<Vec<Cell>> = (0..self.runs).map(|_| machine.run()).collect();
                keep(&mut questions, &session);
            }
        }
        let mut sides: [Vec<Vec<Cell>>; 2] = [Vec::new(), Vec::new()];
        for side in self.sides(&mut Random(mixed(&[seed, 6]))) {
            sides[side].push(machine.run());
        }
        if self.order == Order::History {
            keep(&mut questions, &sides[0]);
        }
        for (point, question) in questions.iter_mut().enumerate() {
            let side = |runs: &[Vec<Cell>]| (0..).zip(runs).map(|(unit, run)| (unit, run[point])).collect();
            question.sides = sides.each_ref().map(|runs| side(runs));
            question.step = machine.step(point);
            if self.source == Source::Steps && point % 2 == 0 {
                on_steps(&mut question.sides);
                question.step = STEP;
            }
        }
        questions
    }

    /// The side of each run, in the order of time.
    fn sides(self, random: &mut Random) -> Vec<usize> {
        let mut sides: Vec<usize> = (0..2 * self.runs).map(|run| usize::from(run >= self.runs)).collect();
        match self.order {
            Order::History | Order::Blocks => {}
            Order::Random => {
                for last in (1..sides.len()).rev() {
                    sides.swap(last, (random.fraction() * (last + 1) as f64) as usize);
                }
            }
            Order::Pairs => {
                for pair in sides.chunks_mut(2) {
                    let first = usize::from(random.fraction() < 0.5);
                    pair.copy_from_slice(&[first, 1 - first]);
                }
            }
        }
        sides
    }
}

/// Keeps the median of each point of a session.
fn keep(questions: &mut [Question], session: &[Vec<Cell>]) {
    for (point, question) in questions.iter_mut().enumerate() {
        let numbers: Vec<f64> = session.iter().map(|run| run[point].y).collect();
        question.history.extend(measure::stats::spread(&numbers).map(|spread| spread.median));
    }
}

/// Rounds numbers to steps of the clock.
fn on_steps(sides: &mut [BTreeMap<u32, Cell>; 2]) {
    let cells = sides.iter_mut().flat_map(BTreeMap::values_mut);
    cells.for_each(|cell| cell.y = (cell.y / STEP).round() * STEP);
}
