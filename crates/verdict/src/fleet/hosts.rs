//! The members of a fleet, and what they have in common.

use serde::{Deserialize, Serialize};

/// The members of a fleet, numbered from 0: hosts, or devices of hosts (rails).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Hosts {
    /// How many there are.
    pub count: usize,
    /// What members have in common, such as a leaf switch, a rail or a chassis. A group is tested
    /// before its members; the first grouping comes first.
    pub groupings: Vec<Grouping>,
}

/// One way to group members.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Grouping {
    /// What groups are: `group`, `rail`.
    pub name: String,
    /// The groups' names, in the order of their first member.
    pub labels: Vec<String>,
    /// The group of each member: an index in `labels`.
    pub of: Vec<Option<usize>>,
}

impl Hosts {
    /// Members without groups.
    pub fn new(count: usize) -> Self {
        Self { count, groupings: Vec::new() }
    }

    /// The same with one more grouping: the group's name of each member, `None` for none.
    pub fn grouped(mut self, name: &str, groups: &[Option<&str>]) -> Self {
        let mut grouping = Grouping { name: name.to_owned(), ..Grouping::default() };
        for member in 0..self.count {
            let label = groups.get(member).copied().flatten();
            let group = label.map(|label| grouping.index(label));
            grouping.of.push(group);
        }
        self.groupings.push(grouping);
        self
    }

    /// The first grouping, if it has several groups.
    pub fn several_groups(&self) -> Option<&Grouping> {
        self.groupings.first().filter(|grouping| grouping.labels.len() > 1)
    }

    /// The groups of a bisection: the first grouping, or else the two halves of the list.
    pub fn bisected(&self) -> Grouping {
        self.several_groups().cloned().unwrap_or_else(|| Grouping::halves(self.count))
    }
}

impl Grouping {
    /// The two halves of a list, as groups.
    fn halves(count: usize) -> Self {
        Self {
            name: "half".to_owned(),
            labels: ["first half", "second half"].map(str::to_owned).into(),
            of: (0..count).map(|host| Some(usize::from(host >= count.div_ceil(2)))).collect(),
        }
    }

    /// The members of a group.
    pub fn members(&self, group: usize) -> Vec<usize> {
        (0..self.of.len()).filter(|&member| self.of[member] == Some(group)).collect()
    }

    fn index(&mut self, label: &str) -> usize {
        self.labels.iter().position(|known| known == label).unwrap_or_else(|| {
            self.labels.push(label.to_owned());
            self.labels.len() - 1
        })
    }
}
