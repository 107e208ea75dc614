//! A program of somebody else, started by a launcher in place of ranks of ours.

use std::collections::BTreeMap;

use super::super::key::Key;
use super::super::launch::{Launch, NOT_BY_COMMANDS, Points};
use super::super::template;
use super::device;
use super::kind::{self, Circumstances, Kind};
use super::leavings::await_end;
use super::start::command;
use crate::Error;
use crate::application::{ApplicationSpec, Started, Starter};
use crate::point::{PointSpec, World};

impl Launch {
    /// The point with the words that start its program, where it has one.
    ///
    /// # Errors
    /// Why nothing starts it.
    pub(in super::super) fn with_program(&self, spec: &PointSpec) -> Result<PointSpec, Error> {
        let mut spec = spec.clone();
        if let Some(application) = &spec.application {
            let started = self.started(&spec, application)?;
            let application = ApplicationSpec { started: Some(started), ..(**application).clone() };
            spec.application = Some(Box::new(application));
        }
        Ok(spec)
    }

    fn started(&self, spec: &PointSpec, application: &ApplicationSpec) -> Result<Started, Error> {
        let alone = Started {
            supervisor: self.supervisor(),
            token: Key::generate()?.to_string(),
            is_counted: true,
            ..Started::default()
        };
        let Some(template) = self.template(application)? else { return Ok(alone) };
        let program = kind::program(&template).to_owned();
        let how = application.application.how_to_install();
        let (kind, version) = Kind::of(&program).map_err(|error| match error {
            Error::NoLauncher { launcher, cause } => {
                let name = &application.application.name;
                Error::Impossible {
                    reason: format!("{launcher:?}, the launcher of {name}, cannot be started: {cause}{how}"),
                }
            }
            other => other,
        })?;
        let world = World::of(application.ranks, &spec.axes, spec.link, spec.launch);
        if !kind.maps(world.map) {
            let reason = format!("{program} is {} and places no ranks so", kind.name);
            return Err(Error::Impossible { reason });
        }
        let device = self.launcher.as_ref().and_then(|launcher| launcher.device.as_ref());
        let variables: BTreeMap<String, String> = device::variables(&world, device)?.into_iter().collect();
        let own = application.variables();
        if let Some(both) = own.keys().find(|name| variables.contains_key(**name)) {
            let name = &application.application.name;
            let reason = format!(
                "{name} is given {both} by its plan, which mpi_transport sets too: leave one of the two out"
            );
            return Err(Error::Impossible { reason });
        }
        let exported: Vec<&str> = variables.keys().map(String::as_str).chain(own.into_keys()).collect();
        let here = Circumstances::here(&program).bound_by_launcher();
        let place = kind::place(&template);
        let is_elsewhere = here.behind(&template[..place]).are_elsewhere(kind, &template);
        let launcher = command(&template, kind, &world, &exported, here);
        let is_counted = kind.forks && !is_elsewhere;
        Ok(Started { launcher, version, variables, is_elsewhere, is_counted, ..alone })
    }

    /// The words of what starts the ranks of a program; none where nothing does. What the user
    /// names goes before what the plan does.
    fn template(&self, application: &ApplicationSpec) -> Result<Option<Vec<String>>, Error> {
        let of_run = self.launcher.as_ref();
        let named = of_run.filter(|launcher| launcher.points == Points::All);
        let template = match (&application.application.launcher, named) {
            (Starter::None, _) => return Ok(None),
            // Which host it would run on, and what that has, is not known here.
            _ if self.via.is_some() => {
                return Err(Error::Impossible { reason: format!("--via {NOT_BY_COMMANDS}") });
            }
            (Starter::Template(own), None) => own,
            (_, Some(launcher)) => &launcher.template,
            (Starter::Mpi, None) => {
                let nothing = || Error::Impossible { reason: "nothing starts ranks of MPI here".to_owned() };
                &of_run.ok_or_else(nothing)?.template
            }
        };
        if !template.contains("{ranks}") {
            let reason = format!(
                "the launcher {template:?} starts as many ranks as it says, whatever the point asks for: write {{ranks}} \
                 in the place of their number"
            );
            return Err(Error::Impossible { reason });
        }
        template::words(template).map(Some)
    }

    /// The command that stays with a program until it ends.
    pub fn supervisor(&self) -> Vec<String> {
        let program = self.program.first().cloned().unwrap_or_default();
        vec![program, "supervise".to_owned()]
    }
}

/// Waits until a program has ended whose agent is gone: its supervisor ends it.
pub(in super::super) fn await_program(spec: &PointSpec) {
    let started = spec.application.as_ref().and_then(|application| application.started.as_ref());
    if let Some(started) = started {
        await_end(&started.token);
    }
}
