//! Tells hardware devices from software devices.

use std::fmt;
use std::path::Path;

use crate::context::{Device, DeviceLimits};

/// What a device is made of. A measurement on software shows the host, not a network.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DeviceKind {
    /// An adapter, or a virtual one of a hypervisor.
    Hardware,
    /// A driver of the kernel on top of a network interface: Soft-RoCE (rxe) or Soft-iWARP (siw).
    KernelSoftware,
    /// A library in this process: softdev.
    UserSoftware,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hardware => "hardware",
            Self::KernelSoftware => "kernel software",
            Self::UserSoftware => "user-space software",
        })
    }
}

impl DeviceKind {
    /// Returns the kind of a device. With `limits`, which need an open device, the answer is
    /// certain.
    #[must_use]
    pub fn of(device: &Device, limits: Option<&DeviceLimits>) -> Self {
        Self::new(Path::new(device.sysfs_path()), device.name(), limits.map(|limits| limits.vendor.0))
    }

    fn new(sysfs: &Path, name: &str, vendor: Option<u32>) -> Self {
        if sysfs.as_os_str().is_empty() {
            // A device that the kernel does not know is in user space.
            return Self::UserSoftware;
        }
        let is_software = match vendor {
            Some(RXE_VENDOR | SIW_VENDOR) => true,
            // Only the driver rxe has this file (drivers/infiniband/sw/rxe/rxe_verbs.c).
            _ if sysfs.join("parent").exists() => true,
            Some(_) => false,
            None => name.starts_with("rxe") || name.starts_with("siw"),
        };
        if is_software { Self::KernelSoftware } else { Self::Hardware }
    }
}

/// `RXE_VENDOR_ID` in drivers/infiniband/sw/rxe/rxe_param.h; 0 in older kernels.
const RXE_VENDOR: u32 = 0xff_ffff;
/// `SIW_VENDOR_ID` in drivers/infiniband/sw/siw/siw.h.
const SIW_VENDOR: u32 = 0x62_6d74;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_told_from_hardware() {
        use DeviceKind::{Hardware, KernelSoftware, UserSoftware};
        let nowhere = Path::new("/sys/class/infiniband/not-here");
        assert_eq!(DeviceKind::new(Path::new(""), "softdev0", Some(0)), UserSoftware);
        for (name, vendor, kind) in [
            ("mlx5_0", Some(0x02c9), Hardware),
            ("mlx5_0", None, Hardware),
            ("rocep1s0", Some(RXE_VENDOR), KernelSoftware),
            ("siw_eth0", Some(SIW_VENDOR), KernelSoftware),
            ("rxe_0", Some(0x02c9), Hardware),
            ("rxe0", None, KernelSoftware),
        ] {
            assert_eq!(DeviceKind::new(nowhere, name, vendor), kind, "{name} {vendor:?}");
        }
        // An old rxe without a vendor ID of its own has the file, too.
        let sysfs = std::env::temp_dir().join(format!("rdmascope-kind-{}", std::process::id()));
        std::fs::create_dir_all(&sysfs).unwrap();
        std::fs::write(sysfs.join("parent"), "eth0\n").unwrap();
        assert_eq!(DeviceKind::new(&sysfs, "old", Some(0)), KernelSoftware);
        std::fs::remove_dir_all(&sysfs).unwrap();
    }
}
