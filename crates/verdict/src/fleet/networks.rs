//! Members of several networks: each network is examined by itself, all of them at the same time.
//!
//! An examination runs in a thread of its own, and asks this one for what it would ask the probe.
//! Once every examination has asked, those that are behind are answered first, so that no network
//! is in isolation while another one is under load.
//!
//! # Invariants
//!
//! - What the probe is asked for is a function of its answers and not of the threads' order:
//!   nothing is answered before every examination has asked or ended.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::cells::Cell;
use super::examined::{
    Cleared, Congestion, Culprit, Effects, Examined, Judged, Measurements, Place, Thresholds, Undecided,
    Verdict, Why,
};
use super::hosts::Hosts;
use super::options::Options;
use super::probe::{AnyProbe, Measured, Probe, Purpose, Round, Stopped, TimeLeft};
use super::robust::median;
use super::schedule::Pairs;

/// One network: its members, and what is asked of them alone.
struct Network {
    members: Vec<usize>,
    hosts: Hosts,
    options: Options,
}

/// What an examination asks for.
enum Asked {
    GoesOn,
    Round(Round),
    TimeLeft,
    Visit(Vec<usize>),
}

/// What it gets.
enum Answer {
    GoesOn(bool),
    Round(Vec<Measured>),
    TimeLeft(Option<TimeLeft>),
    Visit,
}

/// What is answered before what. A visit that has begun ends before another one begins, so that all
/// networks are visited at the same time.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Turn {
    GoesOn,
    Screening,
    TimeLeft,
    Confirmation,
    Again,
    Visit,
    UnderLoad,
}

/// The probe of one examination.
struct Remote {
    asks: Sender<Asked>,
    answers: Receiver<Answer>,
}

/// An examination, as its probe sees it.
struct Line<'a> {
    members: &'a [usize],
    asks: Receiver<Asked>,
    answers: Sender<Answer>,
    /// What it waits for.
    asked: Option<Asked>,
    /// The rounds that it got.
    rounds: usize,
}

/// Examines each network ([`examine()`](super::examine())).
pub(super) fn examine(
    hosts: &Hosts,
    options: &Options,
    probe: &mut AnyProbe<'_>,
) -> Result<Examined, Stopped> {
    let networks = Network::all(hosts, options);
    let (found, rounds) = each(&networks, options, probe, |Network { hosts, options, .. }, remote| {
        super::examine::examine(hosts, options, remote)
    })?;
    let found = networks.iter().zip(found).enumerate();
    let found: Vec<Examined> = found.map(|(index, (network, found))| network.seen(index, found)).collect();
    Ok(merged(hosts.count, &networks, found, rounds))
}

/// What of each network lasts ([`lasting()`](super::lasting())).
pub(super) fn lasting(
    hosts: &Hosts,
    options: &Options,
    probe: &mut AnyProbe<'_>,
) -> Result<(Vec<Vec<Cell>>, usize), Stopped> {
    let networks = Network::all(hosts, options);
    let (found, _) = each(&networks, options, probe, |Network { hosts, options, .. }, remote| {
        super::examine::lasting(hosts, options, remote)
    })?;
    let passes = found.iter().map(|(_, passes)| *passes).min().unwrap_or(0);
    let mut cells = vec![Vec::new(); options.quantities.len()];
    for (network, (own, _)) in networks.iter().zip(found) {
        cells.iter_mut().zip(own).for_each(|(cells, own)| cells.extend(network.cells(own)));
    }
    Ok((cells, passes))
}

/// Runs an examination of each network, and answers all of them. Returns what they found, and the
/// rounds of the screening.
fn each<T: Send>(
    networks: &[Network],
    options: &Options,
    probe: &mut AnyProbe<'_>,
    examine: impl Fn(&Network, &mut Remote) -> Result<T, Stopped> + Sync,
) -> Result<(Vec<T>, usize), Stopped> {
    let most = options.schedule.most(&options.amounts).unwrap_or(usize::MAX);
    std::thread::scope(|scope| {
        let begin = |network| {
            let (asks, asked) = channel();
            let (answers, answered) = channel();
            let examine = &examine;
            let thread = scope.spawn(move || examine(network, &mut Remote { asks, answers: answered }));
            (Line { members: &network.members, asks: asked, answers, asked: None, rounds: 0 }, thread)
        };
        let (lines, threads): (Vec<Line>, Vec<_>) = networks.iter().map(begin).unzip();
        let rounds = serve(lines, most, probe);
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let rounds = rounds?;
        let found = ends.into_iter().map(|end| match end {
            Ok(Ok(found)) => found,
            Ok(Err(Stopped)) => unreachable!("an examination stops only if its probe has failed"),
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok((found.collect(), rounds))
    })
}

/// Answers all examinations until they have ended. Returns the rounds of the screening.
fn serve(mut lines: Vec<Line>, most: usize, probe: &mut AnyProbe<'_>) -> Result<usize, Stopped> {
    let mut rounds = 0;
    let networks = lines.len();
    loop {
        for line in &mut lines {
            line.asked = line.asked.take().or_else(|| line.asks.recv().ok());
        }
        lines.retain(|line| line.asked.is_some());
        // Where not all fit into a round, those come first that had the fewest.
        lines.sort_by_key(|line| line.rounds);
        let Some(turn) = lines.iter().filter_map(Line::turn).min() else { return Ok(rounds) };
        let ready = lines.iter_mut().filter(|line| line.turn() == Some(turn));
        match turn {
            Turn::GoesOn => {
                let goes_on = probe.goes_on();
                ready.for_each(|line| line.answer(Answer::GoesOn(goes_on)));
            }
            Turn::TimeLeft => {
                // Networks that do not fit into a round share its time.
                let turns = networks.div_ceil(most);
                let left = probe.time_left().map(|left| TimeLeft { rounds: left.rounds / turns, ..left });
                ready.for_each(|line| line.answer(Answer::TimeLeft(left)));
            }
            Turn::Visit => {
                let ready: Vec<&mut Line> = ready.collect();
                let hosts: Vec<usize> = ready.iter().flat_map(|line| line.hosts()).collect();
                probe.visit(&hosts)?;
                ready.into_iter().for_each(|line| line.answer(Answer::Visit));
            }
            Turn::Screening | Turn::Again | Turn::Confirmation | Turn::UnderLoad => {
                let mut asked: Vec<(&mut Line, Round)> = Vec::new();
                let mut pairs = 0;
                for line in ready {
                    let Some(round) = line.round() else { continue };
                    if asked.is_empty() || pairs + round.pairs.len() <= most {
                        pairs += round.pairs.len();
                        asked.push((line, round));
                    }
                }
                rounds += usize::from(turn == Turn::Screening);
                measure(asked, probe)?;
            }
        }
    }
}

/// Measures rounds of several networks at the same time.
fn measure(asked: Vec<(&mut Line, Round)>, probe: &mut AnyProbe<'_>) -> Result<(), Stopped> {
    let Some((_, Round { purpose, .. })) = asked.first() else { return Ok(()) };
    let pairs: Pairs = asked.iter().flat_map(|(_, round)| round.pairs.iter().copied()).collect();
    let mut measured = probe.round(&Round { purpose: *purpose, pairs })?.into_iter();
    for (line, round) in asked {
        line.rounds += 1;
        line.answer(Answer::Round(measured.by_ref().take(round.pairs.len()).collect()));
    }
    Ok(())
}

impl Line<'_> {
    fn turn(&self) -> Option<Turn> {
        Some(match self.asked.as_ref()? {
            Asked::GoesOn => Turn::GoesOn,
            Asked::TimeLeft => Turn::TimeLeft,
            Asked::Visit(_) => Turn::Visit,
            Asked::Round(round) => match round.purpose {
                Purpose::Screening { .. } => Turn::Screening,
                Purpose::Again { .. } => Turn::Again,
                Purpose::Confirmation { .. } => Turn::Confirmation,
                Purpose::UnderLoad { .. } => Turn::UnderLoad,
            },
        })
    }

    /// The round that it waits for, with the numbers of the whole fleet.
    fn round(&self) -> Option<Round> {
        let Some(Asked::Round(round)) = &self.asked else { return None };
        let pairs = round.pairs.iter().map(|pair| pair.map(|member| self.members[member]));
        Some(Round { pairs: pairs.collect(), ..*round })
    }

    /// The hosts of the visit that it waits for.
    fn hosts(&self) -> Vec<usize> {
        let Some(Asked::Visit(hosts)) = &self.asked else { return Vec::new() };
        hosts.iter().map(|&host| self.members[host]).collect()
    }

    fn answer(&mut self, answer: Answer) {
        self.asked = None;
        // An examination that has panicked waits for no answer, and is joined in the end.
        let _ = self.answers.send(answer);
    }
}

impl Remote {
    fn ask(&mut self, asked: Asked) -> Result<Answer, Stopped> {
        self.asks.send(asked).map_err(|_| Stopped)?;
        self.answers.recv().map_err(|_| Stopped)
    }
}

impl Probe for Remote {
    type Error = Stopped;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Stopped> {
        match self.ask(Asked::Round(round.clone()))? {
            Answer::Round(measured) => Ok(measured),
            _ => Err(Stopped),
        }
    }

    fn visit(&mut self, hosts: &[usize]) -> Result<(), Stopped> {
        self.ask(Asked::Visit(hosts.to_vec())).map(|_| ())
    }

    fn goes_on(&mut self) -> bool {
        matches!(self.ask(Asked::GoesOn), Ok(Answer::GoesOn(true)))
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        match self.ask(Asked::TimeLeft) {
            Ok(Answer::TimeLeft(left)) => left,
            _ => None,
        }
    }
}

impl Network {
    fn all(hosts: &Hosts, options: &Options) -> Vec<Self> {
        let parts = hosts.parts();
        let count = parts.len();
        let of = |(members, hosts): (Vec<usize>, Hosts)| Self {
            options: part(options, &members, count),
            members,
            hosts,
        };
        parts.into_iter().map(of).collect()
    }

    /// Cells with the numbers of the whole fleet.
    fn cells(&self, cells: Vec<Cell>) -> impl Iterator<Item = Cell> {
        let member = |host: u32| self.members[host as usize] as u32;
        cells.into_iter().map(move |Cell { from, to, value }| Cell {
            from: member(from),
            to: member(to),
            value,
        })
    }

    fn place(&self, index: usize, place: Place) -> Place {
        match place {
            Place::Fleet | Place::Network(_) => Place::Network(index),
            Place::Host(host) => Place::Host(self.members[host]),
            Place::Pair { a, b } => Place::Pair { a: self.members[a], b: self.members[b] },
            // A network keeps the groups of the fleet.
            Place::Group { .. } | Place::Between { .. } => place,
        }
    }

    /// What was found in this network, with the numbers of the whole fleet.
    fn seen(&self, index: usize, found: Examined) -> Examined {
        let place = |of| self.place(index, of);
        let why = |why| match why {
            Why::Explained(by) => Why::Explained(place(by)),
            other => other,
        };
        let culprit = |one: Culprit| Culprit { place: place(one.place), ..one };
        let congestion = |one: Congestion| Congestion { place: place(one.place), ..one };
        let cleared = |one: Cleared| Cleared { place: place(one.place), why: why(one.why), ..one };
        let undecided =
            |one: Undecided| Undecided { place: Some(place(one.place.unwrap_or(Place::Fleet))), ..one };
        Examined {
            culprits: found.culprits.into_iter().map(culprit).collect(),
            congestion: found.congestion.into_iter().map(congestion).collect(),
            cleared: found.cleared.into_iter().map(cleared).collect(),
            undecided: found.undecided.into_iter().map(undecided).collect(),
            ..found
        }
    }
}

/// What is asked of the members of one of several networks. All networks together have the level of
/// false alarms that was asked for.
fn part(options: &Options, members: &[usize], networks: usize) -> Options {
    let mut own = options.clone();
    own.alpha /= networks as f64;
    for quantity in &mut own.quantities {
        let of = |floor: &Vec<f64>| members.iter().filter_map(|&member| floor.get(member).copied()).collect();
        quantity.floor = quantity.floor.as_ref().map(of);
        let place = |member: u32| members.binary_search(&(member as usize)).ok().map(|place| place as u32);
        let cell = |cell: &Cell| Some(Cell { from: place(cell.from)?, to: place(cell.to)?, ..*cell });
        let of = |cells: &Vec<Cell>| cells.iter().filter_map(cell).collect::<Vec<Cell>>();
        // A network that an earlier examination did not have is examined without it.
        quantity.baseline = quantity.baseline.as_ref().map(of).filter(|cells| !cells.is_empty());
    }
    own
}

/// All networks as one result.
fn merged(count: usize, networks: &[Network], found: Vec<Examined>, rounds: usize) -> Examined {
    let verdicts: Vec<Verdict> = found.iter().map(|one| one.verdict).collect();
    let verdict = [Verdict::Culprits, Verdict::Undecided].into_iter().find(|worse| verdicts.contains(worse));
    let measured = found.iter().map(|one| one.measurements).reduce(added).unwrap_or_default();
    let quantities = found.first().map_or(0, |one| one.quantities.len());
    let judged = |index: usize| {
        let own = found.iter().map(|one| &one.quantities[index]);
        judged(count, &networks.iter().zip(own).collect::<Vec<_>>())
    };
    let quantities = (0..quantities).map(judged).collect();
    let mut all = Examined {
        verdict: verdict.unwrap_or(Verdict::Healthy),
        culprits: Vec::new(),
        congestion: Vec::new(),
        cleared: Vec::new(),
        undecided: Vec::new(),
        quantities,
        measurements: Measurements { rounds, ..measured },
    };
    for one in found {
        all.culprits.extend(one.culprits);
        all.congestion.extend(one.congestion);
        all.cleared.extend(one.cleared);
        all.undecided.extend(one.undecided);
    }
    all.culprits.sort_by(|a, b| b.deficit().total_cmp(&a.deficit()));
    all
}

fn added(a: Measurements, b: Measurements) -> Measurements {
    Measurements {
        passes: a.passes.min(b.passes),
        rounds: a.rounds.max(b.rounds),
        is_cut: a.is_cut || b.is_cut,
        screening: a.screening + b.screening,
        again: a.again + b.again,
        confirmation: a.confirmation + b.confirmation,
        under_load: a.under_load + b.under_load,
        missing: a.missing + b.missing,
    }
}

/// One quantity of all networks. The thresholds are the largest ones: they promise what every
/// network keeps.
fn judged(count: usize, networks: &[(&Network, &Judged)]) -> Judged {
    let mut cells: Vec<Cell> =
        networks.iter().flat_map(|(network, own)| network.cells(own.cells.clone())).collect();
    cells.sort_unstable_by_key(|cell| (cell.from, cell.to));
    let effects = || networks.iter().filter_map(|(network, own)| Some((*network, own.effects.as_ref()?)));
    let of = |way: fn(&Effects) -> &Vec<Option<f64>>| {
        let mut all = vec![None; count];
        for (network, effects) in effects() {
            network.members.iter().zip(way(effects)).for_each(|(&member, effect)| all[member] = *effect);
        }
        all
    };
    let effects = median(effects().map(|(_, effects)| effects.level)).map(|level| Effects {
        level,
        send: of(|effects| &effects.send),
        receive: of(|effects| &effects.receive),
    });
    let thresholds = networks.iter().filter_map(|(_, own)| own.thresholds).reduce(|a, b| Thresholds {
        host: a.host.max(b.host),
        pair: a.pair.max(b.pair),
        cell_scale: a.cell_scale.max(b.cell_scale),
        host_scale: a.host_scale.max(b.host_scale),
        cells: a.cells.min(b.cells),
    });
    let (_, first) = networks[0];
    Judged { name: first.name.clone(), directed: first.directed, cells, effects, thresholds }
}
