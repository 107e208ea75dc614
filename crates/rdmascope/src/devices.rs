//! `rdmascope devices`: what can be measured here.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use bench::worker::{self, LocalPort, PortOptions};
use serde_json::json;

use crate::backends::{missing, providers};

/// Lists the devices of every provider.
pub(crate) fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut devices = Vec::new();
    for sentence in missing() {
        eprintln!("rdmascope: {sentence}");
    }
    for provider in providers() {
        match verbs::devices(provider) {
            Ok(found) => devices.extend(found),
            Err(error) => eprintln!("rdmascope: {}: {error}", provider.name),
        }
    }
    let described = devices.iter().map(|device| {
        let context = device.open()?;
        let port = LocalPort::find(&context, PortOptions::default())?;
        Ok(worker::describe(&context, &port, 0)?)
    });
    let described = described.collect::<anyhow::Result<Vec<_>>>()?;
    if as_json {
        let rows: Vec<_> = described
            .iter()
            .map(|device| json!({"name": device.name, "provider": device.provider, "attributes": device.attributes}))
            .collect();
        writeln!(out, "{:#}", json!(rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    const COLUMNS: [&str; 5] = ["port_state", "link_layer", "active_mtu_bytes", "gid", "firmware"];
    writeln!(
        out,
        "{:<12} {:<10} {:<12} {:>5}  {:<28} {:<8} driven by",
        "device", "state", "link layer", "MTU", "GID", "version"
    )?;
    for device in &described {
        let cells: BTreeMap<_, _> =
            COLUMNS.iter().map(|name| (*name, plain(device.attributes.get(*name)))).collect();
        writeln!(
            out,
            "{:<12} {:<10} {:<12} {:>5}  {:<28} {:<8} {}",
            device.name,
            cells["port_state"],
            cells["link_layer"],
            cells["active_mtu_bytes"],
            cells["gid"],
            cells["firmware"],
            device.provider
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn plain(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    )
}
