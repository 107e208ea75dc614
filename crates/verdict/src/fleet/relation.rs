//! Which suspect is part of which.

use super::claim::Claim;
use super::examined::{Place, Way};
use super::hosts::Hosts;

/// Whether a place contains another, so that it is tested first.
pub(super) fn contains(hosts: &Hosts, outer: Place, inner: Place) -> bool {
    let group_of = |grouping: usize, host: usize| hosts.groupings[grouping].of[host];
    match (outer, inner) {
        (Place::Fleet, inner) => inner != Place::Fleet,
        (Place::Group { grouping, group }, Place::Host(host)) => group_of(grouping, host) == Some(group),
        // The paths within a group do not leave it.
        (Place::Group { grouping, group }, Place::Pair { a, b }) => {
            (group_of(grouping, a) == Some(group)) != (group_of(grouping, b) == Some(group))
        }
        (Place::Group { grouping, group }, Place::Between { grouping: other, a, b }) => {
            grouping == other && (a == group || b == group)
        }
        // Of two groupings, the first one comes first if one group is part of the other.
        (Place::Group { grouping, group }, Place::Group { grouping: later, group: other }) => {
            let members = hosts.groupings[later].members(other);
            grouping < later && members.iter().all(|&host| group_of(grouping, host) == Some(group))
        }
        (Place::Between { grouping, a, b }, Place::Pair { a: first, b: second }) => {
            let groups = [group_of(grouping, first), group_of(grouping, second)];
            groups == [Some(a), Some(b)] || groups == [Some(b), Some(a)]
        }
        (Place::Host(host), Place::Pair { a, b }) => host == a || host == b,
        _ => false,
    }
}

/// Whether a named place explains a claim. A slow host explains its pairs in both ways; a group
/// explains its members only in the way in which it is slow. Of a quantity without direction, a
/// place explains all that it contains.
pub(super) fn explains(
    hosts: &Hosts,
    place: Place,
    is_directed: bool,
    is_slow: impl Fn(Way) -> bool,
    claim: &Claim,
) -> bool {
    if !contains(hosts, place, claim.place) {
        return false;
    }
    if !is_directed {
        return true;
    }
    match (place, claim.place) {
        (Place::Group { .. }, Place::Host(_) | Place::Group { .. }) => is_slow(claim.way),
        (Place::Between { grouping, a, .. }, Place::Pair { a: first, .. }) => {
            let is_same_order = hosts.groupings[grouping].of[first] == Some(a);
            is_slow(if is_same_order { claim.way } else { opposite(claim.way) })
        }
        _ => true,
    }
}

fn opposite(way: Way) -> Way {
    match way {
        Way::Send => Way::Receive,
        Way::Receive => Way::Send,
    }
}
