//! The program as users run it: what it prints, what it keeps, how it ends.
//!
//! Tests that measure run one at a time (`Scratch::alone`), or on their own CPU if they assert no
//! times (`Scratch::on_one_cpu`), so that two CPUs are enough for all of them.

mod advise;
mod agents;
mod applications;
mod bad_input;
mod compare;
mod connection_kill;
mod contrib;
mod docs;
mod doctor;
mod environment;
mod exec;
mod expectations;
mod export;
mod failures;
mod fan_out;
mod fleet;
mod fuzz;
mod hands;
mod help;
mod import;
mod init;
mod joint;
mod json;
mod kernel_device;
mod kernel_fleet;
mod kernel_memory;
mod kernel_network;
mod kill;
mod launch_kill;
mod launcher;
mod managed;
mod model;
mod mpi;
mod mpi_names;
mod mpi_one_sided;
mod namespaces;
mod one_way;
mod open_loop;
mod operations;
mod overhead;
mod pairs;
mod pipeline;
mod placing;
mod prtt;
mod report;
mod resume;
mod run;
mod slurm;
mod sockets;
mod strangers;
mod support;
mod transfer;
mod two_machines;
