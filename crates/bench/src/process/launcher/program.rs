//! A program of somebody else, started by a launcher in place of ranks of ours.

use super::super::key::Key;
use super::super::launch::{Launch, NOT_BY_COMMANDS, Points};
use super::kind::{self, Circumstances};
use super::leavings::await_end;
use super::start::Chosen;
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
                "{name} is given {both} by its plan, which mpi_transport sets too: leave one of the two out"
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

    /// The template of what starts the ranks of a program; none where nothing does. What the user
    /// names goes before what the plan does.
    fn template<'a>(&'a self, application: &'a ApplicationSpec) -> Result<Option<&'a str>, Error> {
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
        Ok(Some(template))
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
