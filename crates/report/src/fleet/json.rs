//! What an examination found, for programs.

use measure::record::Fleet;
use serde_json::{Map, Value, json};
use verdict::fleet::{Against, Culprit, Examined, Judged, Place, Way};

use super::outcome::{Outcome, open, outcome};
use super::quantiles::SHARES;
use super::question::Question;
use super::rows::rows;
use super::tails::Tails;
use super::value::Row;
use super::words::Words;

/// Returns the verdict as one object: `verdict` (`healthy`, `culprits` or `undecided`), `members`,
/// `culprits`, `congestion`, `undecided`, `left` and `quantities`. Latencies are in ns, throughputs
/// in bytes/s, deficits in percent.
pub fn json(fleet: &Fleet, question: &Question, examined: &Examined, tails: &Tails) -> Value {
    let words = Words::new(fleet, question, examined);
    let verdict = match outcome(fleet, examined) {
        Outcome::Healthy => "healthy",
        Outcome::Culprits => "culprits",
        Outcome::Undecided => "undecided",
    };
    let left =
        fleet.left.iter().map(|(member, reason)| (words.names.member(*member as usize), json!(reason)));
    let quantities =
        examined.quantities.iter().map(|judged| (judged.name.clone(), quantity(question, judged, tails)));
    json!({
        "verdict": verdict,
        "members": fleet.members.len(),
        "culprits": examined.culprits.iter().map(|one| culprit(&words, one)).collect::<Vec<_>>(),
        "congestion": examined.congestion.iter().map(|one| words.congestion(one)).collect::<Vec<_>>(),
        "undecided": open(fleet, examined).map(|one| words.undecided(one)).collect::<Vec<_>>(),
        "left": left.collect::<Map<_, _>>(),
        "quantities": quantities.collect::<Map<_, _>>(),
    })
}

/// A culprit: what and which it is, and by how much each of its slow directions is behind.
fn culprit(words: &Words<'_>, culprit: &Culprit) -> Value {
    let row = words.row(culprit.quantity);
    let behind = |way: Way| {
        let evidence = culprit.evidence(way).filter(|_| culprit.is_slow(way))?;
        Some(percent(row, evidence.confirmed?))
    };
    let kind = match culprit.place {
        Place::Fleet => "fleet",
        Place::Network(_) => "rail",
        Place::Group { .. } => "group",
        Place::Between { .. } => "groups",
        Place::Host(_) => "member",
        Place::Pair { .. } => "pair",
    };
    json!({
        "kind": kind,
        "name": words.names.place(culprit.place, None),
        "against": against(culprit.against),
        "quantity": row.name,
        "sends_behind_percent": behind(Way::Send),
        "receives_behind_percent": behind(Way::Receive).filter(|_| row.is_directed),
        "sentence": words.culprit(culprit),
        "evidence": words.evidence(culprit),
    })
}

/// A quantity: its quantiles over the pairs, and from which deficit on something would have been
/// named.
fn quantity(question: &Question, judged: &Judged, tails: &Tails) -> Value {
    let quantiles = rows(question, judged, tails).into_iter().map(|row| {
        let values = SHARES.iter().zip(row.values);
        (
            row.name(),
            values
                .map(|((share, _), value)| ((*share).to_owned(), json!(value)))
                .collect::<Map<_, _>>()
                .into(),
        )
    });
    let named = Row::named(&judged.name).zip(judged.thresholds.as_ref()).map(|(row, thresholds)| {
        json!({
            "member_percent": percent(row, -thresholds.host),
            "pair_percent": percent(row, -thresholds.pair),
        })
    });
    json!({
        "count": judged.cells.len(),
        "quantiles": quantiles.collect::<Map<_, _>>(),
        "named_from": named,
    })
}

/// How far an effect is behind: below a throughput, or above a latency.
fn percent(row: &Row, effect: f64) -> f64 {
    100.0 * if row.is_rate { -effect.exp_m1() } else { (-effect).exp_m1() }
}

/// What a culprit is slower than, in one word.
pub(crate) fn against(against: Against) -> &'static str {
    match against {
        Against::Others => "others",
        Against::Floor => "expectation",
    }
}
