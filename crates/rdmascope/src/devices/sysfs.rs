//! What the kernel's files say of a device and no verb does (ABI/stable/sysfs-class-infiniband).

use std::fs;
use std::path::{Path, PathBuf};

/// The file tree below a root.
#[derive(Debug)]
pub(crate) struct Sysfs(PathBuf);

/// The directory of a device; one that nothing is in where the kernel does not know the device.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Sysfs {
    pub(crate) fn new(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// The directory of a device that libibverbs has at `path`, such as `/sys/class/infiniband/mlx5_0`.
    pub(crate) fn device(&self, path: &str) -> Place {
        let below = path.trim_start_matches('/');
        let none = Path::new("/dev/null/none").to_owned();
        Place(if below.is_empty() { none } else { self.0.join(below) })
    }

    /// MTU of a network interface, in bytes.
    pub(crate) fn interface_mtu(&self, name: &str) -> Option<u32> {
        line(&self.0.join("sys/class/net").join(name).join("mtu"))?.parse().ok()
    }
}

impl Place {
    /// The module of the kernel that drives it.
    pub(crate) fn driver(&self) -> Option<String> {
        link(&self.0.join("device/driver/module")).or_else(|| link(&self.0.join("device/driver")))
    }

    /// `0000:3b:00.0`; absent where it sits on no PCI bus.
    pub(crate) fn pci_address(&self) -> Option<String> {
        let device = self.0.join("device");
        let is_pci = link(&device.join("subsystem")).is_some_and(|bus| bus == "pci");
        link(&device).filter(|_| is_pci)
    }

    /// The node whose memory and CPUs are near; absent where there is but one, which the kernel writes as -1.
    pub(crate) fn numa_node(&self) -> Option<u32> {
        line(&self.0.join("device/numa_node"))?.parse().ok()
    }

    /// The network interface of an entry of the GID table.
    pub(crate) fn gid_interface(&self, port: u8, index: u8) -> Option<String> {
        line(&self.0.join(format!("ports/{port}/gid_attrs/ndevs/{index}")))
    }

    /// The network interface of a port: of the adapter's those with its number, or what rxe sits on.
    pub(crate) fn interface(&self, port: u8) -> Option<String> {
        let directory = self.0.join("device/net");
        let mut names: Vec<_> = fs::read_dir(&directory).into_iter().flatten().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        let is_of_port = |entry: &&fs::DirEntry| {
            let number = line(&entry.path().join("dev_port")).and_then(|number| number.parse::<u8>().ok());
            // They count from 0.
            number.is_none_or(|number| number + 1 == port)
        };
        let found = names.iter().find(is_of_port).and_then(|entry| entry.file_name().into_string().ok());
        found.or_else(|| line(&self.0.join("parent")))
    }
}

/// The first line of a file, if there is something on it.
fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// The name that a link ends with.
fn link(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
