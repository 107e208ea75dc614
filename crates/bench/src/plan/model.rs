//! A plan before it is resolved, whether it was read or built in code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use measure::conditions::Wanted;
use measure::figure::Figure;
use measure::finding::Finding;

use super::settings::{IN_CODE, Settings};
use crate::application::Application;
use crate::point::Pattern;

/// What is to be measured and shown. Read one with [`Plan::load`] or build one with [`Plan::new`].
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name: of the run's directory and of a bundled plan.
    pub name: String,
    /// Heading of the report.
    pub title: String,
    /// A paragraph on what the run is for.
    pub about: Option<String>,
    /// What starts all of its ranks, e.g. `mpirun -np {ranks}`; absent where only those of MPI are
    /// started so.
    pub mpi: Option<String>,
    /// Seed of whatever is random in a run.
    pub seed: Option<u64>,
    /// What is measured, in order.
    pub experiments: Vec<Experiment>,
    /// What is shown, in order.
    pub figures: Vec<Figure>,
    /// What a paper found, in order.
    pub findings: Vec<Finding>,
    /// What the values of the axis `environment` stand for, beside those that are built in
    /// ([`Wanted::BUILT_IN`]).
    pub environments: BTreeMap<String, Wanted>,
    /// Programs of somebody else: what the values of the axis `application` stand for.
    pub applications: Vec<Application>,
    /// Variables of programs: what the values of the axis `mode` stand for.
    pub modes: BTreeMap<String, BTreeMap<String, String>>,
    /// Texts that placeholders of programs stand for, and `--set` changes.
    pub variables: BTreeMap<String, String>,
    /// Where the plan was read from, in words for errors.
    pub(super) origin: String,
    /// Where each figure stands, in the order of `figures`; shorter where figures were added in
    /// code.
    pub(super) figure_places: Vec<String>,
    /// Where each finding stands, as `figure_places`.
    pub(super) finding_places: Vec<String>,
    /// What the files of references are relative to.
    pub(super) base: Base,
}

/// One pattern with its settings and axes.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name in figures and records.
    pub name: String,
    /// What is done with the endpoints.
    pub pattern: Pattern,
    /// Its settings and axes.
    pub settings: Settings,
    /// What wins over them with `--quick`.
    pub quick: Settings,
    /// Where its name stands.
    pub(super) place: String,
}

impl Plan {
    /// An empty plan, to be built in code.
    pub fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            about: None,
            mpi: None,
            seed: None,
            experiments: Vec::new(),
            figures: Vec::new(),
            findings: Vec::new(),
            environments: BTreeMap::new(),
            applications: Vec::new(),
            modes: BTreeMap::new(),
            variables: BTreeMap::new(),
            origin: IN_CODE.to_owned(),
            figure_places: Vec::new(),
            finding_places: Vec::new(),
            base: Base::Directory(PathBuf::from(".")),
        }
    }

    /// Adds an experiment.
    #[must_use]
    pub fn experiment(mut self, name: impl Into<String>, pattern: Pattern, settings: Settings) -> Self {
        self.experiments.push(Experiment {
            name: name.into(),
            pattern,
            settings,
            quick: Settings::default(),
            place: self.origin.clone(),
        });
        self
    }

    /// Where a figure stands.
    pub(super) fn place_of_figure(&self, index: usize) -> &str {
        self.figure_places.get(index).map_or(IN_CODE, String::as_str)
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }
}

/// What the file of a reference is relative to.
#[derive(Clone, Debug)]
pub(super) enum Base {
    /// The plans inside the program.
    Bundled,
    /// The directory of the plan's file.
    Directory(PathBuf),
}

/// How a plan is to be run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The quick form.
    pub quick: bool,
    /// `KEY=VALUE` or `experiment.NAME.KEY=VALUE`, in the order in which they apply.
    pub set: Vec<String>,
}
