//! Ranks that a launcher of MPI starts: `mpirun`, `srun`, or whatever the site has.
//!
//! ```text
//! coordinator ── standard input ──► supervisor ──► mpirun ──► agent of rank 0, 1, ...
//!      ▲                                                            │
//!      └═══════════════════════ TCP, encrypted ═════════════════════┘  each dials back
//! ```
//!
//! * `kind`: the launchers that are known, a row each; `hosts`: where Open MPI is told beside its
//!   command on which hosts ranks go;
//! * [`installed`]: the launchers and libraries of this host, and which fit each other;
//! * `device`: the variables that ranks are started with, those of a device among them;
//! * `start`: starts a launcher and waits until all of its ranks have connected;
//! * `launched`: a launcher that runs; `rank_link`: the way to one of its ranks;
//! * `supervised`: a supervisor, as whoever has started it sees it;
//! * [`supervisor`]: the process between the coordinator and the launcher, which leaves nothing
//!   behind, however either ends; `leavings`: what there is to clear up; `slurm`: the job that srun
//!   makes; `environments`: how processes of a launch are found; `usage`: what a program of
//!   somebody else has taken;
//! * `program`: how such a program is started in place of ranks;
//! * [`wrapped()`]: a launcher that somebody else's ranks are started with;
//! * [`dial_back`]: the agent's side, with `introduction`, what it says of itself first.
//!
//! # Invariants
//!
//! * Neither the standard input nor the output of a rank is used: launchers give input to one rank
//!   alone, or never end it, and merge the output of all.
//! * What a launcher started is found out by counting: each rank says its number and how many there
//!   are, and a point begins only when each number came once. Variables of the environment are
//!   believed no further than that; what MPI itself says is compared when it is initialised.
//! * The key is never an argument. It stands in the environment, which other users cannot read.
//! * A rank whose coordinator is gone ends by itself; a launcher whose coordinator is gone is ended
//!   by its supervisor, as gently as it takes.

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
