//! A program of somebody else, started by a launcher in place of ranks of ours.

use std::collections::BTreeMap;

use super::super::launch::{Launch, NOT_BY_COMMANDS};
use super::super::template;
use super::device;
use super::kind::{self, Circumstances, Kind};
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
            spec.application =
                Some(Box::new(ApplicationSpec { started: Some(started), ..(**application).clone() }));
        }
        Ok(spec)
    }

    fn started(&self, spec: &PointSpec, application: &ApplicationSpec) -> Result<Started, Error> {
        let alone = Started {
            supervisor: self.supervisor(),
            variables: application.environment()?,
            ..Started::default()
        };
        let own = match &application.application.launcher {
            Starter::None => return Ok(alone),
            Starter::Mpi => None,
            Starter::Template(template) => Some(template.as_str()),
        };
        let launcher = self.launcher.as_ref();
        let of_run = launcher.map(|launcher| launcher.template.as_str());
        let by_commands = || Error::Impossible { reason: format!("--via {NOT_BY_COMMANDS}") };
        let template = template::words(own.or(of_run).ok_or_else(by_commands)?)?;
        let program = kind::program(&template).to_owned();
        let (kind, version) = Kind::of(&program)?;
        let world = World::of(application.ranks, &spec.axes, spec.link, spec.launch);
        if !kind.maps(world.map) {
            let reason = format!("{program} is {} and places no ranks so", kind.name);
            return Err(Error::Impossible { reason });
        }
        let device = launcher.and_then(|launcher| launcher.device.as_ref());
        let mut variables: BTreeMap<String, String> =
            device::variables(&world, device)?.into_iter().collect();
        variables.extend(alone.variables);
        let exported: Vec<&str> = variables.keys().map(String::as_str).collect();
        let here = Circumstances::here(&program).bound_by_launcher();
        let place = kind::place(&template);
        let is_elsewhere = here.behind(&template[..place]).are_elsewhere(kind, &template);
        let launcher = command(&template, kind, &world, &exported, here);
        Ok(Started { supervisor: alone.supervisor, launcher, version, variables, is_elsewhere })
    }

    /// The command that stays with a program until it ends.
    pub fn supervisor(&self) -> Vec<String> {
        let program = self.program.first().cloned().unwrap_or_default();
        vec![program, "supervise".to_owned()]
    }
}
