//! The names of members, pairs and groups.

use measure::record::Fleet;
use measure::text::plain;
use verdict::fleet::{Hosts, Place, Way};

/// The names of a fleet.
pub(crate) struct Names<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) hosts: &'a Hosts,
}

impl Names<'_> {
    /// The name of a member.
    pub(crate) fn member(&self, member: usize) -> String {
        let name = self.fleet.members.get(member).map_or("", |member| member.name.as_str());
        plain(name)
    }

    /// The name of a place. Of a pair or two groups in one direction, the sender comes first.
    pub(crate) fn place(&self, place: Place, way: Option<Way>) -> String {
        let path = |a: String, b: String| match way {
            None => format!("{a} - {b}"),
            Some(Way::Send) => format!("{a} -> {b}"),
            Some(Way::Receive) => format!("{b} -> {a}"),
        };
        match place {
            Place::Fleet => "the whole fleet".to_owned(),
            Place::Network(network) => {
                let label = self.hosts.networks.as_ref().and_then(|of| of.labels.get(network));
                plain(label.map_or("", String::as_str))
            }
            Place::Group { grouping, group } => self.group(grouping, group),
            Place::Between { grouping, a, b } => path(self.group(grouping, a), self.group(grouping, b)),
            Place::Host(member) => self.member(member),
            Place::Pair { a, b } => path(self.member(a), self.member(b)),
        }
    }

    fn group(&self, grouping: usize, group: usize) -> String {
        let label = self.hosts.groupings.get(grouping).and_then(|of| of.labels.get(group));
        plain(label.map_or("", String::as_str))
    }
}
