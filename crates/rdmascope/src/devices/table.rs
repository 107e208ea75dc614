//! The devices as text: a line for each port, its GIDs below it.

use std::fmt::Write;

use bench::process::launcher::installed::InstalledMpi;
use verbs::DeviceKind;

use super::survey::{Device, Port, Survey};

/// GIDs of a port that are shown without `--verbose`, besides the default one. Ports with many
/// VLANs have a hundred.
const GIDS_SHOWN: usize = 8;

/// Headings of the columns, each of which is as wide as its longest cell.
const HEADINGS: [&str; 10] =
    ["device", "kind", "port", "protocol", "state", "link", "Gb/s", "MTU", "LID", "interface"];
/// Columns of numbers, which are aligned on the right.
const RIGHT: [usize; 3] = [2, 6, 8];
const INDENT: usize = 4;

/// Returns the table, and below it the device that is measured by default.
pub(super) fn text(survey: &Survey, is_verbose: bool) -> String {
    let rows: Vec<_> = survey.devices.iter().flat_map(|device| rows(device, is_verbose)).collect();
    let cells = || rows.iter().filter_map(|row| if let Row::Port(cells) = row { Some(cells) } else { None });
    let width = |column: usize| {
        let longest = cells().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        longest.max(HEADINGS[column].chars().count())
    };
    let widths: Vec<_> = (0..HEADINGS.len()).map(width).collect();
    let mut out = String::new();
    if cells().next().is_some() {
        out += &line(&HEADINGS.map(str::to_owned), &widths);
    }
    for row in &rows {
        match row {
            Row::Port(cells) => out += &line(cells, &widths),
            Row::Note(text) => writeln!(out, "{:INDENT$}{text}", "").unwrap_or_default(),
            Row::Text(text) => writeln!(out, "{text}").unwrap_or_default(),
        }
    }
    if let (Some(device), Some(reason)) = (&survey.default_device, &survey.default_reason) {
        let _ = writeln!(out, "\nWithout -d, {device} is measured: {reason}.");
    }
    out + &mpi(&survey.mpi)
}

/// Returns the MPI libraries with the launchers that fit each, and the versions of the launchers.
fn mpi(mpi: &InstalledMpi) -> String {
    let mut out = String::new();
    for library in &mpi.libraries {
        let version = library.version.clone().unwrap_or_else(|| format!("{} ABI", library.abi));
        let launchers = match &library.launchers[..] {
            [] => "no launcher".to_owned(),
            names => names.join(", "),
        };
        let _ =
            write!(out, "\n{version}  {}\n{:INDENT$}started by {launchers}\n", library.path.display(), "");
    }
    for launcher in &mpi.launchers {
        let names: Vec<&str> =
            [&launcher.name].into_iter().chain(&launcher.aliases).map(String::as_str).collect();
        let version = launcher.version.as_deref().unwrap_or("unknown version");
        let _ = write!(out, "\n{}  {}\n{:INDENT$}{version}\n", names.join(", "), launcher.kind, "");
    }
    out
}

enum Row {
    Port(Vec<String>),
    /// A line that belongs to the line above.
    Note(String),
    /// A device without ports.
    Text(String),
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let width = *width;
        let cell =
            if RIGHT.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
        line += &cell;
        line += "  ";
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

fn rows(device: &Device, is_verbose: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if device.ports.is_empty() {
        rows.push(Row::Text(format!("{}  {}", device.name, kind(device))));
        rows.push(Row::Note(origin(device)));
    }
    for (place, port) in device.ports.iter().enumerate() {
        rows.push(Row::Port(cells(device, port)));
        if place == 0 {
            rows.push(Row::Note(origin(device)));
            rows.extend(is_verbose.then(|| Row::Note(limits(device))));
        }
        rows.extend(is_verbose.then(|| Row::Note(details(port))));
        rows.extend(gids(port, is_verbose).into_iter().map(Row::Note));
    }
    rows.extend(device.error.iter().map(|error| Row::Note(format!("cannot be examined: {error}"))));
    rows
}

fn cells(device: &Device, port: &Port) -> Vec<String> {
    let state = match (port.is_active(), port.physical_state.as_str()) {
        (true, "link up") => port.state.clone(),
        (_, physical) => format!("{} ({physical})", port.state),
    };
    vec![
        device.name.clone(),
        kind(device).to_owned(),
        port.port.to_string(),
        port.protocol.clone().unwrap_or_else(|| port.link_layer.clone()),
        state,
        port.link.clone(),
        port.rate_gbit_per_s.map_or("-".to_owned(), |rate| rate.to_string()),
        if port.active_mtu_bytes == port.max_mtu_bytes {
            port.active_mtu_bytes.to_string()
        } else {
            format!("{}/{}", port.active_mtu_bytes, port.max_mtu_bytes)
        },
        if port.lid == 0 { "-".to_owned() } else { port.lid.to_string() },
        port.interface.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn kind(device: &Device) -> &'static str {
    match device.kind {
        DeviceKind::Hardware => "hardware",
        DeviceKind::KernelSoftware | DeviceKind::UserSoftware => "software",
    }
}

/// Returns the LIDs of a port, the state of its link, and its limits.
fn details(port: &Port) -> String {
    let Port { link_layer, lid, lmc, sm_lid, physical_state, max_message_bytes, .. } = port;
    let interface = port.interface_mtu_bytes.map(|mtu| format!(", interface MTU {mtu}"));
    format!(
        "{link_layer}, {physical_state}, LID {lid}, LMC {lmc}, SM LID {sm_lid}, messages to {max_message_bytes} B{}",
        interface.unwrap_or_default()
    )
}

/// Returns the driver of a device, its version and its place in the host.
fn origin(device: &Device) -> String {
    let driver = device.driver.as_deref();
    let facts = [
        driver.map_or_else(|| Some(device.provider.clone()), |driver| Some(format!("driver {driver}"))),
        device.firmware.as_ref().map(|version| match device.kind {
            DeviceKind::Hardware => format!("firmware {version}"),
            _ => format!("version {version}"),
        }),
        device.numa_node.map(|node| format!("NUMA node {node}")),
        device.pci_address.as_ref().map(|address| format!("PCI {address}")),
    ];
    join(facts)
}

/// Returns the identifiers of a device and its limits.
fn limits(device: &Device) -> String {
    let vendor = device.vendor_id.zip(device.vendor_part_id);
    let facts = [
        device.node_guid.as_ref().map(|guid| format!("GUID {guid}")),
        vendor.map(|(vendor, part)| format!("vendor {vendor:#06x} part {part}")),
        device.max_qp.map(|max| format!("{max} QPs")),
        device.max_qp_wr.map(|max| format!("{max} requests")),
        device.max_sge.map(|max| format!("{max} elements")),
        device.has_atomics.map(|has| if has { "atomics" } else { "no atomics" }.to_owned()),
    ];
    join(facts)
}

fn join(facts: impl IntoIterator<Item = Option<String>>) -> String {
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn gids(port: &Port, is_verbose: bool) -> Vec<String> {
    let is_default = |index: u8| port.default_gid_index == Some(index);
    let is_shown = |place: usize, index: u8| is_verbose || place < GIDS_SHOWN || is_default(index);
    let mut lines = Vec::new();
    for (place, gid) in port.gids.iter().enumerate() {
        if !is_shown(place, gid.index) {
            continue;
        }
        let interface = gid.interface.as_deref().unwrap_or("-");
        let mut line = format!("GID {:>3}  {:<39}  {:<7}  {interface}", gid.index, gid.gid, gid.kind);
        if is_default(gid.index) {
            line += &format!("  default: {}", port.default_gid_reason);
        }
        lines.push(line);
    }
    let left_out = port.gids.len() - lines.len();
    if left_out > 0 {
        lines.push(format!("and {left_out} more, which --verbose shows"));
    }
    if lines.is_empty() {
        lines.push("no GID".to_owned());
    }
    lines
}
