//! What an examination found, in sentences.

use std::collections::BTreeSet;

use measure::record::Fleet;
use measure::text::counted;
use verdict::fleet::{
    Against, Cleared, Congestion, Culprit, Evidence, Examined, Hosts, Judged, Measurements, Options, Place,
    Reason, Thresholds, Undecided, Way, Why,
};

use super::names::Names;
use super::outcome::{Outcome, culprits, missed, open, outcome};
use super::question::Question;
use super::split::Split;
use super::value::Row;

/// What is needed to say what an examination found.
pub(crate) struct Words<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) question: &'a Question,
    pub(crate) examined: &'a Examined,
}

impl<'a> Words<'a> {
    pub(crate) fn new(fleet: &'a Fleet, question: &'a Question, examined: &'a Examined) -> Self {
        Self { names: Names { fleet, hosts: &question.hosts }, question, examined }
    }

    /// The quantity of an index.
    pub(crate) fn row(&self, quantity: usize) -> &'static Row {
        self.question.rows[quantity.min(self.question.rows.len() - 1)]
    }

    /// The answer in one line.
    pub(crate) fn verdict(&self) -> String {
        let fleet = self.names.fleet;
        let examined = fleet.members.len() - fleet.left.len();
        match outcome(fleet, self.examined) {
            Outcome::Culprits => {
                let culprits = culprits(self.examined).len() as u64;
                let is_missed = missed(self.examined).next().is_some();
                match (culprits, is_missed) {
                    (0, _) => MISSED.to_owned(),
                    (_, true) => format!("{}, and {MISSED}", counted(culprits, "culprit")),
                    (_, false) => counted(culprits, "culprit"),
                }
            }
            Outcome::Healthy => format!("no culprit among {examined} members"),
            Outcome::Undecided => {
                let mut open = open(fleet, self.examined);
                if let Some(first) = open.next() {
                    let more = match open.count() {
                        0 => String::new(),
                        more => format!(", and {more} more"),
                    };
                    return format!("not decided: {}{more}", self.undecided(first));
                }
                let left = counted(fleet.left.len() as u64, "member");
                format!("not decided: no culprit among {examined} members, but {left} could not be examined")
            }
        }
    }

    /// How far pairs across groups are from those within groups.
    pub(crate) fn across(&self) -> Vec<String> {
        let split = Split::of(self.question);
        let of =
            |split: Split| self.examined.quantities.iter().filter_map(|judged| split.words(judged)).collect();
        split.map_or_else(Vec::new, of)
    }

    /// The name of a culprit, with the direction in which a pair is slow.
    pub(crate) fn name(&self, culprit: &Culprit) -> String {
        let is_directed = self.row(culprit.quantity).is_directed;
        let way = match [Way::Send, Way::Receive].map(|way| culprit.is_slow(way)) {
            [true, false] if is_directed => Some(Way::Send),
            [false, true] => Some(Way::Receive),
            _ => None,
        };
        self.names.place(culprit.place, way)
    }

    /// A culprit: who, by how much, compared with what.
    pub(crate) fn culprit(&self, culprit: &Culprit) -> String {
        let row = self.row(culprit.quantity);
        let slow = |way| culprit.evidence(way).filter(|_| culprit.is_slow(way));
        let [send, receive] = [slow(Way::Send), slow(Way::Receive)];
        let than = than(culprit.against);
        let name = self.name(culprit);
        let evidence = send.or(receive);
        let by = |evidence: &Evidence| by(row, evidence.confirmed.unwrap_or_default());
        let peers = evidence.map_or(0, |evidence| evidence.peers) as u64;
        let what = match (culprit.place, send, receive) {
            (Place::Host(_), Some(send), None) if row.is_directed => {
                let other = other_way(row, culprit, "receive", culprit.receive.as_ref());
                format!("sends {} {than} to {}; {other}", by(send), counted(peers, "member"))
            }
            (Place::Host(_), None, Some(receive)) => {
                let other = other_way(row, culprit, "send", culprit.send.as_ref());
                format!("receives {} {than} from {}; {other}", by(receive), counted(peers, "member"))
            }
            (Place::Host(_), Some(send), Some(receive)) => {
                format!(
                    "sends {} and receives {} {than}, with {}",
                    by(send),
                    by(receive),
                    counted(peers, "member")
                )
            }
            (Place::Pair { .. }, Some(send), Some(receive)) => {
                format!("{} and {} {than} in its two directions, that pair alone", by(send), by(receive))
            }
            (Place::Pair { .. }, ..) => {
                format!("{} {than}, that pair alone", evidence.map(by).unwrap_or_default())
            }
            (Place::Between { .. }, Some(send), Some(receive)) => {
                format!("the paths between them are {} and {} {than}", by(send), by(receive))
            }
            (Place::Between { .. }, ..) => {
                format!("the paths between them are {} {than}", evidence.map(by).unwrap_or_default())
            }
            (Place::Group { .. }, Some(send), Some(receive)) => {
                format!("its members send {} and receive {} {than}", by(send), by(receive))
            }
            (Place::Group { .. }, Some(send), None) if row.is_directed => {
                format!("its members send {} {than}", by(send))
            }
            (Place::Group { .. }, None, Some(receive)) => {
                format!("its members receive {} {than}", by(receive))
            }
            (Place::Fleet | Place::Network(_), ..) => {
                format!("most pairs are at least {} {than}", evidence.map(by).unwrap_or_default())
            }
            _ => format!("{} {than}", evidence.map(by).unwrap_or_default()),
        };
        format!("{name}: {}: {what}", row.name)
    }

    /// What was measured of a culprit in isolation.
    pub(crate) fn evidence(&self, culprit: &Culprit) -> Vec<String> {
        let row = self.row(culprit.quantity);
        let line = |way: Way| {
            let evidence = culprit.evidence(way).filter(|_| culprit.is_slow(way))?;
            let visits: Vec<String> = evidence
                .visits
                .iter()
                .map(|visit| visit.map_or_else(|| "not measured".to_owned(), |effect| by(row, effect)))
                .collect();
            let screened =
                evidence.screened.map(|effect| format!("{} {}; ", by(row, effect), self.at_first()));
            let what = match way {
                _ if !row.is_directed => "",
                Way::Send => "sending: ",
                Way::Receive => "receiving: ",
            };
            Some(format!(
                "{what}{}{} in {} visits in isolation with {}; named from {}",
                screened.unwrap_or_default(),
                visits.join(", "),
                visits.len(),
                counted(evidence.partners as u64, "partner"),
                by(row, evidence.bound)
            ))
        };
        let lines = [Way::Send, Way::Receive].into_iter().filter_map(line);
        let is_host = |culprit: &&Culprit| {
            matches!(culprit.place, Place::Host(_)) && culprit.against == Against::Others
        };
        let is_first = self.examined.culprits.iter().find(is_host) == Some(culprit);
        let has_groups = !self.question.hosts.groupings.is_empty();
        lines.chain((is_first && !has_groups).then(|| FAR.to_owned())).collect()
    }

    /// How the schedule measured: alone, a pair is under no load.
    fn at_first(&self) -> &'static str {
        let Options { schedule, amounts, .. } = &self.question.options;
        let is_alone = schedule.most(amounts) == Some(1);
        if is_alone { "at first" } else { "under load" }
    }

    /// What is slow while all pairs measure, and not in isolation.
    pub(crate) fn congestion(&self, congestion: &Congestion) -> String {
        let row = self.row(congestion.quantity);
        let way = row.is_directed.then_some(congestion.way);
        let name = self.names.place(congestion.place, way);
        let what = match (congestion.place, way) {
            (Place::Host(_) | Place::Group { .. }, Some(Way::Send)) => "sends ",
            (Place::Host(_) | Place::Group { .. }, Some(Way::Receive)) => "receives ",
            _ => "",
        };
        let isolated =
            congestion.isolated.map_or_else(String::new, |effect| format!(" ({} there)", by(row, effect)));
        format!(
            "{name}: {}: {what}{} {} under load, and not in isolation{isolated}: congestion",
            row.name,
            by(row, congestion.again),
            than(congestion.against)
        )
    }

    /// A suspect that is not named.
    pub(crate) fn cleared(&self, cleared: &Cleared) -> String {
        let row = self.row(cleared.quantity);
        let name = self.names.place(cleared.place, row.is_directed.then_some(cleared.way));
        let than = than(cleared.against);
        let why = match cleared.why {
            Why::Again(effect) => format!("when measured again, {} {than}", by(row, effect)),
            Why::Isolation(effect) => format!("in isolation, {} {than}", by(row, effect)),
            Why::Explained(place) => format!("explained by {}", self.names.place(place, None)),
            Why::TooMany => "more pairs were suspect than are measured again".to_owned(),
            Why::NotMeasured => "it could not be measured in isolation".to_owned(),
            Why::NoTime => "the rest of --time is too short to measure it again".to_owned(),
        };
        format!("{name}: {}: {} {than} at first; {why}", row.name, by(row, cleared.screened))
    }

    /// Why something is not decided.
    pub(crate) fn undecided(&self, undecided: &Undecided) -> String {
        let of = |index: usize| format!("{}: ", self.row(index).name);
        let quantity = undecided.quantity.map(of).unwrap_or_default();
        let place = undecided.place.map(|place| format!("{}: ", self.names.place(place, None)));
        let reason = match undecided.reason {
            Reason::Schedule => {
                let why = self.question.options.schedule.no_blame.unwrap_or("it has too few pairs");
                format!("the schedule {} names no culprit: {why}", self.question.options.schedule.name)
            }
            Reason::TooFewHosts => "fewer than four members answered".to_owned(),
            Reason::OnePass => {
                let advice =
                    if self.examined.measurements.is_cut { "give it more --time" } else { "use --passes 3" };
                format!("one pass over fewer than 16 members does not show how much a pair varies: {advice}")
            }
            Reason::TooFewCells(cells) => {
                format!(
                    "each member has {}, and four are needed: give it more --time or --rounds",
                    counted(cells as u64, "measured pair")
                )
            }
            Reason::TooNoisy => {
                "the pairs vary so much that only a deficit above one half could have been seen".to_owned()
            }
            Reason::SlowerThanBaseline(change) => {
                let row = self.row(undecided.quantity.unwrap_or_default());
                format!(
                    "the median of all pairs is {} that of the earlier fleet: two sessions do not tell a change from drift",
                    by(row, change)
                )
            }
            Reason::HostWithoutCells => "less than half of its pairs were measured".to_owned(),
            Reason::PairWithoutCells => "it could not be measured".to_owned(),
            Reason::TwoOfFour => "four members are too few to tell two culprits apart".to_owned(),
            Reason::TooManySuspects => {
                "it was below the expectation, as more pairs were than are measured again".to_owned()
            }
            Reason::WithinNoise(margin) => format!(
                "it is nearer to the limit than noise can tell, which is {:.1} %: measure for longer (-D, -n), or state a \
                 limit that is not as near",
                100.0 * margin.exp_m1()
            ),
            Reason::NotConfirmable => "it was suspect and could not be measured again".to_owned(),
            Reason::NoTime => {
                "it was suspect, and the rest of --time is too short to measure it again: 10min is mostly enough"
                    .to_owned()
            }
        };
        format!("{}{quantity}{reason}", place.unwrap_or_default())
    }

    /// The deficits that would have been named.
    pub(crate) fn detectable(&self, judged: &Judged, thresholds: &Thresholds) -> String {
        let Some(row) = Row::named(&judged.name) else { return String::new() };
        let share = match share_of_pairs(&self.question.hosts, judged) {
            0.995.. => String::new(),
            share => format!(", of the {:.0} % of pairs that were measured", (100.0 * share).max(1.0)),
        };
        format!(
            "{}: a member {}, a pair {}{share}",
            judged.name,
            by(row, -thresholds.host),
            by(row, -thresholds.pair)
        )
    }

    /// What is said after the schedule.
    pub(crate) fn rails(&self) -> &'static str {
        if self.question.hosts.networks.is_some() { ", each rail by itself" } else { "" }
    }

    /// How much was measured.
    pub(crate) fn measured(&self) -> String {
        let Measurements { passes, rounds, is_cut, screening, again, confirmation, under_load, missing } =
            self.examined.measurements;
        let in_time = if is_cut { ", as many as the time allowed" } else { "" };
        let passes = match passes {
            0 => "no whole pass".to_owned(),
            1 => "1 pass".to_owned(),
            several => format!("{several} passes"),
        };
        let mut out = format!("{screening} measurements of pairs in {rounds} rounds ({passes}{in_time})");
        for (count, what) in
            [(again, "again"), (confirmation, "in isolation"), (under_load, "under load again")]
        {
            if count > 0 {
                out += &format!(", {count} {what}");
            }
        }
        if missing > 0 {
            out += &format!("; {missing} gave no number");
        }
        out
    }
}

/// What a deficit is measured from.
fn than(against: Against) -> &'static str {
    match against {
        Against::Others => "the others",
        Against::Floor => "the expectation",
    }
}

/// What a host that is slow in one way does in the other.
fn other_way(row: &Row, culprit: &Culprit, verb: &str, evidence: Option<&Evidence>) -> String {
    let Some((evidence, effect)) = evidence.and_then(|evidence| Some((evidence, evidence.confirmed?))) else {
        return format!("whether it {verb}s as slowly was not measured");
    };
    let by = by(row, effect);
    match culprit.against {
        Against::Floor => format!("{verb}s {by} it"),
        Against::Others if effect > evidence.bound / 2.0 => format!("{verb}s as they do ({by} them)"),
        Against::Others => format!("{verb}s {by} them, too little to be named"),
    }
}

/// The share of the pairs of all measured members that were measured, of those that reach each
/// other.
fn share_of_pairs(hosts: &Hosts, judged: &Judged) -> f64 {
    let members: BTreeSet<u32> = judged.cells.iter().flat_map(|cell| [cell.from, cell.to]).collect();
    let is_measured = |member: &&usize| u32::try_from(**member).is_ok_and(|member| members.contains(&member));
    let measured = hosts.of_networks().into_iter().map(|hosts| hosts.iter().filter(is_measured).count());
    let pairs: usize = measured.map(|members| members * members.saturating_sub(1)).sum();
    let pairs = pairs / if judged.directed { 1 } else { 2 };
    judged.cells.len() as f64 / pairs.max(1) as f64
}

/// The expectation was missed, and nobody is to blame.
const MISSED: &str = "the expectation is missed under load, and not in isolation";

/// What cannot be known without groups.
const FAR: &str = "a member behind more switches than the others looks slow too: if there are several, name them by \
                   group= in --hosts-file";

/// By how much an effect is below the others, in percent of their throughput or above their
/// latency.
fn by(row: &Row, effect: f64) -> String {
    let change = if row.is_rate { effect.exp_m1() } else { (-effect).exp_m1() };
    let percent = 100.0 * change.abs();
    let digits = usize::from(percent < 10.0);
    let side = if change < 0.0 { "below" } else { "above" };
    format!("{percent:.digits$} % {side}")
}
