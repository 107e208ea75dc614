//! A process without descriptors for new connections: its listener waits, and its thread sleeps.
//! This is a test program of its own, because the limit applies to the whole process.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use cm::host::{Memory, Port};
use cm::wire::{DisconnectRequest, Mad, Message};
use cm::{Devices, Process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PORT: u16 = 7471;

struct Loopback;

impl Devices for Loopback {
    fn port_of(&self, address: IpAddr) -> Result<Port, Errno> {
        let IpAddr::V4(address) = address else { return Err(Errno::ADDRNOTAVAIL) };
        let gid = address.to_ipv6_mapped().octets();
        Ok(Port { guid: 7, number: 1, gid, gid_index: 0, lid: 0, is_infiniband: false, mtu: 3 })
    }
}

/// The manager's answer; the address is ignored.
#[derive(Default)]
struct Answer(RefCell<Vec<u8>>);

impl Memory for Answer {
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::FAULT)
    }

    fn write(&self, _: u64, from: &[u8]) -> Result<(), Errno> {
        *self.0.borrow_mut() = from.to_vec();
        Ok(())
    }
}

fn command(process: &Process, channel: &OwnedFd, number: u32, body: &[u8]) -> Vec<u8> {
    let sizes = [body.len() as u16, 4].map(u16::to_ne_bytes).concat();
    let bytes = [&number.to_ne_bytes()[..], &sizes, body].concat();
    let answer = Answer::default();
    let number = process.channel(channel.as_raw_fd()).expect("it is a channel");
    process.write(number, channel.as_fd(), &bytes, &answer).expect("the command is carried out");
    answer.0.into_inner()
}

/// Listens at an address (rdma_create_id, rdma_bind_addr, rdma_listen).
fn listen(process: &Process, channel: &OwnedFd, address: Ipv4Addr) {
    /// `RDMA_PS_TCP`.
    const TCP: u16 = 0x0106;
    let create = [&[1; 16][..], &TCP.to_ne_bytes(), &[0; 6]].concat();
    let id = command(process, channel, 0, &create);
    let family = (libc::AF_INET as u16).to_ne_bytes();
    let at = [&family[..], &PORT.to_be_bytes(), &address.octets(), &[0; 20]].concat();
    command(process, channel, 2, &[&[0; 8], &at[..], &id].concat());
    command(process, channel, 7, &[&id[..], &5_u32.to_ne_bytes()].concat());
}

/// CPU time of this process.
fn used() -> Duration {
    // SAFETY: all-zero bytes are a valid rusage, which is written to.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut used), 0);
        used
    };
    [used.ru_utime, used.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .sum()
}

#[test]
fn a_connection_waits_for_a_descriptor_and_no_thread_spins() {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, a, b, c | 1);
    let process = Process::start(Box::new(Loopback)).unwrap();
    let channel = process.open(OFlags::CLOEXEC).unwrap();
    listen(process, &channel, address);
    let user = rustix::process::geteuid().as_raw();
    let digits = u128::from(address.to_ipv6_mapped());
    let name = format!("rdmascope-cm-1/{user}/listen/0106/{PORT}/{digits:032x}");
    let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let kind = SocketType::SEQPACKET;
    let peer = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();

    let before = getrlimit(Resource::Nofile);
    let none_left = Rlimit { current: Some(peer.as_raw_fd() as u64 + 1), maximum: before.maximum };
    setrlimit(Resource::Nofile, none_left).unwrap();
    rustix::net::connect(&peer, &name).unwrap();
    let message = Message::from(DisconnectRequest { local_communication_id: 5, ..Default::default() });
    let request = Mad { transaction: 1, message }.encode();
    rustix::net::send(&peer, &request, SendFlags::empty()).unwrap();
    let began = used();
    std::thread::sleep(Duration::from_millis(500));
    let spun = used() - began;
    assert!(spun < Duration::from_millis(100), "{spun:?} of 500 ms");

    setrlimit(Resource::Nofile, before).unwrap();
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&peer, PollFlags::IN)], Some(&limit)), Ok(1), "it is answered now");
    let mut answer = [0; Mad::BYTES];
    rustix::net::recv(&peer, &mut answer[..], RecvFlags::empty()).unwrap();
    let answer = Mad::decode(&answer).unwrap().message;
    assert!(matches!(answer, Message::DisconnectReply(reply) if reply.remote_communication_id == 5));
}
