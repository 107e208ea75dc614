//! Facts about a device that the kernel's files have and verbs do not
//! (ABI/stable/sysfs-class-infiniband).

use std::fs;
use std::path::Path;

use measure::environment::Root;

/// The file tree below a root.
#[derive(Debug)]
pub(crate) struct Sysfs(Root);

/// The directory of a device; it has no entries if the kernel does not know the device.
#[derive(Debug)]
pub(crate) struct Place(Root);

impl Sysfs {
    pub(crate) fn new(root: &Path) -> Self {
        Self(Root::new(root))
    }

    /// Returns the directory of a device that libibverbs has at `path`, such as
    /// `/sys/class/infiniband/mlx5_0`.
    pub(crate) fn device(&self, path: &str) -> Place {
        let nowhere = || Path::new("/dev/null/none").to_owned();
        let place = if path.is_empty() { nowhere() } else { self.0.path(path) };
        Place(Root::new(&place))
    }

    /// Returns the MTU of a network interface, in bytes.
    pub(crate) fn interface_mtu(&self, name: &str) -> Option<u32> {
        self.0.line(&format!("sys/class/net/{name}/mtu"))?.parse().ok()
    }
}

impl Place {
    /// Returns the kernel module that drives the device.
    pub(crate) fn driver(&self) -> Option<String> {
        self.link("device/driver/module").or_else(|| self.link("device/driver"))
    }

    /// Returns the PCI address, such as `0000:3b:00.0`; none if the device is not on a PCI bus.
    pub(crate) fn pci_address(&self) -> Option<String> {
        let is_pci = self.link("device/subsystem").is_some_and(|bus| bus == "pci");
        self.link("device").filter(|_| is_pci)
    }

    /// Returns the NUMA node of the device; none if the host has one node, for which the kernel
    /// writes -1.
    pub(crate) fn numa_node(&self) -> Option<u32> {
        self.0.line("device/numa_node")?.parse().ok()
    }

    /// Returns the network interface of an entry of the GID table.
    pub(crate) fn gid_interface(&self, port: u8, index: u8) -> Option<String> {
        self.0.line(&format!("ports/{port}/gid_attrs/ndevs/{index}"))
    }

    /// Returns the network interface of a port: the adapter's interface with the port's number, or
    /// the interface below rxe.
    pub(crate) fn interface(&self, port: u8) -> Option<String> {
        let is_of_port = |name: &String| {
            let number = self.0.line(&format!("device/net/{name}/dev_port"));
            // `dev_port` counts from 0.
            number.and_then(|number| number.parse::<u8>().ok()).is_none_or(|number| number + 1 == port)
        };
        let found = self.0.names("device/net").into_iter().find(is_of_port);
        found.or_else(|| self.0.line("parent"))
    }

    /// Returns the last name in the path to which a link leads.
    fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.0.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_adapter_is_described() {
        let root = tempfile::tempdir().unwrap();
        let adapter = root.path().join("sys/devices/pci0000:3a/0000:3b:00.1");
        let device = root.path().join("sys/class/infiniband/mlx5_0");
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(adapter.join("numa_node"), "1\n");
        write(adapter.join("net/ib0/dev_port"), "0\n");
        write(adapter.join("net/ib1/dev_port"), "1\n");
        write(device.join("ports/2/gid_attrs/ndevs/3"), "vlan7\n");
        write(root.path().join("sys/class/net/ib1/mtu"), "4092\n");
        symlink(&adapter, device.join("device")).unwrap();
        symlink("/sys/bus/pci/drivers/mlx5_core", adapter.join("driver")).unwrap();
        symlink("/sys/bus/pci", adapter.join("subsystem")).unwrap();

        let sysfs = Sysfs::new(root.path());
        let place = sysfs.device("/sys/class/infiniband/mlx5_0");
        assert_eq!(place.driver().as_deref(), Some("mlx5_core"));
        assert_eq!(place.pci_address().as_deref(), Some("0000:3b:00.1"));
        assert_eq!(place.numa_node(), Some(1));
        assert_eq!(place.interface(2).as_deref(), Some("ib1"));
        assert_eq!(place.gid_interface(2, 3).as_deref(), Some("vlan7"));
        assert_eq!(place.gid_interface(2, 4), None);
        assert_eq!(sysfs.interface_mtu("ib1"), Some(4092));
    }

    #[test]
    fn software_sits_on_an_interface_and_on_no_bus() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/class/infiniband/rxe0");
        fs::create_dir_all(device.join("device")).unwrap();
        fs::write(device.join("parent"), "eth0\n").unwrap();
        fs::write(device.join("device/numa_node"), "-1\n").unwrap();
        let place = Sysfs::new(root.path()).device("/sys/class/infiniband/rxe0");
        assert_eq!(place.interface(1).as_deref(), Some("eth0"));
        assert_eq!((place.driver(), place.pci_address(), place.numa_node()), (None, None, None));
        // A device that the kernel does not know has nothing, whatever is at the root.
        let nowhere = Sysfs::new(root.path()).device("");
        assert_eq!((nowhere.interface(1), nowhere.numa_node()), (None, None));
    }
}
