//! The program of an application, which a launcher starts in the place of rdmascope's ranks.

use super::super::key::Key;
use super::super::launch::{Launch, NOT_BY_COMMANDS, Points};
use super::kind::{self, Circumstances};
use super::leavings::await_end;
use super::start::Chosen;
use crate::Error;
use crate::application::{ApplicationSpec, Started, Starter};
use crate::point::{PointSpec, World};

impl Launch {
    /// Returns the point with the words that start its program, where it has one.
    ///
    /// # Errors
    /// If no launcher can start the program.
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
        let name = &application.application.name;
        let how = application.application.how_to_install();
        let world = World::of(application.ranks, &spec.axes, spec.link, spec.launch);
        let device = self.launcher.as_ref().and_then(|launcher| launcher.device.as_ref());
        let chosen = Chosen::new(template, &world, device).map_err(|error| match error {
            Error::NoLauncher { launcher, cause } => Error::Impossible {
                reason: format!("{launcher:?}, the launcher of {name}, cannot be started: {cause}{how}"),
            },
            other => other,
        })?;
        let own = application.variables();
        if let Some((both, _)) = chosen.variables.iter().find(|(name, _)| own.contains_key(name.as_str())) {
            let reason = format!(
                "the plan sets {both} for {name}, and mpi_transport sets it, too: leave one of the two out"
            );
            return Err(Error::Impossible { reason });
        }
        let here = Circumstances::here(&chosen.program).bound_by_launcher();
        let place = kind::place(&chosen.template);
        let is_elsewhere =
            here.behind(&chosen.template[..place]).are_elsewhere(chosen.kind, &chosen.template);
        let launcher = chosen.command(&world, &own.into_keys().collect::<Vec<_>>(), here);
        let Chosen { kind, version, variables, .. } = chosen;
        let variables = variables.into_iter().collect();
        let is_counted = kind.forks && !is_elsewhere;
        Ok(Started { launcher, version, variables, is_elsewhere, is_counted, ..alone })
    }

    /// Returns the template of the launcher of a program; none where it has no launcher. A launcher
    /// that the user names replaces that of the plan.
    fn template<'a>(&'a self, application: &'a ApplicationSpec) -> Result<Option<&'a str>, Error> {
        let of_run = self.launcher.as_ref();
        let named = of_run.filter(|launcher| launcher.points == Points::All);
        let template = match (&application.application.launcher, named) {
            (Starter::None, _) => return Ok(None),
            // The host that it would run on, and the software there, are unknown here.
            _ if self.via.is_some() => {
                return Err(Error::Impossible { reason: format!("--via {NOT_BY_COMMANDS}") });
            }
            (Starter::Template(own), None) => own,
            (_, Some(launcher)) => &launcher.template,
            (Starter::Mpi, None) => {
                let nothing = || Error::Impossible { reason: "this run has no launcher of MPI".to_owned() };
                &of_run.ok_or_else(nothing)?.template
            }
        };
        if !template.contains("{ranks}") {
            let reason = format!(
                "the launcher {template:?} always starts the same number of ranks: write {{ranks}} in place of the number"
            );
            return Err(Error::Impossible { reason });
        }
        Ok(Some(template))
    }

    /// Returns the command that supervises a program until it ends.
    pub fn supervisor(&self) -> Vec<String> {
        let program = self.program.first().cloned().unwrap_or_default();
        vec![program, "supervise".to_owned()]
    }
}

/// Waits until the program of a lost agent has ended: its supervisor ends it.
pub(in super::super) fn await_program(spec: &PointSpec) {
    let started = spec.application.as_ref().and_then(|application| application.started.as_ref());
    if let Some(started) = started {
        await_end(&started.token);
    }
}
