//! The limits and the baseline with which a fleet was compared, in words.

use measure::record::FleetQuantity;
use measure::text::plain;
use verdict::fleet::Against;

use super::outcome::{missed, open};
use super::words::Words;

/// Returns a line for each stated limit, with its result, and one for the baseline.
pub(crate) fn stated(words: &Words<'_>) -> Vec<String> {
    let fleet = words.names.fleet;
    let of_limit = |(index, quantity)| Some(format!("limit: {}", limit(words, index, quantity)?));
    let baseline = fleet.baseline.iter().map(|directory| format!("baseline: {}", plain(directory)));
    fleet.quantities.iter().enumerate().filter_map(of_limit).chain(baseline).collect()
}

/// The limit of a quantity, and whether it is met.
fn limit(words: &Words<'_>, index: usize, quantity: &FleetQuantity) -> Option<String> {
    let row = words.row(index);
    let of = || quantity.expected_of.iter().copied().chain(quantity.expected);
    let [least, most] = [of().reduce(f64::min)?, of().reduce(f64::max)?].map(|value| row.shown(value));
    let side = if row.is_rate { "at least" } else { "at most" };
    let bound = if least == most { least } else { format!("{least} to {most}, by their links") };
    let examined = words.examined;
    let is_of_limit = |quantity: usize, against: Against| quantity == index && against == Against::Floor;
    let has_culprit = examined.culprits.iter().any(|one| is_of_limit(one.quantity, one.against));
    let is_missed = has_culprit || missed(examined).any(|one| one.quantity == index);
    let is_open = |quantity: Option<usize>| quantity.is_none_or(|quantity| quantity == index);
    let said = match open(words.names.fleet, examined).any(|one| is_open(one.quantity)) {
        _ if is_missed => "missed",
        true => "not decided",
        false => "met",
    };
    Some(format!("{} {side} {bound}: {said}", row.name))
}
