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
    /// The network of each member, from 0; empty if all are in one. Members of two networks do not
    /// reach each other, and are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<usize>,
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
        Self { count, ..Self::default() }
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

    /// The same in several networks: the name of that of each member.
    pub fn apart(mut self, networks: &[&str]) -> Self {
        let mut known = Grouping::default();
        self.networks = networks.iter().map(|name| known.index(name)).collect();
        self
    }

    /// The network of a member.
    pub fn network(&self, member: usize) -> usize {
        self.networks.get(member).copied().unwrap_or(0)
    }

    /// The members of each network.
    pub fn of_networks(&self) -> Vec<Vec<usize>> {
        let count = self.networks.iter().max().map_or(1, |last| last + 1);
        let mut members = vec![Vec::new(); count];
        (0..self.count).for_each(|member| members[self.network(member)].push(member));
        members
    }

    /// Some members alone, in one network.
    pub(super) fn only(&self, members: &[usize]) -> Self {
        self.groupings.iter().fold(Self::new(members.len()), |hosts, grouping| {
            let labels: Vec<Option<&str>> = members.iter().map(|&member| grouping.label(member)).collect();
            hosts.grouped(&grouping.name, &labels)
        })
    }

    /// The first grouping, if it has several groups.
    pub fn several_groups(&self) -> Option<&Grouping> {
        self.groupings.first().filter(|grouping| grouping.labels.len() > 1)
    }

    /// The groups of a bisection: the first grouping, or else the two halves of the list, in each
    /// network.
    pub fn bisected(&self) -> Grouping {
        self.several_groups().cloned().unwrap_or_else(|| self.halves())
    }

    /// The two halves of the list, as groups.
    fn halves(&self) -> Grouping {
        let mut of = vec![None; self.count];
        for members in self.of_networks() {
            let first = members.len().div_ceil(2);
            members
                .iter()
                .zip(0..)
                .for_each(|(&member, index)| of[member] = Some(usize::from(index >= first)));
        }
        let labels = ["first half", "second half"].map(str::to_owned).into();
        Grouping { name: "half".to_owned(), labels, of }
    }
}

impl Grouping {
    /// The members of a group.
    pub fn members(&self, group: usize) -> Vec<usize> {
        (0..self.of.len()).filter(|&member| self.of[member] == Some(group)).collect()
    }

    fn label(&self, member: usize) -> Option<&str> {
        self.of[member].map(|group| self.labels[group].as_str())
    }

    fn index(&mut self, label: &str) -> usize {
        self.labels.iter().position(|known| known == label).unwrap_or_else(|| {
            self.labels.push(label.to_owned());
            self.labels.len() - 1
        })
    }
}
