//! The members of a fleet, and what they have in common.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The members of a fleet, numbered from 0: hosts, or devices of hosts (rails).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Hosts {
    /// How many there are.
    pub count: usize,
    /// What members have in common, such as a leaf switch, a rail or a chassis. A group is tested
    /// before its members; the first grouping comes first.
    pub groupings: Vec<Grouping>,
    /// The networks of the members, if there are several, such as rails: members of two networks do
    /// not reach each other. Each network is examined by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<Grouping>,
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
    pub fn apart(self, name: &str, networks: &[&str]) -> Self {
        let networks: Vec<Option<&str>> = networks.iter().copied().map(Some).collect();
        let networks = Self::new(self.count).grouped(name, &networks).groupings.pop();
        Self { networks, ..self }
    }

    /// The members of each network; of one network, all.
    pub fn of_networks(&self) -> Vec<Vec<usize>> {
        match &self.networks {
            Some(networks) => (0..networks.labels.len()).map(|network| networks.members(network)).collect(),
            None => vec![(0..self.count).collect()],
        }
    }

    /// The network of a member; `None` if it is in none, or if there is one.
    pub fn network(&self, member: usize) -> Option<usize> {
        self.networks.as_ref()?.of.get(member).copied().flatten()
    }

    /// Each network: its members, and these alone. Groups keep their numbers.
    pub fn parts(&self) -> Vec<(Vec<usize>, Self)> {
        let part = |members: Vec<usize>| {
            let hosts = self.only(&members);
            (members, hosts)
        };
        self.of_networks().into_iter().map(part).collect()
    }

    fn only(&self, members: &[usize]) -> Self {
        let part = |grouping: &Grouping| {
            let of = members.iter().map(|&member| grouping.of[member]).collect();
            Grouping { of, ..grouping.clone() }
        };
        Self { count: members.len(), groupings: self.groupings.iter().map(part).collect(), networks: None }
    }

    /// The first grouping, if it has several groups.
    pub fn several_groups(&self) -> Option<&Grouping> {
        self.groupings
            .first()
            .filter(|grouping| grouping.of.iter().flatten().collect::<BTreeSet<_>>().len() > 1)
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

    fn index(&mut self, label: &str) -> usize {
        self.labels.iter().position(|known| known == label).unwrap_or_else(|| {
            self.labels.push(label.to_owned());
            self.labels.len() - 1
        })
    }
}
