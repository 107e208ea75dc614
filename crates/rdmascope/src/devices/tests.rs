//! Made-up devices, as they are shown.

use bench::process::launcher::installed::{MpiLauncher, MpiLibrary};
use verbs::DeviceKind;

use super::survey::{Device, Gid, Port, Survey};
use super::table;

pub(crate) fn gid(index: u8, gid: &str, kind: &str) -> Gid {
    let gid = gid.to_owned();
    let kind = kind.to_owned();
    let interface = Some("ens1f0np0".to_owned());
    Gid { index, gid, kind, reach: "global".to_owned(), interface }
}

pub(crate) fn port() -> Port {
    Port {
        port: 1,
        link_layer: "Ethernet".to_owned(),
        protocol: Some("RoCE".to_owned()),
        state: "active".to_owned(),
        physical_state: "link up".to_owned(),
        link: "4X HDR".to_owned(),
        rate_gbit_per_s: Some(200.0),
        active_mtu_bytes: 1024,
        max_mtu_bytes: 4096,
        max_message_bytes: 1 << 30,
        lid: 0,
        lmc: 0,
        sm_lid: 0,
        interface: Some("ens1f0np0".to_owned()),
        interface_mtu_bytes: Some(1500),
        gids: vec![
            gid(0, "fe80::bace:f6ff:fe71:b3d2", "RoCE v1"),
            gid(1, "fe80::bace:f6ff:fe71:b3d2", "RoCE v2"),
            gid(2, "::ffff:192.168.100.101", "RoCE v1"),
            gid(3, "::ffff:192.168.100.101", "RoCE v2"),
        ],
        default_gid_index: Some(3),
        default_gid_reason: "RoCE v2, IPv4".to_owned(),
    }
}

pub(crate) fn device(name: &str, kind: DeviceKind) -> Device {
    Device {
        name: name.to_owned(),
        provider: "libibverbs (the system's verbs library)".to_owned(),
        kind,
        transport: "InfiniBand".to_owned(),
        driver: Some("mlx5_core".to_owned()),
        firmware: Some("28.39.1002".to_owned()),
        pci_address: Some("0000:3b:00.0".to_owned()),
        numa_node: Some(0),
        node_guid: Some("b8cef6030071b3d2".to_owned()),
        vendor_id: Some(0x02c9),
        vendor_part_id: Some(4129),
        max_qp: Some(131_072),
        max_qp_wr: Some(32_768),
        max_sge: Some(30),
        has_atomics: Some(true),
        is_default: false,
        ports: vec![port()],
        unusable: None,
        error: None,
    }
}

/// Returns the survey of these devices, with their default device.
pub(crate) fn survey(devices: Vec<Device>) -> Survey {
    let mut survey = Survey { devices, ..Survey::default() };
    let Some((index, reason)) = survey.chosen() else { return survey };
    survey.devices[index].is_default = true;
    survey.default_device = Some(survey.devices[index].name.clone());
    survey.default_reason = Some(reason.to_string());
    survey
}

#[test]
fn the_table_reads_well_at_a_hundred_columns() {
    let mut down = device("mlx5_1", DeviceKind::Hardware);
    down.ports[0].state = "down".to_owned();
    down.ports[0].physical_state = "polling".to_owned();
    down.ports[0].gids.truncate(1);
    down.ports[0].default_gid_index = Some(0);
    down.unusable = Some("port 1 of mlx5_1 is down".to_owned());
    let text = table::text(&survey(vec![device("mlx5_0", DeviceKind::Hardware), down]), false);
    let expected = "\
device  kind      port  protocol  state           link    Gb/s  MTU        LID  interface
mlx5_0  hardware     1  RoCE      active          4X HDR   200  1024/4096    -  ens1f0np0
    driver mlx5_core, firmware 28.39.1002, NUMA node 0, PCI 0000:3b:00.0
    GID   0  fe80::bace:f6ff:fe71:b3d2                RoCE v1  ens1f0np0
    GID   1  fe80::bace:f6ff:fe71:b3d2                RoCE v2  ens1f0np0
    GID   2  ::ffff:192.168.100.101                   RoCE v1  ens1f0np0
    GID   3  ::ffff:192.168.100.101                   RoCE v2  ens1f0np0  default: RoCE v2, IPv4
mlx5_1  hardware     1  RoCE      down (polling)  4X HDR   200  1024/4096    -  ens1f0np0
    driver mlx5_core, firmware 28.39.1002, NUMA node 0, PCI 0000:3b:00.0
    GID   0  fe80::bace:f6ff:fe71:b3d2                RoCE v1  ens1f0np0  default: RoCE v2, IPv4

Without -d, mlx5_0 is measured: the first hardware that can be used.
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_device_that_cannot_be_looked_at_hides_no_other() {
    let mut closed = device("mlx5_0", DeviceKind::Hardware);
    closed.ports.clear();
    closed.error = Some("open_device on mlx5_0 failed: Permission denied (errno 13)".to_owned());
    closed.unusable = closed.error.clone();
    let text = table::text(&survey(vec![closed, device("mlx5_1", DeviceKind::Hardware)]), false);
    assert!(text.contains("\nmlx5_0  hardware\n") && text.contains("\nmlx5_1  hardware     1"), "{text}");
    assert!(text.contains("\n    cannot be examined: open_device on mlx5_0 failed"), "{text}");
    assert!(text.ends_with("Without -d, mlx5_1 is measured: the first hardware that can be used.\n"));
}

#[test]
fn many_gids_are_cut_but_never_the_default() {
    let mut one = device("mlx5_0", DeviceKind::Hardware);
    one.ports[0].gids = (0..40).map(|index| gid(index, "2001:db8::1", "RoCE v2")).collect();
    one.ports[0].default_gid_index = Some(30);
    let survey = survey(vec![one]);
    let text = table::text(&survey, false);
    assert_eq!(text.matches("GID").count(), 9, "{text}");
    assert!(text.contains("GID  30") && text.contains("and 31 more, which --verbose shows"), "{text}");
    let verbose = table::text(&survey, true);
    assert_eq!(verbose.matches("    GID").count(), 40, "{verbose}");
    assert!(verbose.contains("LMC 0") && verbose.contains("PCI 0000:3b:00.0"), "{verbose}");
}

#[test]
fn a_port_without_gids_says_so() {
    let mut one = device("mlx5_0", DeviceKind::Hardware);
    one.ports[0].gids.clear();
    assert!(table::text(&survey(vec![one]), false).contains("\n    no GID\n"));
}

#[test]
fn libraries_of_mpi_are_shown_with_their_launchers() {
    let mut found = survey(vec![device("mlx5_0", DeviceKind::Hardware)]);
    let library = |path: &str, version: Option<&str>, launchers: &[&str]| MpiLibrary {
        path: path.into(),
        abi: "MPICH".to_owned(),
        version: version.map(str::to_owned),
        launchers: launchers.iter().map(|name| (*name).to_owned()).collect(),
    };
    found.mpi.libraries = vec![
        library("/usr/lib/libmpich.so.12", Some("MPICH 4.0.2"), &["mpirun.mpich", "srun"]),
        library("/opt/lib/libmpi.so.12", None, &[]),
    ];
    found.mpi.launchers = vec![MpiLauncher {
        name: "mpirun.mpich".to_owned(),
        aliases: vec!["mpiexec.hydra".to_owned()],
        path: "/usr/bin/mpiexec.hydra".into(),
        kind: "MPICH".to_owned(),
        version: Some("HYDRA build details: Version: 4.0.2".to_owned()),
        libraries: vec!["/usr/lib/libmpich.so.12".into()],
    }];
    let text = table::text(&found, false);
    let expected = "\n\nMPICH 4.0.2  /usr/lib/libmpich.so.12\n    started by mpirun.mpich, srun\n\n\
                    MPICH ABI  /opt/lib/libmpi.so.12\n    started by no launcher\n\n\
                    mpirun.mpich, mpiexec.hydra  MPICH\n    HYDRA build details: Version: 4.0.2\n";
    assert!(text.contains(expected), "{text}");
}
