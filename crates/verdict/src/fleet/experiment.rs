//! How a suspect is measured in isolation, and what that says.

use super::examined::{Against, Way};
use super::ground::{Beside, Levels};
use super::lanes::Steps;
use super::model::Model;
use super::probe::Measured;
use super::robust::median;

/// How often a suspect host is measured with each partner, and a suspect pair in all.
const REPETITIONS_OF_HOST: usize = 3;
const MEASUREMENTS_OF_PAIR: usize = 12;

/// The share of the parts of a place that have its effect.
const SHARE_OF_PARTS: f64 = 0.7;

/// Measurements that confirm or clear one place, as parts that are alike.
pub(super) struct Experiment {
    pub(super) parts: Vec<Part>,
}

/// Measurements of one host, or of one pair.
pub(super) struct Part {
    subject: Subject,
    steps: Vec<(Role, [usize; 2])>,
}

#[derive(Clone, Debug)]
enum Subject {
    /// A host, with its partners.
    Host { host: usize, partners: Vec<Beside> },
    /// A pair, with partners for both of its hosts.
    Pair { a: usize, b: usize, partners: Vec<usize> },
}

/// What a step is for; numbers are indices of partners.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    /// The pair itself, before its hosts with a partner.
    Direct(usize),
    /// The host, or the first host of the pair, with a partner.
    First(usize),
    /// The control, or the second host of the pair, with a partner.
    Second(usize),
}

impl Part {
    /// A host with partners, and each partner with its control.
    pub(super) fn host(host: usize, partners: Vec<Beside>, repetitions: usize) -> Self {
        let mut steps = Vec::new();
        for _ in 0..repetitions {
            for (index, &Beside { partner, control }) in partners.iter().enumerate() {
                steps.push((Role::First(index), [host, partner]));
                steps.extend(control.map(|control| (Role::Second(index), [control, partner])));
            }
        }
        Self { subject: Subject::Host { host, partners }, steps }
    }

    /// A pair, and right after it both of its hosts with a partner: a host that is slow for a
    /// while is so in all three. Without partners, the pair alone.
    pub(super) fn pair([a, b]: [usize; 2], partners: &[usize], repetitions: usize) -> Self {
        let mut steps = Vec::new();
        for _ in 0..repetitions {
            for (index, &partner) in partners.iter().enumerate() {
                steps.push((Role::Direct(index), [a, b]));
                steps.push((Role::First(index), [a, partner]));
                steps.push((Role::Second(index), [b, partner]));
            }
            steps.extend(partners.is_empty().then_some((Role::Direct(0), [a, b])));
        }
        Self { subject: Subject::Pair { a, b, partners: partners.to_vec() }, steps }
    }

    /// The effect of one way against the others; `None` if it could not be measured.
    fn effect(&self, model: &Model, way: Way, given: &[Measured], levels: &Levels) -> Option<f64> {
        match &self.subject {
            Subject::Host { host, partners } => {
                let effects = partners.iter().enumerate().filter_map(|(index, beside)| {
                    let control = beside.control?;
                    let own = self.values(model, way, given, Role::First(index), *host);
                    let other = self.values(model, way, given, Role::Second(index), control);
                    let differences =
                        own.iter().zip(&other).filter_map(|(own, other)| Some((*own)? - (*other)?));
                    let apart = levels.apart(model, [*host, beside.partner], [control, beside.partner])?;
                    Some(median(differences)? - apart + model.effect(control, way))
                });
                median(effects)
            }
            Subject::Pair { a, b, partners } => {
                let is_forth = way == Way::Send;
                let [first, second] =
                    if is_forth { [Way::Send, Way::Receive] } else { [Way::Receive, Way::Send] };
                let effects = partners.iter().enumerate().flat_map(|(index, &partner)| {
                    let direct = self.values(model, first, given, Role::Direct(index), *a);
                    let firsts = self.values(model, first, given, Role::First(index), *a);
                    let seconds = self.values(model, second, given, Role::Second(index), *b);
                    // What both hosts do with this partner, without the partner's own effects.
                    let theirs = model.fit.receive[partner] + model.fit.send[partner];
                    let level = |pair| levels.of(model, pair);
                    let level = level([*a, partner])
                        .zip(level([*b, partner]))
                        .zip(level([*a, *b]))
                        .map(|((first, second), direct)| first + second - direct);
                    let triples = direct.into_iter().zip(firsts).zip(seconds);
                    triples.filter_map(move |((direct, first), second)| {
                        Some(direct? - first? - second? + theirs + level?)
                    })
                });
                median(effects)
            }
        }
    }

    /// The measured value of one way above the floor.
    fn above(&self, model: &Model, way: Way, given: &[Measured]) -> Option<f64> {
        let of = |role: Role, host: usize| {
            let values = self.steps.iter().zip(given).filter(|((own, _), _)| *own == role);
            let from = |pair: [usize; 2]| if way == Way::Send { host } else { pair[0] + pair[1] - host };
            let above = |pair, measured| model.above(pair, model.raw(pair, measured, from(pair))?);
            median(values.filter_map(|((_, pair), measured)| above(*pair, measured)))
        };
        match &self.subject {
            Subject::Host { host, partners } => {
                median((0..partners.len()).filter_map(|index| of(Role::First(index), *host)))
            }
            Subject::Pair { a, partners, .. } => {
                median((0..partners.len().max(1)).filter_map(|index| of(Role::Direct(index), *a)))
            }
        }
    }

    /// The values of a role, as `host` sends or receives.
    fn values(
        &self,
        model: &Model,
        way: Way,
        given: &[Measured],
        role: Role,
        host: usize,
    ) -> Vec<Option<f64>> {
        let steps = self.steps.iter().zip(given).filter(|((own, _), _)| *own == role);
        let from = |pair: [usize; 2]| if way == Way::Send { host } else { pair[0] + pair[1] - host };
        steps.map(|((_, pair), measured)| model.value(*pair, measured, from(*pair))).collect()
    }

    fn partners(&self) -> usize {
        match &self.subject {
            Subject::Host { partners, .. } => partners.len(),
            Subject::Pair { partners, .. } => partners.len(),
        }
    }
}

impl Experiment {
    /// One host with its partners.
    pub(super) fn host(host: usize, partners: Vec<Beside>) -> Self {
        Self { parts: vec![Part::host(host, partners, REPETITIONS_OF_HOST)] }
    }

    /// One pair with its partners.
    pub(super) fn pair(pair: [usize; 2], partners: &[usize]) -> Self {
        let repetitions = MEASUREMENTS_OF_PAIR.div_ceil(partners.len().max(1));
        Self { parts: vec![Part::pair(pair, partners, repetitions)] }
    }

    /// All measurements in order.
    pub(super) fn steps(&self) -> Steps {
        self.parts.iter().flat_map(|part| part.steps.iter().map(|(_, pair)| *pair)).collect()
    }

    /// The number of partners of a part.
    pub(super) fn partners(&self) -> usize {
        self.parts.iter().map(Part::partners).max().unwrap_or(0)
    }

    /// The effect of a way, from what the steps gave: against the others, or above the floor.
    pub(super) fn effect(
        &self,
        model: &Model,
        way: Way,
        against: Against,
        given: &[Measured],
        levels: &Levels,
    ) -> Option<f64> {
        let mut rest = given;
        let mut effects = Vec::new();
        for part in &self.parts {
            let (own, others) = rest.split_at(part.steps.len().min(rest.len()));
            rest = others;
            effects.extend(match against {
                Against::Others => part.effect(model, way, own, levels),
                Against::Floor => part.above(model, way, own),
            });
        }
        most(effects)
    }
}

/// The effect that most parts have at least: of one part, its own. A group is as slow as its
/// members are, and the mean of a slow and a healthy member is neither.
fn most(mut effects: Vec<f64>) -> Option<f64> {
    effects.sort_unstable_by(f64::total_cmp);
    let rank = (SHARE_OF_PARTS * effects.len() as f64).ceil() as usize;
    effects.get(rank.max(1) - 1).copied()
}
