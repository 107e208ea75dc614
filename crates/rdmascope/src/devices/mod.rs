//! `rdmascope devices`: lists the devices of this host, and its MPI libraries and launchers.

mod survey;
mod sysfs;
mod table;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::backends::{missing, providers};
use crate::stdout;

pub(crate) use survey::{Device, Port, Survey, survey};

const HELP: &str = "\
Examples:
  rdmascope devices                    ports, each with its GIDs, and MPI
  rdmascope devices --verbose          with all GIDs, LIDs, limits and drivers
  rdmascope devices --json             the same for programs

The object of --json:
  devices  name, provider, transport,
           kind (hardware, kernel_software, user_space_software),
           driver, firmware, pci_address, numa_node, node_guid,
           vendor_id, vendor_part_id, max_qp, max_qp_wr, max_sge, has_atomics,
           is_default, ports, unusable (why nothing can be measured on it now),
           error (why it could not be examined)
  ports    port, link_layer (InfiniBand, Ethernet), protocol (InfiniBand, RoCE,
           iWARP), state, physical_state, link (such as 4X FDR),
           rate_gbit_per_s (as ibstat has it), active_mtu_bytes, max_mtu_bytes,
           max_message_bytes, lid, lmc, sm_lid, interface, interface_mtu_bytes,
           gids, default_gid_index, default_gid_reason
  gids     index, gid, type (IB, RoCE v1, RoCE v2), interface, reach (IPv4,
           global, link-local, loopback)
  missing  a sentence for each provider that has no device or cannot be used
  default_device, default_reason: the device measured without -d, and why
  mpi_libraries  path, abi (MPICH, Open MPI, MPI 5 standard), version, launchers
           (names of the launchers that start its ranks)
  mpi_launchers  name, aliases, path, kind (Open MPI, MPICH, Slurm), version
           (as --version prints it), libraries (paths of the libraries that fit)
Values that are unknown or do not apply are null. Names do not change; new
names may be added.";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct DevicesArguments {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
    /// Also print all GIDs, and what tickets need: LIDs, GUIDs, drivers, limits.
    #[arg(short = 'v', long, conflicts_with = "json")]
    verbose: bool,
}

/// Lists the devices of every provider, and the libraries and launchers of MPI.
pub(crate) fn list(arguments: &DevicesArguments) -> anyhow::Result<ExitCode> {
    let survey = survey(providers(), missing(), Path::new("/"));
    for sentence in &survey.missing {
        eprintln!("rdmascope: note: {sentence}");
    }
    let text = if arguments.json {
        format!("{:#}\n", serde_json::to_value(&survey)?)
    } else {
        table::text(&survey, arguments.verbose)
    };
    stdout::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
pub(crate) mod tests;
