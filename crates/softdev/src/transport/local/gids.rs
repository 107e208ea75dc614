//! The addresses of the host's network interfaces, as entries of the devices' GID tables.
//!
//! Each address of an interface that is up is an entry of one device, behind the device's default
//! entry, which `address` makes. Interfaces that lead to other hosts are dealt to the devices in
//! the order of their numbers; loopback's addresses come last and belong to the first device.
//!
//! The tables belong to this process, from its first look on: if addresses have appeared and
//! disappeared since, another process may have them in another order. Each look first asks the
//! kernel, unless that has just been done. The question takes some tens of microseconds, so the
//! path of a message never looks.
//!
//! # Invariants
//!
//! * An entry keeps its index as long as its address exists; a new address takes the first free
//!   index.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use verbs::abi::*;

use crate::sys::limits::GIDS;
use crate::sys::netlink::{Interface, interfaces};
use crate::sys::settings::{LinkLayer, MAX_DEVICES, PortMtu, link_layer, settings};
use crate::sys::timer::Instant;

/// An entry of a GID table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) gid: ibv_gid,
    /// The number of its network interface; 0 if it has none.
    pub(crate) interface: u32,
}

/// The tables of all devices, and their interfaces.
#[derive(Debug)]
pub(crate) struct Gids {
    /// The interfaces that are up: those that lead to other hosts, by their numbers, before
    /// loopback.
    interfaces: Vec<Interface>,
    tables: [Table; MAX_DEVICES as usize],
    /// When the kernel last answered.
    asked: Option<Instant>,
    /// Whether the kernel did not answer the last question.
    is_stale: bool,
}

/// How long an answer of the kernel is valid, except after it has reported a change: a program that
/// looks at a whole table asks once. (The kernel's own tables also follow addresses a little
/// later.)
const HOLDS: Duration = Duration::from_millis(1);

/// The table of a device, without its default entry.
#[derive(Debug)]
struct Table {
    entries: [Option<Entry>; GIDS as usize - 1],
    /// How often the table was found changed.
    changes: u64,
}

static TABLES: Mutex<Gids> = Mutex::new(Gids::new());

/// Returns the place of an interface's address (IPv6, or IPv4 mapped to IPv6) among the GIDs of
/// this process's devices: the device's number, and the index in its table. On InfiniBand, GIDs are
/// not addresses of interfaces. The index is then that of the device's own GID, as if the interface
/// were one of IPoIB.
#[must_use]
pub fn place_of(address: [u8; 16]) -> Option<(u8, u8)> {
    if link_layer() == LinkLayer::Infiniband {
        let mut gids = Gids::new();
        gids.update(interfaces().ok()?, settings().ok()?.devices);
        return gids.place_of(address).map(|(device, _)| (device, 0));
    }
    gids().place_of(address)
}

/// The MTU of each device's port (`ibv_mtu`).
static MTUS: [AtomicU32; MAX_DEVICES as usize] =
    [const { AtomicU32::new(IBV_MTU_4096) }; MAX_DEVICES as usize];

fn tables() -> MutexGuard<'static, Gids> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the tables as they were a moment ago. They are empty on InfiniBand, whose GIDs are not
/// addresses of interfaces.
pub(crate) fn gids() -> MutexGuard<'static, Gids> {
    let gids = tables();
    let is_fresh = gids.asked.is_some_and(|asked| asked.elapsed() < HOLDS);
    if is_fresh { gids } else { updated(gids) }
}

/// As [`gids`], but as they are now.
pub(crate) fn gids_now() -> MutexGuard<'static, Gids> {
    updated(tables())
}

/// Asks the kernel. If it does not answer, the tables stay as they are.
fn updated(mut gids: MutexGuard<'static, Gids>) -> MutexGuard<'static, Gids> {
    gids.is_stale = link_layer() == LinkLayer::Ethernet;
    if let Ok(settings) = settings()
        && link_layer() == LinkLayer::Ethernet
        && let Ok(found) = interfaces()
    {
        gids.update(found, settings.devices);
        gids.asked = Some(Instant::now());
        gids.is_stale = false;
        for device in 0..settings.devices {
            let mtu = gids.mtu(device, settings.mtu);
            MTUS[usize::from(device)].store(mtu, Relaxed);
        }
    }
    gids
}

/// Returns the MTU of a device's port when the tables were last updated.
#[inline]
pub(crate) fn active_mtu(device: u8) -> ibv_mtu {
    MTUS[usize::from(device % MAX_DEVICES)].load(Relaxed)
}

/// The same in bytes.
#[inline]
pub(crate) fn active_mtu_bytes(device: u8) -> u64 {
    128_u64 << active_mtu(device)
}

impl Gids {
    const fn new() -> Self {
        const EMPTY: Table = Table { entries: [None; GIDS as usize - 1], changes: 0 };
        Self { interfaces: Vec::new(), tables: [EMPTY; MAX_DEVICES as usize], asked: None, is_stale: false }
    }

    fn place_of(&self, address: [u8; 16]) -> Option<(u8, u8)> {
        let is_it = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.gid.raw == address);
        let places = self.tables.iter().map(|table| table.entries.iter().position(is_it));
        let (device, place) = places.enumerate().find_map(|(device, place)| Some((device, place?)))?;
        Some((device as u8, place as u8 + 1))
    }

    /// Updates the tables to the present interfaces.
    fn update(&mut self, mut found: Vec<Interface>, devices: u8) {
        found.retain(|interface| interface.is_up);
        found.sort_by_key(|interface| (interface.is_loopback, interface.index));
        self.interfaces = found;
        for device in 0..devices {
            let of = |interface: &Interface| {
                let interface_number = interface.index;
                let entry = move |raw| Entry { gid: ibv_gid { raw }, interface: interface_number };
                interface.addresses.clone().into_iter().map(entry)
            };
            let (loopback, leading): (Vec<_>, Vec<_>) =
                self.dealt(device, devices).partition(|interface| interface.is_loopback);
            let there = [leading, loopback].map(|those| those.into_iter().flat_map(of).collect());
            self.tables[usize::from(device)].update(&within(GIDS as usize - 1, there));
        }
    }

    /// Returns the interfaces that lead to other hosts.
    fn leading(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter().filter(|interface| !interface.is_loopback)
    }

    /// Returns the interfaces whose addresses belong to a device.
    fn dealt(&self, device: u8, devices: u8) -> impl Iterator<Item = &Interface> {
        let own = self.leading().skip(usize::from(device)).step_by(usize::from(devices.max(1)));
        own.chain(self.interfaces.iter().filter(move |interface| interface.is_loopback && device == 0))
    }

    /// Returns the interface of a device's default entry and of its MTU: its first that leads to
    /// other hosts, otherwise the host's first such interface, otherwise loopback.
    pub(crate) fn first(&self, device: u8, devices: u8) -> Option<&Interface> {
        let own = self.dealt(device, devices).find(|interface| !interface.is_loopback);
        own.or_else(|| self.interfaces.first())
    }

    /// Returns the network interfaces of a device: its own that lead to other hosts, otherwise
    /// [`first`](Self::first).
    pub(crate) fn below(&self, device: u8, devices: u8) -> Vec<&Interface> {
        let own: Vec<_> = self.dealt(device, devices).filter(|interface| !interface.is_loopback).collect();
        if own.is_empty() { self.first(device, devices).into_iter().collect() } else { own }
    }

    /// Returns an interface that is up, by its number.
    pub(crate) fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.index == index)
    }

    /// Returns an entry behind the default one.
    pub(crate) fn entry(&self, device: u8, index: u8) -> Option<Entry> {
        let place = usize::from(index).checked_sub(1)?;
        self.tables.get(usize::from(device))?.entries.get(place).copied().flatten()
    }

    /// Whether the tables may be older than the last question to the kernel.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Returns how often a device's table was found changed.
    pub(crate) fn changes(&self, device: u8) -> u64 {
        self.tables.get(usize::from(device)).map_or(0, |table| table.changes)
    }

    /// Returns the place of an address's interface in the order of dealing. It identifies the
    /// device of any process, however many devices that process has.
    pub(crate) fn rank_of(&self, gid: &ibv_gid) -> Option<u32> {
        let has = |interface: &Interface| interface.addresses.contains(&gid.raw);
        let leading = self.leading().position(has).and_then(|rank| u32::try_from(rank).ok());
        // Loopback's addresses belong to the first device, like those of the first interface.
        leading.or_else(|| self.interfaces.iter().any(has).then_some(0))
    }

    fn mtu(&self, device: u8, setting: PortMtu) -> ibv_mtu {
        match setting {
            PortMtu::Bytes(bytes) => u32::from(bytes / 128).ilog2(),
            PortMtu::Netdev => {
                let devices = settings().map_or(1, |settings| settings.devices);
                self.first(device, devices).map_or(IBV_MTU_4096, |interface| mtu_on(interface.mtu_bytes))
            }
        }
    }
}

/// Returns the entries that fit. If there are more, as on hosts with very many containers, those of
/// loopback are kept, and link-local ones come after the others.
fn within(room: usize, [mut leading, loopback]: [Vec<Entry>; 2]) -> Vec<Entry> {
    let left = room.saturating_sub(loopback.len());
    if leading.len() > left {
        leading.sort_by_key(|entry| entry.gid.raw[..2] == [0xfe, 0x80]);
        leading.truncate(left);
    }
    leading.extend(loopback);
    leading
}

/// Returns the MTU of a port on an interface with this MTU, as in the kernel's software device
/// (`rxe_set_mtu()`, drivers/infiniband/sw/rxe).
fn mtu_on(interface_bytes: u32) -> ibv_mtu {
    /// `RXE_MAX_HDR_LENGTH`: the most header bytes of a packet.
    const HEADERS: u32 = 80;
    let room = interface_bytes.saturating_sub(HEADERS).clamp(256, 4096);
    (room / 128).ilog2()
}

impl Table {
    /// Removes entries that no longer exist, and adds new ones, as far as there is room.
    fn update(&mut self, there: &[Entry]) {
        let mut has_changed = false;
        for place in &mut self.entries {
            if place.is_some_and(|entry| !there.contains(&entry)) {
                *place = None;
                has_changed = true;
            }
        }
        for entry in there {
            if self.entries.contains(&Some(*entry)) {
                continue;
            }
            let Some(place) = self.entries.iter_mut().find(|place| place.is_none()) else { break };
            *place = Some(*entry);
            has_changed = true;
        }
        self.changes += u64::from(has_changed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn raw(address: &str) -> [u8; 16] {
        address.parse::<Ipv6Addr>().unwrap().octets()
    }

    /// Makes an interface that is up, with this MTU; `lo` is loopback.
    fn interface(index: u32, name: &str, mtu_bytes: u32, addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|address| raw(address)).collect();
        Interface {
            index,
            name: name.to_owned(),
            mtu_bytes,
            is_loopback: name == "lo",
            is_up: true,
            addresses,
        }
    }

    #[test]
    fn of_too_many_entries_loopback_and_routable_ones_are_kept() {
        let entry = |text: &str| Entry { gid: ibv_gid { raw: raw(text) }, interface: 1 };
        let all = |texts: &[&str]| texts.iter().map(|text| entry(text)).collect::<Vec<_>>();
        let leading = ["fe80::1", "::ffff:10.0.0.1", "fe80::2", "2001:db8::1"];
        let kept = |room| within(room, [all(&leading), all(&["::ffff:127.0.0.1"])]);
        assert_eq!(kept(5), [all(&leading), all(&["::ffff:127.0.0.1"])].concat());
        assert_eq!(kept(4), all(&["::ffff:10.0.0.1", "2001:db8::1", "fe80::1", "::ffff:127.0.0.1"]));
        assert_eq!(kept(2), all(&["::ffff:10.0.0.1", "::ffff:127.0.0.1"]));
    }

    fn lo() -> Interface {
        interface(1, "lo", 65536, &["::ffff:127.0.0.1", "::1"])
    }

    /// Returns the content of a device's table, with `-` for an empty entry before a used one.
    fn shown(gids: &Gids, device: u8) -> Vec<String> {
        let entries = (1..GIDS).map(|index| gids.entry(device, index));
        let mut texts: Vec<_> = entries
            .map(|entry| {
                entry.map_or("-".to_owned(), |entry| {
                    let address = Ipv6Addr::from(entry.gid.raw);
                    format!("{address} {}", gids.interface(entry.interface).unwrap().name)
                })
            })
            .collect();
        while texts.last().is_some_and(|text| text == "-") {
            texts.pop();
        }
        texts
    }

    #[test]
    fn interfaces_are_dealt_in_their_order_and_loopback_is_the_firsts() {
        let down = Interface { is_up: false, ..interface(3, "eth9", 1500, &["::ffff:10.0.9.1"]) };
        let found = || {
            vec![
                lo(),
                interface(5, "eth2", 9000, &["2001:db8::2"]),
                down.clone(),
                interface(2, "eth0", 1500, &["::ffff:10.0.0.1", "fe80::1"]),
                interface(4, "eth1", 1500, &["::ffff:10.0.1.1"]),
            ]
        };
        let mut gids = Gids::new();
        gids.update(found(), 2);
        let first =
            ["::ffff:10.0.0.1 eth0", "fe80::1 eth0", "2001:db8::2 eth2", "::ffff:127.0.0.1 lo", "::1 lo"];
        assert_eq!(shown(&gids, 0), first);
        assert_eq!(shown(&gids, 1), ["::ffff:10.0.1.1 eth1"]);
        let below = |device, devices| {
            gids.below(device, devices).iter().map(|interface| interface.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!((below(0, 2), below(1, 2)), (vec!["eth0".into(), "eth2".into()], vec!["eth1".into()]));
        for (address, place) in
            [("::ffff:10.0.0.1", Some((0, 1))), ("::ffff:10.0.1.1", Some((1, 1))), ("::ffff:10.0.9.1", None)]
        {
            assert_eq!(gids.place_of(raw(address)), place, "{address}");
        }
        // A fourth device has no interface, and uses the host's first.
        assert_eq!(below(3, 4), ["eth0"]);
        // The place of an address does not depend on how many devices this process has.
        for (address, rank) in [("fe80::1", 0), ("::ffff:10.0.1.1", 1), ("2001:db8::2", 2), ("::1", 0)] {
            assert_eq!(gids.rank_of(&ibv_gid { raw: raw(address) }), Some(rank), "{address}");
        }
        for address in ["::ffff:10.0.9.1", "fe80::2"] {
            assert_eq!(gids.rank_of(&ibv_gid { raw: raw(address) }), None, "{address}");
        }
        gids.update(found(), 1);
        assert_eq!(gids.entry(0, GIDS), None);
        assert!(shown(&gids, 0).contains(&"::ffff:10.0.1.1 eth1".to_owned()));
    }

    #[test]
    fn an_entry_keeps_its_index_as_long_as_its_address_is_there() {
        let mut gids = Gids::new();
        let eth = |addresses: &[&str]| vec![lo(), interface(2, "eth0", 1500, addresses)];
        gids.update(eth(&["::ffff:10.0.0.1", "::ffff:10.0.0.2"]), 1);
        assert_eq!(gids.changes(0), 1);
        let all = ["::ffff:10.0.0.1 eth0", "::ffff:10.0.0.2 eth0", "::ffff:127.0.0.1 lo", "::1 lo"];
        assert_eq!(shown(&gids, 0), all);
        gids.update(eth(&["::ffff:10.0.0.2"]), 1);
        assert_eq!((shown(&gids, 0)[0].as_str(), &shown(&gids, 0)[1..]), ("-", &all.map(String::from)[1..]));
        gids.update(eth(&["::ffff:10.0.0.2"]), 1);
        assert_eq!(gids.changes(0), 2, "nothing has changed since");
        gids.update(eth(&["::ffff:10.0.0.2", "2001:db8::5", "2001:db8::6"]), 1);
        let now =
            ["2001:db8::5 eth0", "::ffff:10.0.0.2 eth0", "::ffff:127.0.0.1 lo", "::1 lo", "2001:db8::6 eth0"];
        assert_eq!(shown(&gids, 0), now);
        // The same address at another interface is another entry.
        gids.update(vec![lo(), interface(3, "eth1", 1500, &["::ffff:10.0.0.2"])], 1);
        assert_eq!(shown(&gids, 0)[..3], ["::ffff:10.0.0.2 eth1", "-", "::ffff:127.0.0.1 lo"]);
        assert_eq!(gids.changes(0), 4);
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let many: Vec<_> = (0..100).map(|i| format!("2001:db8::{i:x}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let mut gids = Gids::new();
        gids.update(vec![interface(2, "eth0", 1500, &many)], 1);
        assert_eq!(shown(&gids, 0).len(), usize::from(GIDS) - 1);
        gids.update(vec![interface(2, "eth0", 1500, &many)], 1);
        assert_eq!(gids.changes(0), 1);
        gids.update(vec![interface(2, "eth0", 1500, &many[50..])], 1);
        assert_eq!(shown(&gids, 0).len(), usize::from(GIDS) - 1, "others take the places");
    }

    #[test]
    fn the_mtu_is_the_settings_or_what_the_interface_has_room_for() {
        let gids = |found| {
            let mut gids = Gids::new();
            gids.update(found, 1);
            gids
        };
        for (bytes, mtu) in [
            (1500, IBV_MTU_1024),
            (4175, IBV_MTU_2048),
            (4176, IBV_MTU_4096),
            (9000, IBV_MTU_4096),
            (576, IBV_MTU_256),
            (68, IBV_MTU_256),
        ] {
            let gids = gids(vec![interface(2, "eth0", bytes, &[]), lo()]);
            assert_eq!(gids.mtu(0, PortMtu::Netdev), mtu, "{bytes}");
            assert_eq!(gids.mtu(0, PortMtu::Bytes(512)), IBV_MTU_512);
        }
        assert_eq!(gids(vec![lo()]).mtu(0, PortMtu::Netdev), IBV_MTU_4096);
        assert_eq!(gids(vec![]).mtu(0, PortMtu::Netdev), IBV_MTU_4096, "there is no interface");
    }
}
