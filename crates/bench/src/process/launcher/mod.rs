//! Ranks that a launcher of MPI starts: `mpirun`, `srun` or the launcher of the site.
//!
//! ```text
//! coordinator ── standard input ──► supervisor ──► mpirun ──► agent of rank 0, 1, ...
//!      ▲                                                            │
//!      └═══════════════════════ TCP, encrypted ═════════════════════┘  each dials back
//! ```
//!
//! * `kind`: the known launchers, a row each; `hosts`: the variables and files that tell Open MPI
//!   on which hosts to place ranks;
//! * [`installed`]: the launchers and libraries of this host, and which fit each other;
//! * `device`: the environment variables of ranks, including those of a device;
//! * `start`: starts a launcher and waits until all of its ranks have connected;
//! * `launched`: a running launcher; `rank_link`: the link to one of its ranks;
//! * `supervised`: a running supervisor, seen from the process that has started it;
//! * [`supervisor`]: the process between the coordinator and the launcher, which leaves nothing
//!   behind, whichever way they end; `leavings`: what there is to clean up; `slurm`: the job that
//!   srun makes; `environments`: how processes of a launch are found; `usage`: the resources that
//!   an application has used;
//! * `program`: how the program of an application is started;
//! * [`wrapped()`]: the command of a launcher that sets variables for the ranks of any program;
//! * [`dial_back`]: the agent's side, with `introduction`, the first message of a rank.
//!
//! # Invariants
//!
//! * Neither the standard input nor the output of a rank is used: launchers connect the input to
//!   one rank only, or never end it, and merge the output of all ranks.
//! * The coordinator counts the ranks that a launcher has started: each rank sends its number and
//!   the number of all ranks, and a point begins only when each number came once. Variables of the
//!   environment serve no other purpose. The numbers of MPI are compared when it is initialised.
//! * The key is never an argument. It is in the environment, which other users cannot read.
//! * A rank whose coordinator is gone ends by itself. A launcher whose coordinator is gone is ended
//!   by its supervisor, as gently as possible.

mod assigns;
pub(super) mod device;
pub mod dial_back;
mod environments;
mod hosts;
pub mod installed;
pub(crate) mod introduction;
pub(crate) mod kind;
mod launched;
mod leavings;
mod program;
pub(super) mod rank_link;
mod slurm;
pub(super) mod start;
mod supervised;
pub mod supervisor;
mod usage;
mod wrapped;

pub use environments::{TOKEN_VARIABLE, processes_with};
pub(super) use program::await_program;
pub use start::KEY_VARIABLE;
pub(crate) use supervised::Supervised;
pub(crate) use usage::Usage;
pub use wrapped::wrapped;
