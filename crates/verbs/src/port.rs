//! Ports: their state, link and message sizes.

use std::fmt;

use crate::abi::*;
use crate::link::{GENERATIONS, LinkRate};

/// The attributes of a port (`ibv_query_port`).
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// State.
    pub state: PortState,
    /// State of the link below it.
    pub physical_state: PhysicalState,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// The largest MTU that the port supports.
    pub max_mtu: Mtu,
    /// The MTU in use.
    pub active_mtu: Mtu,
    /// The longest message, in bytes.
    pub max_message_bytes: u32,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// Low bits of the LID that select a path: the port has 2^LMC LIDs (IBTA vol. 1, section
    /// 4.1.3).
    pub lmc: u8,
    /// The LID of the subnet manager; 0 on Ethernet, or if there was none.
    pub sm_lid: u16,
    /// Entries of the GID table.
    pub gids: u32,
    /// Entries of the P_Key table.
    pub pkeys: u16,
    /// Width and signal rate of the link.
    pub speed: LinkSpeed,
}

impl From<&ibv_port_attr> for Port {
    fn from(attr: &ibv_port_attr) -> Self {
        Self {
            state: match attr.state {
                IBV_PORT_ACTIVE => PortState::Active,
                IBV_PORT_ARMED => PortState::Armed,
                IBV_PORT_DOWN => PortState::Down,
                IBV_PORT_INIT => PortState::Initialize,
                other => PortState::Other(other),
            },
            physical_state: PhysicalState(attr.phys_state),
            link_layer: match attr.link_layer {
                IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
                IBV_LINK_LAYER_INFINIBAND => LinkLayer::InfiniBand,
                other => LinkLayer::Other(other),
            },
            max_mtu: Mtu(attr.max_mtu),
            active_mtu: Mtu(attr.active_mtu),
            max_message_bytes: attr.max_msg_sz,
            lid: attr.lid,
            lmc: attr.lmc,
            sm_lid: attr.sm_lid,
            gids: u32::try_from(attr.gid_tbl_len).unwrap_or(0),
            pkeys: attr.pkey_tbl_len,
            speed: LinkSpeed { width: attr.active_width, speed: attr.active_speed },
        }
    }
}

/// A path MTU: one of the five values of the specification.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Mtu(ibv_mtu);

impl Mtu {
    /// Returns the MTU of this size, if there is one.
    #[must_use]
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        (IBV_MTU_256..=IBV_MTU_4096).map(Self).find(|mtu| mtu.bytes() == bytes)
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        128 << self.0.clamp(IBV_MTU_256, IBV_MTU_4096)
    }

    /// Its number (`enum ibv_mtu`).
    #[must_use]
    pub fn code(self) -> ibv_mtu {
        self.0
    }
}

/// State of a port (IBTA vol. 1, section 7.2.7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortState {
    /// Ready for traffic.
    Active,
    /// Configured by the subnet manager, which has not activated it yet.
    Armed,
    /// Not connected.
    Down,
    /// Connected, and waiting for a subnet manager.
    Initialize,
    /// Any other value that the device reports.
    Other(u32),
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Armed => "armed",
            Self::Down => "down",
            Self::Initialize => "initialize",
            Self::Other(number) => return write!(f, "state {number}"),
        })
    }
}

/// State of the link below a port, as the device reports it (PortPhysicalState of PortInfo, IBTA
/// vol. 1, section 14.2.5.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PhysicalState(pub u8);

impl fmt::Display for PhysicalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            1 => "sleep",
            2 => "polling",
            3 => "disabled",
            4 => "training",
            5 => "link up",
            6 => "error recovery",
            7 => "test",
            other => return write!(f, "physical state {other}"),
        })
    }
}

/// Link layer of a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkLayer {
    /// RoCE or iWARP.
    Ethernet,
    /// InfiniBand.
    InfiniBand,
    /// Any other value that the device reports.
    Other(u8),
}

/// Width and signal rate of a link, as its port reports them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkSpeed {
    width: u8,
    speed: u8,
}

impl LinkSpeed {
    /// Returns the width and speed that a port reports for a link rate: the fastest rate of
    /// InfiniBand that is not faster, or else the slowest. (XDR has no code in 8 bits; NDR's is
    /// used, as in the kernel.)
    #[must_use]
    pub fn of(rate: LinkRate) -> Self {
        const SLOWEST: LinkSpeed = LinkSpeed { width: 1, speed: 1 };
        const USUAL_LANES: Option<u8> = Some(4);
        let all = (0..5).flat_map(|width| (0..u8::BITS).map(move |speed| (1 << width, 1 << speed)));
        let fits = |it: &Self| match rate {
            LinkRate::InfiniBand(lanes, _) => it.lanes() == Some(lanes),
            LinkRate::Bits(_) => true,
        };
        let bits_per_s = |it: Self| it.link_rate().map(LinkRate::bits_per_s);
        all.map(|(width, speed)| Self { width, speed })
            .filter(|it| fits(it) && bits_per_s(*it).is_some_and(|bits| bits <= rate.bits_per_s()))
            .max_by_key(|it| (bits_per_s(*it), it.lanes() == USUAL_LANES))
            .unwrap_or(SLOWEST)
    }

    /// The values `active_width` and `active_speed` of `ibv_port_attr`.
    #[must_use]
    pub fn codes(self) -> (u8, u8) {
        (self.width, self.speed)
    }

    fn link_rate(self) -> Option<LinkRate> {
        let lanes = self.lanes()?;
        let name = self.rate_name()?;
        let generation = GENERATIONS.into_iter().find(|generation| generation.name == name)?;
        Some(LinkRate::InfiniBand(lanes, generation))
    }

    /// The number of lanes; `None` for a value that no specification defines.
    #[must_use]
    pub fn lanes(self) -> Option<u8> {
        Some(match self.width {
            1 => 1,
            2 => 4,
            4 => 8,
            8 => 12,
            16 => 2,
            _ => return None,
        })
    }

    /// InfiniBand's name of the signal rate of a lane; `None` for a value that no specification
    /// defines.
    #[must_use]
    pub fn rate_name(self) -> Option<&'static str> {
        self.rate().map(|(name, _)| name)
    }

    /// The nominal rate of the link in Gb/s, as `ibstat` and the kernel print it: 40 for 4X QDR, 56
    /// for 4X FDR, 100 for 4X EDR. It is neither exactly the signal rate nor exactly the data rate.
    #[must_use]
    pub fn gbit_per_s(self) -> Option<f64> {
        let (_, lane) = self.rate()?;
        Some(lane * f64::from(self.lanes()?))
    }

    /// The name and rate of a lane in Gb/s (`ib_port_attr_to_speed_info` in
    /// drivers/infiniband/core/verbs.c).
    fn rate(self) -> Option<(&'static str, f64)> {
        Some(match self.speed {
            1 => ("SDR", 2.5),
            2 => ("DDR", 5.0),
            4 => ("QDR", 10.0),
            8 => ("FDR10", 10.0),
            16 => ("FDR", 14.0),
            32 => ("EDR", 25.0),
            64 => ("HDR", 50.0),
            128 => ("NDR", 100.0),
            _ => return None,
        })
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lanes(), self.rate_name()) {
            (Some(lanes), Some(name)) => write!(f, "{lanes}X {name}"),
            _ => write!(f, "width {} speed {}", self.width, self.speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkModel;

    #[test]
    fn rates_are_those_that_users_know() {
        let link = |width, speed| LinkSpeed { width, speed };
        for (width, speed, text, gbit_per_s) in [
            (1, 1, "1X SDR", 2.5),
            (2, 4, "4X QDR", 40.0),
            (2, 16, "4X FDR", 56.0),
            (2, 32, "4X EDR", 100.0),
            (16, 64, "2X HDR", 100.0),
            (2, 128, "4X NDR", 400.0),
        ] {
            assert_eq!(link(width, speed).to_string(), text);
            assert_eq!(link(width, speed).gbit_per_s(), Some(gbit_per_s), "{text}");
        }
        assert_eq!(link(3, 1).gbit_per_s(), None);
        assert_eq!(link(2, 3).to_string(), "width 2 speed 3");
    }

    #[test]
    fn a_port_names_the_rate_of_its_link() {
        for (rate, named) in [
            ("4X FDR", "4X FDR"),
            ("12X QDR", "12X QDR"),
            ("2X HDR", "2X HDR"),
            ("4X XDR", "4X NDR"),
            ("100Gb/s", "4X EDR"),
            ("25Gb/s", "1X EDR"),
            ("10Gb/s", "4X SDR"),
            ("1Gb/s", "1X SDR"),
        ] {
            let model: LinkModel = rate.parse().unwrap();
            assert_eq!(LinkSpeed::of(model.rate.unwrap()).to_string(), named, "{rate}");
        }
    }

    #[test]
    fn what_no_specification_names_is_shown_as_it_is() {
        assert_eq!(PortState::Other(5).to_string(), "state 5");
        assert_eq!(PhysicalState(9).to_string(), "physical state 9");
        assert_eq!(PhysicalState(5).to_string(), "link up");
    }
}
