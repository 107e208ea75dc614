//! The rounds of an examination, from recorded points.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use measure::record::{Fleet, InFleet, Point, Run};
use verdict::fleet::{Cell, Examined, Measured, Place, Probe, Purpose, Reading, Round, TimeLeft, examine};

use super::question::Question;
use super::tails::Tails;
use super::value::Row;

/// The record ends here, and the procedure needs more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Missing {
    /// The number of the round that is not in the record, or not whole.
    pub round: u64,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let round = self.round + 1;
        write!(
            f,
            "the examination is not complete, it ended in round {round}: `rdmascope fleet --resume DIR` goes on with it"
        )
    }
}

/// Points of one quantity that are measured at the same time.
#[derive(Clone)]
pub struct Step {
    /// The quantity.
    pub row: &'static Row,
    /// The members of each point, in rank order.
    pub members: Vec<[usize; 2]>,
}

/// The recorded points of a fleet, by their rounds.
pub struct Replay {
    points: BTreeMap<(u64, Vec<u32>, &'static str), Option<f64>>,
    rows: Vec<&'static Row>,
    /// The members that the fleet went on without: they have no further points.
    left: BTreeSet<u32>,
    rounds_in_time: Option<u32>,
    time_left: Option<TimeLeft>,
    /// In the rounds of a fan, messages go one way alone.
    is_fan: bool,
    /// The number of the next round.
    next: u64,
    tails: Tails,
}

impl Replay {
    /// Begins with the first round.
    pub fn new(question: &Question, fleet: &Fleet, points: &[Point]) -> Self {
        let mut replay = Self {
            points: BTreeMap::new(),
            rows: question.rows.clone(),
            left: fleet.left.keys().copied().collect(),
            rounds_in_time: fleet.rounds_in_time,
            time_left: time_left(fleet),
            is_fan: question.options.schedule.is_fan,
            next: 0,
            tails: Tails::default(),
        };
        points.iter().for_each(|point| replay.add(point));
        replay
    }

    /// Adds a point.
    pub fn add(&mut self, point: &Point) {
        let Some(place) = &point.fleet else { return };
        self.tails.add(point);
        for row in self.rows.iter().filter(|row| row.name == point.experiment) {
            self.points.insert((place.round, place.members.clone(), row.name), row.value(point));
        }
    }

    /// Takes over that the fleet goes on without members.
    pub fn leaves_out(&mut self, fleet: &Fleet) {
        self.left = fleet.left.keys().copied().collect();
    }

    /// Takes over that time has ended the rounds of the schedule, and what is left of it.
    pub fn ends_in_time(&mut self, fleet: &Fleet) {
        self.rounds_in_time = fleet.rounds_in_time;
        self.time_left = time_left(fleet);
    }

    /// What the record says of the time that is left for suspects.
    pub fn time_left(&self) -> Option<TimeLeft> {
        self.time_left
    }

    /// The number of the next round.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The 99 % latencies of the points.
    pub fn tails(&self) -> &Tails {
        &self.tails
    }

    /// Returns the points of the next round that are not in the record, of members that the fleet
    /// still has.
    pub fn lacks(&self, round: &Round) -> Vec<Step> {
        let is_two_way = |row: &Row| row.is_directed && !self.is_one_way(round.purpose);
        let ways = |row: &'static Row| [false, true].into_iter().take(1 + usize::from(is_two_way(row)));
        let steps = self.rows.iter().flat_map(|row| ways(row).map(|is_back| (*row, is_back)));
        let lacking = steps.map(|(row, is_back)| {
            let members = round.pairs.iter().map(|[a, b]| if is_back { [*b, *a] } else { [*a, *b] });
            let has_left = |member: &usize| self.left.contains(&rank(*member));
            let is_missing =
                |members: &[usize; 2]| !members.iter().any(has_left) && self.value(row, *members).is_none();
            Step { row, members: members.filter(is_missing).collect() }
        });
        lacking.filter(|step| !step.members.is_empty()).collect()
    }

    /// Whether a round measures from the first host of each pair to the second alone.
    fn is_one_way(&self, purpose: Purpose) -> bool {
        self.is_fan && matches!(purpose, Purpose::Screening { .. } | Purpose::UnderLoad { .. })
    }

    /// Returns the readings of the next round, and goes on to the one after it. Points that are not
    /// in the record have no value.
    pub fn take(&mut self, round: &Round) -> Vec<Measured> {
        let reading = |row: &Row, [a, b]: [usize; 2]| {
            let log = |members| self.value(row, members).flatten().map(|value| row.log(value));
            Reading { there: log([a, b]), back: if row.is_directed { log([b, a]) } else { None } }
        };
        let pair = |pair: &[usize; 2]| self.rows.iter().map(|row| reading(row, *pair)).collect();
        let measured = round.pairs.iter().map(pair).collect();
        self.next += 1;
        measured
    }

    /// Whether another round was measured in the time of the schedule; none if the record does not
    /// tell.
    pub fn went_on(&self) -> Option<bool> {
        if let Some(rounds) = self.rounds_in_time {
            return Some(self.next < rounds.into());
        }
        let last = self.points.last_key_value().map(|((round, ..), _)| *round)?;
        (self.next <= last).then_some(true)
    }

    /// Returns the value of a point of the next round; none if it is not in the record.
    fn value(&self, row: &Row, [a, b]: [usize; 2]) -> Option<Option<f64>> {
        self.points.get(&(self.next, vec![rank(a), rank(b)], row.name)).copied()
    }
}

impl Probe for Replay {
    type Error = Missing;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Missing> {
        if !self.lacks(round).is_empty() {
            return Err(Missing { round: self.next });
        }
        Ok(self.take(round))
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Missing> {
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        self.went_on().unwrap_or(true)
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        self.time_left
    }
}

fn time_left(fleet: &Fleet) -> Option<TimeLeft> {
    let left = fleet.time_left?;
    Some(TimeLeft { rounds: left.rounds as usize, before_visit: left.before_visit as usize })
}

/// The index of a member, as records have it.
fn rank(member: usize) -> u32 {
    u32::try_from(member).unwrap_or(u32::MAX)
}

/// Returns what the examination of a recorded fleet found: what the record says, or, if it does not
/// say it, what its points give.
///
/// # Errors
///
/// If the record ends before the examination does.
pub fn examined(question: &Question, fleet: &Fleet, points: &[Point]) -> Result<Examined, Missing> {
    // A record may come from anywhere: what it says has to fit its question.
    let said = fleet.examined.clone().and_then(|said| serde_json::from_value::<Examined>(said).ok());
    if let Some(said) = said.filter(|said| fits(said, question)) {
        return Ok(said);
    }
    examine(&question.hosts, &question.options, &mut Replay::new(question, fleet, points))
}

/// Returns what a later fleet compares with (`verdict::fleet::lasting()`), from the points of a
/// record: the cells of each quantity, and how many passes they are of.
///
/// # Errors
///
/// If the record ends before the schedule does.
pub fn lasting(
    question: &Question,
    fleet: &Fleet,
    points: &[Point],
) -> Result<(Vec<Vec<Cell>>, usize), Missing> {
    let mut replay = Replay::new(question, fleet, points);
    verdict::fleet::lasting(&question.hosts, &question.options, &mut replay)
}

/// Returns the points of a run that comparisons and metrics use. Of a fleet, these are the points
/// that its schedule measured, and all pairs are repetitions of one point.
pub fn compared<'p>(run: &Run, points: &'p [Point]) -> Cow<'p, [Point]> {
    match &run.fleet {
        Some(fleet) => Cow::Owned(scheduled(fleet, points)),
        None => Cow::Borrowed(points),
    }
}

/// The number of rounds of the schedule, as far as the record tells. What a fleet measures after
/// them is of suspects.
pub(crate) fn rounds_of_schedule(fleet: &Fleet) -> Option<u64> {
    let examined = fleet.examined.as_ref().and_then(|said| said["measurements"]["rounds"].as_u64());
    let ended = examined.or_else(|| fleet.rounds_in_time.map(u64::from));
    ended.or_else(|| Question::of(fleet).ok().map(|question| question.rounds()))
}

/// Returns the points that a fleet measured in the rounds of its schedule, without the axis that
/// names the pair: all pairs are repetitions of one point. Separate rails have a point each.
/// Points of suspects that were measured again are left out.
pub(super) fn scheduled(fleet: &Fleet, points: &[Point]) -> Vec<Point> {
    let rounds = rounds_of_schedule(fleet);
    let is_scheduled = |place: &InFleet| rounds.is_none_or(|rounds| place.round < rounds);
    let scheduled = points.iter().filter(|point| point.fleet.as_ref().is_some_and(is_scheduled)).cloned();
    let rail = |point: &Point| {
        let member = *point.fleet.as_ref()?.members.first()? as usize;
        fleet.members.get(member)?.groups.get("rail").filter(|_| fleet.separate_rails)
    };
    let of_all = |mut point: Point| {
        let rail = rail(&point).cloned();
        point.axes.remove("pair");
        point.axes.extend(rail.map(|rail| ("rail".to_owned(), rail.into())));
        point
    };
    scheduled.map(of_all).collect()
}

/// Whether all quantities and members that were found are those of the question.
fn fits(said: &Examined, question: &Question) -> bool {
    let quantities = question.rows.len();
    let members = question.hosts.count;
    let is_place = |place: &Place| match *place {
        Place::Fleet => true,
        Place::Host(member) => member < members,
        Place::Pair { a, b } => a < members && b < members,
        // Their names are looked up with care.
        Place::Group { .. } | Place::Between { .. } | Place::Network(_) => true,
    };
    let known = said.culprits.iter().map(|one| (one.quantity, one.place));
    let known = known.chain(said.cleared.iter().map(|one| (one.quantity, one.place)));
    let mut known = known.chain(said.congestion.iter().map(|one| (one.quantity, one.place)));
    let is_cell = |cell: &Cell| (cell.from as usize) < members && (cell.to as usize) < members;
    said.quantities.len() == quantities
        && known.all(|(quantity, place)| quantity < quantities && is_place(&place))
        && said.undecided.iter().all(|one| {
            one.quantity.is_none_or(|index| index < quantities) && one.place.as_ref().is_none_or(is_place)
        })
        && said.quantities.iter().all(|judged| judged.cells.iter().all(is_cell))
}
