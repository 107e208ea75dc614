//! `--quick` and `--set KEY=VALUE`, which override the settings of the plan.

use serde_json::Value;

use super::keys::Key;
use super::model::{Experiment, Options, Plan};
use super::settings::Settings;
use super::text::{self, Entry};
use crate::Error;
use crate::axis::{self, AxisRow};

/// The plan's experiments with the options applied.
pub(super) fn experiments(plan: &Plan, options: &Options) -> Result<Vec<Experiment>, Error> {
    let mut experiments = plan.experiments.clone();
    if options.quick {
        for experiment in &mut experiments {
            experiment.settings.overlay(&experiment.quick);
        }
    }
    for set in &options.set {
        let over = Override::parse(set)?;
        if over.is_of_variable(plan) {
            continue;
        }
        // A key that some patterns do not have is set for the other patterns. If there are none,
        // the error says why.
        let is_for_some = experiments.iter().any(|experiment| over.is_for(experiment));
        let is_chosen = |experiment: &&mut Experiment| {
            over.chooses(&experiment.name) && (!is_for_some || over.is_for(experiment))
        };
        let mut chosen: Vec<&mut Experiment> = experiments.iter_mut().filter(is_chosen).collect();
        if chosen.is_empty() && over.experiment.is_some() {
            let known: Vec<&str> =
                plan.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
            let entry = &Entry { key: over.experiment.unwrap_or_default(), ..over.entry };
            return Err(Key { entry, table: "the experiments of the plan" }.unknown(&known));
        }
        let layer = over.layer()?;
        chosen.iter_mut().for_each(|experiment| experiment.settings.overlay(&layer));
    }
    Ok(experiments)
}

/// The plan with the options applied to its variables.
pub(super) fn variables(plan: &Plan, options: &Options) -> Plan {
    let mut plan = plan.clone();
    for set in &options.set {
        let Some((key, value)) = set.split_once('=') else { continue };
        if let Some(variable) = plan.variables.get_mut(key.trim()) {
            *variable = match text::value(value, set).to_json() {
                Value::String(text) => text,
                _ => value.trim().to_owned(),
            };
        }
    }
    plan
}

impl Settings {
    /// Sets one key from a text, as `--set KEY=VALUE` does.
    ///
    /// # Errors
    ///
    /// If the key is unknown or cannot have the value.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self, Error> {
        self.overlay(&Override::parse(&format!("{key}={value}"))?.layer()?);
        Ok(self)
    }
}

/// One `--set`.
struct Override {
    /// The experiment that it sets; all experiments if absent.
    experiment: Option<String>,
    entry: Entry,
}

impl Override {
    fn parse(text: &str) -> Result<Self, Error> {
        let place = format!("--set {text}");
        let bad = |reason: &str| Error::Plan {
            place: place.clone(),
            words: format!("{reason}: give KEY=VALUE or experiment.NAME.KEY=VALUE, e.g. iterations=100"),
        };
        let (path, value) = text.split_once('=').ok_or_else(|| bad("there is no '='"))?;
        let (experiment, key) = match path.trim().strip_prefix("experiment.") {
            Some(rest) => {
                let (name, key) =
                    rest.split_once('.').ok_or_else(|| bad("there is no key of the experiment"))?;
                (Some(name.to_owned()), key)
            }
            None => (None, path.trim()),
        };
        let key = key.strip_prefix("axes.").unwrap_or(key);
        if key.is_empty() || value.trim().is_empty() {
            return Err(bad(if key.is_empty() { "there is no key" } else { "there is no value" }));
        }
        let node = text::value(value, &place);
        Ok(Self { experiment, entry: Entry { key: key.to_owned(), place, node } })
    }

    /// Whether it sets a variable of the plan.
    fn is_of_variable(&self, plan: &Plan) -> bool {
        self.experiment.is_none() && plan.variables.contains_key(&self.entry.key)
    }

    fn chooses(&self, name: &str) -> bool {
        self.experiment.as_deref().is_none_or(|wanted| wanted == name)
    }

    /// Whether it applies to an experiment. Some patterns have only a few axes, and no number of
    /// messages. A named experiment always gets it.
    fn is_for(&self, experiment: &Experiment) -> bool {
        let key = self.entry.key.as_str();
        let only = experiment.pattern.row().only_axes;
        let is_had = |only: &[&AxisRow]| match axis::find(key) {
            Some(row) => only.iter().any(|had| had.name == row.name),
            None => !OF_MESSAGES.contains(&key),
        };
        self.experiment.is_some() || only.is_none_or(is_had)
    }

    fn layer(&self) -> Result<Settings, Error> {
        let table = match &self.experiment {
            Some(name) => format!("experiment {name:?}"),
            None => "an experiment".to_owned(),
        };
        let key = Key { entry: &self.entry, table: &table };
        let name = self.entry.key.as_str();
        let mut settings = Settings::default();
        if axis::NAMES.contains(&name) {
            settings.put_axis(key)?;
        } else if Settings::KEYS.contains(&name) {
            settings.put(key)?;
        } else {
            return Err(key.unknown(&[Settings::KEYS.as_slice(), axis::NAMES.as_slice()].concat()));
        }
        Ok(settings)
    }
}

/// Settings that bound the number of messages.
const OF_MESSAGES: [&str; 4] = ["bytes_max", "duration", "iterations", "warmup"];
