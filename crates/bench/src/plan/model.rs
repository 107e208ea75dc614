//! A plan before it is resolved, read from a text or built in code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use measure::conditions::Wanted;
use measure::expectation::Expectation;
use measure::figure::Figure;
use measure::finding::Finding;

use super::settings::{IN_CODE, Settings};
use crate::Error;
use crate::application::Application;
use crate::point::Pattern;

/// What to measure and what to show. Read a plan with [`Plan::load`] or build one with
/// [`Plan::new`].
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short name, for the directory of a run and for a bundled plan.
    pub name: String,
    /// Heading of the report.
    pub title: String,
    /// A paragraph on what the run is for.
    pub about: Option<String>,
    /// The command that starts all ranks, e.g. `mpirun -np {ranks}`; absent if a launcher starts
    /// only the ranks of MPI.
    pub mpi: Option<String>,
    /// A number that the record keeps; it changes nothing.
    pub seed: Option<u64>,
    /// What is measured, in order.
    pub experiments: Vec<Experiment>,
    /// What is shown, in order.
    pub figures: Vec<Figure>,
    /// Published claims, in order.
    pub findings: Vec<Finding>,
    /// Bounds on numbers of the run, in order.
    pub expectations: Vec<Expectation>,
    /// The values of the axis `environment`, besides the built-in ones ([`Wanted::BUILT_IN`]).
    pub environments: BTreeMap<String, Wanted>,
    /// The values of the axis `application`.
    pub applications: Vec<Application>,
    /// The values of the axis `mode`: environment variables of applications.
    pub modes: BTreeMap<String, BTreeMap<String, String>>,
    /// Texts for placeholders of applications, by name. `--set` changes them.
    pub variables: BTreeMap<String, String>,
    /// Where the plan was read from, for errors.
    pub(super) origin: String,
    /// The places of the figures, in the order of `figures`. Figures added in code have none.
    pub(super) figure_places: Vec<String>,
    /// The places of the findings, as `figure_places`.
    pub(super) finding_places: Vec<String>,
    /// The places of the expectations, as `figure_places`.
    pub(super) expectation_places: Vec<String>,
    /// The base of relative paths of references.
    pub(super) base: Base,
}

/// One pattern with its settings and axes.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name in figures and records.
    pub name: String,
    /// How the ranks exchange messages.
    pub pattern: Pattern,
    /// Its settings and axes.
    pub settings: Settings,
    /// The settings and axes that override them with `--quick`.
    pub quick: Settings,
    /// The place of its name.
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
            expectations: Vec::new(),
            environments: BTreeMap::new(),
            applications: Vec::new(),
            modes: BTreeMap::new(),
            variables: BTreeMap::new(),
            origin: IN_CODE.to_owned(),
            figure_places: Vec::new(),
            finding_places: Vec::new(),
            expectation_places: Vec::new(),
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

    /// The place of a figure.
    pub(super) fn place_of_figure(&self, index: usize) -> &str {
        self.figure_places.get(index).map_or(IN_CODE, String::as_str)
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }

    /// Adds an expectation as people type it, such as `p99 <= 5us`.
    ///
    /// # Errors
    ///
    /// If the text is no quantity with a bound.
    pub fn expect(mut self, text: &str) -> Result<Self, Error> {
        let place = format!("--expect {text:?}");
        let read = Expectation::parse(text);
        self.expectations.push(read.map_err(|words| Error::Plan { place: place.clone(), words })?);
        self.expectation_places.push(place);
        Ok(self)
    }
}

/// The base of the relative path of a reference.
#[derive(Clone, Debug)]
pub(super) enum Base {
    /// The plans inside the program.
    Bundled,
    /// The directory of the plan's file.
    Directory(PathBuf),
}

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to run the quick form.
    pub quick: bool,
    /// `KEY=VALUE` or `experiment.NAME.KEY=VALUE`, in the order in which they apply.
    pub set: Vec<String>,
}
