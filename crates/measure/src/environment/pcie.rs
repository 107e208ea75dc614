//! The sizes that the PCI Express link of a device carries: the largest payload of a packet and the
//! largest read request, from the device's configuration space (PCI Express Base Specification 4.0,
//! sections 7.5.1 and 7.5.3).

/// The sizes that the operating system allows a function to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DeviceControl {
    /// Largest payload of a packet, in bytes (`Max_Payload_Size`); `None` for a reserved encoding.
    pub(super) payload_max_bytes: Option<u32>,
    /// Largest read request, in bytes (`Max_Read_Request_Size`).
    pub(super) read_request_max_bytes: Option<u32>,
}

/// Reads the control register from a configuration space. Returns `None` if there is no such
/// register, or if the text ends before it: without root only the first 64 bytes are readable.
pub(super) fn device_control(config: &[u8]) -> Option<DeviceControl> {
    let control = u16_at(config, capability(config)? + DEVICE_CONTROL)?;
    let size = |field: u16| (field & 7 <= SIZE_MAX).then(|| 128 << (field & 7));
    Some(DeviceControl { payload_max_bytes: size(control >> 5), read_request_max_bytes: size(control >> 12) })
}

/// The offset of the PCI Express capability. The list may be a ring in a broken device, so it is
/// followed only as far as it can be long.
fn capability(config: &[u8]) -> Option<usize> {
    let has_list = u16_at(config, STATUS)? & HAS_CAPABILITIES != 0;
    let mut at = usize::from(*config.get(FIRST_CAPABILITY).filter(|_| has_list)? & ALIGNED);
    for _ in 0..CAPABILITIES_MAX {
        let [id, next] = u16_at(config, at).filter(|_| at >= HEADER_BYTES)?.to_le_bytes();
        if id == PCI_EXPRESS {
            return Some(at);
        }
        at = usize::from(next & ALIGNED);
    }
    None
}

fn u16_at(config: &[u8], at: usize) -> Option<u16> {
    config.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// Status register, and its bit that shows a list of capabilities.
const STATUS: usize = 0x06;
const HAS_CAPABILITIES: u16 = 1 << 4;
/// Pointer to the first capability; the lowest two bits of every such pointer are reserved.
const FIRST_CAPABILITY: usize = 0x34;
const ALIGNED: u8 = !3;
/// Capabilities are behind the header, at least four bytes each, in the first 256 bytes.
const HEADER_BYTES: usize = 0x40;
const CAPABILITIES_MAX: usize = (256 - HEADER_BYTES) / 4;
/// Identifier of the PCI Express capability, and its device control register.
const PCI_EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: usize = 0x08;
/// The largest encoding of a size, 4096 bytes; six and seven are reserved.
const SIZE_MAX: u16 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration space with capabilities, each with its identifier, its offset and the offset
    /// of the next one.
    fn config(capabilities: &[(u8, u8, u8)], control: u16) -> Vec<u8> {
        let mut config = vec![0; 256];
        config[STATUS] = 0x10;
        config[FIRST_CAPABILITY] = capabilities.first().map_or(0, |(_, at, _)| *at);
        for (id, at, next) in capabilities {
            let at = usize::from(*at);
            config[at..at + 2].copy_from_slice(&[*id, *next]);
            config[at + DEVICE_CONTROL..at + DEVICE_CONTROL + 2].copy_from_slice(&control.to_le_bytes());
        }
        config
    }

    fn sizes(config: &[u8]) -> Option<(Option<u32>, Option<u32>)> {
        device_control(config).map(|found| (found.payload_max_bytes, found.read_request_max_bytes))
    }

    #[test]
    fn sizes_are_those_of_the_device_control_register() {
        // Power management, message signalled interrupts, PCI Express: as ConnectX adapters have
        // them, 256 B and 512 B.
        let list = [(0x01, 0x40, 0x9c), (0x11, 0x9c, 0x60), (PCI_EXPRESS, 0x60, 0)];
        assert_eq!(sizes(&config(&list, 0x2030)), Some((Some(256), Some(512))));
        assert_eq!(sizes(&config(&list, 0x5000)), Some((Some(128), Some(4096))));
        assert_eq!(sizes(&config(&list, 0x00a0)), Some((Some(4096), Some(128))));
        assert_eq!(sizes(&config(&list, 0x20e0)), Some((None, Some(512))), "a reserved encoding");
    }

    #[test]
    fn what_has_no_register_has_no_sizes() {
        let last = [(PCI_EXPRESS, 0xf4, 0)];
        let whole = config(&last, 0x2030);
        assert_eq!(sizes(&whole), Some((Some(256), Some(512))));
        for length in [0, 7, 64, 0xf5, 0xfd] {
            assert_eq!(sizes(&whole[..length]), None, "cut after {length} bytes");
        }
        let mut none = whole;
        none[STATUS] = 0;
        assert_eq!(sizes(&none), None, "no list");
        assert_eq!(sizes(&config(&[(0x01, 0x40, 0)], 0x2030)), None, "another capability only");
        assert_eq!(sizes(&config(&[(0x01, 0x40, 0x50), (0x05, 0x50, 0x40)], 0x2030)), None, "a ring");
        assert_eq!(sizes(&[0xff; 256]), None, "a device that is gone");
    }
}
