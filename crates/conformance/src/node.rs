//! A node of a case, in this process or in another one.

use std::process::Command;
use std::time::{Duration, Instant};

use verbs::abi::*;

use crate::rig::{Element, Rig, WC_WORDS, attribute_words, op, route_words};
use crate::shape::{QKEY, Remote, Send, Shape, Side, Tuning, Wc};
use crate::subject::{Origin, Subject};

mod ask;
mod extended;
mod far;
mod manager;

pub(crate) use far::abandon;
pub use far::{peer, serve};

use far::Far;

/// The time limit of all waits of a case: sufficient on a busy machine, too.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A completion from its words. A completion of an extended queue has no `slid`.
fn completion(w: &[u64]) -> Wc {
    Wc {
        id: w[0],
        status: w[1] as u32,
        opcode: w[2] as u32,
        byte_len: w[3] as u32,
        imm: u32::from_be(w[4] as u32),
        qp: w[5] as u32,
        src_qp: w[6] as u32,
        flags: w[7] as u32,
        slid: w.get(8).map_or(0, |slid| *slid as u16),
    }
}

/// A node of a case.
pub struct Node {
    place: Place,
    pub origin: Origin,
}

enum Place {
    /// In this process.
    Here(Box<Rig>),
    /// In a separate process, which executes the same commands.
    There(Far),
}

impl Node {
    /// Opens a node in this process.
    pub fn local(subject: &Subject) -> Self {
        Self { place: Place::Here(Box::new(Rig::open(subject))), origin: subject.origin }
    }

    /// Opens a node in a separate process, which may have served another case.
    pub fn lasting(subject: &Subject) -> Self {
        Self { place: Place::There(Far::lasting(subject)), origin: subject.origin }
    }

    /// Starts this program again as a far node.
    pub fn remote(subject: &Subject) -> Self {
        Self { place: Place::There(Far::again(subject)), origin: subject.origin }
    }

    /// Starts a program as a far node. The program must call [`serve`] if [`peer`] returns a
    /// subject.
    pub fn spawn(command: Command, subject: &Subject) -> Self {
        Self { place: Place::There(Far::start(command, subject)), origin: subject.origin }
    }

    /// The rig of a node in this process.
    pub fn rig(&mut self) -> &mut Rig {
        match &mut self.place {
            Place::Here(rig) => rig,
            Place::There(_) => unreachable!("this node is in another process"),
        }
    }

    /// Kills the process of a far node by SIGKILL.
    pub fn kill(mut self) {
        let Place::There(far) = &mut self.place else { unreachable!("only processes are killed") };
        far.kill();
    }

    /// Executes a command and returns its answer.
    #[track_caller]
    pub fn call(&mut self, command: u64, words: &[u64]) -> Vec<u64> {
        self.start(command, words);
        self.finish(command, words)
    }

    /// Sends a command to a remote node; a local node executes it in `finish`.
    #[track_caller]
    pub fn start(&mut self, command: u64, words: &[u64]) {
        if let Place::There(far) = &mut self.place {
            far.tell(std::iter::once(&command).chain(words));
        }
    }

    /// The answer of a command that was started.
    #[track_caller]
    pub fn finish(&mut self, command: u64, words: &[u64]) -> Vec<u64> {
        match &mut self.place {
            Place::Here(rig) => {
                let all: Vec<u64> = std::iter::once(command).chain(words.iter().copied()).collect();
                rig.execute(&all)
            }
            Place::There(far) => far.hear(),
        }
    }

    /// The answer's words after the error number, which must be 0.
    #[track_caller]
    fn get(&mut self, command: u64, words: &[u64]) -> Vec<u64> {
        let mut answer = self.call(command, words);
        assert_eq!(answer[0], 0, "command {command} {words:?} failed: errno {}", answer[0]);
        answer.remove(0);
        answer
    }

    #[track_caller]
    fn make(&mut self, command: u64, words: &[u64]) -> usize {
        self.get(command, words)[0] as usize
    }

    /// The error number of a command, 0 for success.
    #[track_caller]
    pub fn errno(&mut self, command: u64, words: &[u64]) -> i32 {
        self.call(command, words)[0] as i32
    }

    #[track_caller]
    pub fn gid(&mut self) -> [u64; 2] {
        let words = self.get(op::GID, &[]);
        [words[0], words[1]]
    }

    #[track_caller]
    pub fn pd(&mut self) -> usize {
        self.make(op::PD, &[])
    }

    #[track_caller]
    pub fn cq(&mut self, entries: u32) -> usize {
        self.make(op::CQ, &[u64::from(entries), 0])
    }

    #[track_caller]
    pub fn channel(&mut self) -> usize {
        self.make(op::CHANNEL, &[])
    }

    #[track_caller]
    pub fn cq_on(&mut self, channel: usize, entries: u32) -> usize {
        self.make(op::CQ, &[u64::from(entries), channel as u64 + 1])
    }

    /// A region of the device's own memory, if it has any.
    #[track_caller]
    pub fn region(&mut self, pd: usize, bytes: usize, access: u32) -> usize {
        self.make(op::MR, &[pd as u64, bytes as u64, u64::from(access), 0])
    }

    /// A region of the program's memory.
    #[track_caller]
    pub fn own_region(&mut self, pd: usize, bytes: usize, access: u32) -> usize {
        self.make(op::MR, &[pd as u64, bytes as u64, u64::from(access), 1])
    }

    /// The start of a region, for peers.
    #[track_caller]
    pub fn start_of(&mut self, region: usize) -> Remote {
        let words = self.get(op::REGION, &[region as u64]);
        Remote { addr: words[0], key: words[1] as u32 }
    }

    #[track_caller]
    pub fn release(&mut self, region: usize) {
        self.get(op::RELEASE, &[region as u64]);
    }

    #[track_caller]
    pub fn side(&mut self, shape: &Shape) -> Side {
        let pd = self.pd();
        let cqs = [self.cq(shape.entries), self.cq(shape.entries)];
        self.side_on(shape, pd, cqs)
    }

    /// A side with its own region.
    #[track_caller]
    pub fn side_on(&mut self, shape: &Shape, pd: usize, cqs: [usize; 2]) -> Side {
        let region = if shape.own_memory {
            self.own_region(pd, shape.bytes, shape.access)
        } else {
            self.region(pd, shape.bytes, shape.access)
        };
        self.side_with(shape, pd, cqs, region)
    }

    #[track_caller]
    pub fn side_with(&mut self, shape: &Shape, pd: usize, cqs: [usize; 2], region: usize) -> Side {
        let made = self.get(op::QP, &shape.words(pd, cqs));
        self.side_of(shape, pd, cqs, region, &made)
    }

    /// A side from the answer of a command: the queue pair and its number.
    #[track_caller]
    fn side_of(&mut self, shape: &Shape, pd: usize, cqs: [usize; 2], region: usize, made: &[u64]) -> Side {
        let depths = self.depths(made[0] as usize);
        Side {
            service: shape.service,
            pd,
            send_cq: cqs[0],
            receive_cq: cqs[1],
            region,
            remote: self.start_of(region),
            qp: made[0] as usize,
            number: made[1] as u32,
            origin: self.origin,
            gid: self.gid(),
            sends: depths[0],
            receives: depths[1],
            inline: depths[2],
        }
    }

    #[track_caller]
    pub fn modify(&mut self, qp: usize, attr: &ibv_qp_attr, mask: u32) -> i32 {
        let mut words = vec![qp as u64, u64::from(mask)];
        words.extend(attribute_words(attr));
        self.errno(op::MODIFY, &words)
    }

    /// Changes only the state. The change must succeed.
    #[track_caller]
    pub fn change_state(&mut self, qp: usize, state: ibv_qp_state) {
        let attr = ibv_qp_attr { qp_state: state, ..ibv_qp_attr::default() };
        assert_eq!(self.modify(qp, &attr, IBV_QP_STATE), 0, "the change to state {state}");
    }

    #[track_caller]
    pub fn state(&mut self, qp: usize) -> ibv_qp_state {
        self.get(op::QUERY, &[qp as u64])[0] as u32
    }

    #[track_caller]
    pub fn init(&mut self, side: &Side, tuning: &Tuning) {
        let port_num = self.origin.port;
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num,
            qkey: QKEY,
            qp_access_flags: tuning.access,
            ..ibv_qp_attr::default()
        };
        let own = if side.service == IBV_QPT_UD { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own;
        assert_eq!(self.modify(side.qp, &attr, mask), 0, "RESET to INIT");
    }

    #[track_caller]
    pub fn ready_to_receive(&mut self, side: &Side, number: u32, gid: [u64; 2], tuning: &Tuning) {
        self.ready_to_receive_by(side, number, self.origin.route(gid), tuning);
    }

    #[track_caller]
    pub fn ready_to_receive_by(&mut self, side: &Side, number: u32, route: ibv_ah_attr, tuning: &Tuning) {
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: tuning.mtu,
            dest_qp_num: number,
            rq_psn: tuning.psn,
            max_dest_rd_atomic: tuning.resources,
            min_rnr_timer: tuning.rnr_timer,
            ah_attr: route,
            ..ibv_qp_attr::default()
        };
        let connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        let mask = match side.service {
            IBV_QPT_RC => connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
            IBV_QPT_UC => connected,
            _ => 0,
        };
        assert_eq!(self.modify(side.qp, &attr, IBV_QP_STATE | mask), 0, "INIT to RTR");
    }

    #[track_caller]
    pub fn ready_to_send(&mut self, side: &Side, tuning: &Tuning) {
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            sq_psn: tuning.psn,
            timeout: tuning.timeout,
            retry_cnt: tuning.retries,
            rnr_retry: tuning.rnr_retries,
            max_rd_atomic: tuning.depth,
            ..ibv_qp_attr::default()
        };
        let reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        let mask = if side.service == IBV_QPT_RC { reliable } else { 0 };
        assert_eq!(self.modify(side.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | mask), 0, "RTR to RTS");
    }

    /// Takes a queue pair from RESET to RTS, with a peer by its number.
    #[track_caller]
    pub fn connect_to(&mut self, side: &Side, number: u32, gid: [u64; 2], tuning: &Tuning) {
        self.init(side, tuning);
        self.ready_to_receive(side, number, gid, tuning);
        self.ready_to_send(side, tuning);
    }

    /// An address handle for the port of `gid`.
    #[track_caller]
    pub fn handle(&mut self, pd: usize, gid: [u64; 2]) -> usize {
        self.handle_by(pd, &self.origin.route(gid))
    }

    /// An address handle of a route.
    #[track_caller]
    pub fn handle_by(&mut self, pd: usize, route: &ibv_ah_attr) -> usize {
        self.try_handle(pd, route).expect("create_ah")
    }

    /// The same, or the error number.
    #[track_caller]
    pub fn try_handle(&mut self, pd: usize, route: &ibv_ah_attr) -> Result<usize, i32> {
        let words: Vec<u64> = std::iter::once(pd as u64).chain(route_words(route)).collect();
        let answer = self.call(op::AH, &words);
        if answer[0] == 0 { Ok(answer[1] as usize) } else { Err(answer[0] as i32) }
    }

    /// Posts a list of sends. Returns the error number and the position of the bad request.
    #[track_caller]
    pub fn try_send(&mut self, qp: usize, requests: &[Send]) -> (i32, Option<usize>) {
        let mut words = vec![qp as u64, requests.len() as u64];
        for r in requests {
            let (handle, number, qkey) = r.to.map_or((0, 0, 0), |(h, n, k)| (h as u64 + 1, n, k));
            words.extend([r.id, u64::from(r.flags), u64::from(r.opcode), u64::from(r.imm.to_be())]);
            words.extend([
                handle,
                u64::from(number),
                u64::from(qkey),
                r.remote.addr,
                u64::from(r.remote.key),
            ]);
            words.extend(r.operands);
            words.push(r.elements.len() as u64);
            words.extend(r.elements.iter().flatten());
        }
        let answer = self.call(op::SEND, &words);
        (answer[0] as i32, (answer[1] != u64::MAX).then_some(answer[1] as usize))
    }

    #[track_caller]
    pub fn send(&mut self, qp: usize, request: Send) {
        assert_eq!(self.try_send(qp, &[request]), (0, None), "post_send");
    }

    /// Posts a list of receives. Returns the error number and the position of the bad request.
    #[track_caller]
    pub fn try_receive(&mut self, qp: usize, requests: &[(u64, Vec<Element>)]) -> (i32, Option<usize>) {
        self.post_receives(op::RECEIVE, qp, requests)
    }

    #[track_caller]
    fn post_receives(
        &mut self,
        command: u64,
        queue: usize,
        requests: &[(u64, Vec<Element>)],
    ) -> (i32, Option<usize>) {
        let mut words = vec![queue as u64, requests.len() as u64];
        for (id, elements) in requests {
            words.extend([*id, elements.len() as u64]);
            words.extend(elements.iter().flatten());
        }
        let answer = self.call(command, &words);
        (answer[0] as i32, (answer[1] != u64::MAX).then_some(answer[1] as usize))
    }

    #[track_caller]
    pub fn receive(&mut self, qp: usize, id: u64, elements: &[Element]) {
        assert_eq!(self.try_receive(qp, &[(id, elements.to_vec())]), (0, None), "post_recv");
    }

    /// Polls once. Returns completions, or the error number.
    #[track_caller]
    pub fn try_poll(&mut self, cq: usize, room: usize) -> Result<Vec<Wc>, i32> {
        let answer = self.call(op::POLL, &[cq as u64, room as u64]);
        if answer[0] != 0 {
            return Err(answer[0] as i32);
        }
        Ok(answer[1..].chunks(WC_WORDS).map(completion).collect())
    }

    #[track_caller]
    pub fn poll(&mut self, cq: usize, room: usize) -> Vec<Wc> {
        self.try_poll(cq, room).expect("poll_cq")
    }

    /// Polls until there are `n` completions.
    #[track_caller]
    pub fn wait(&mut self, cq: usize, n: usize) -> Vec<Wc> {
        let start = Instant::now();
        let mut found = Vec::new();
        while found.len() < n {
            found.extend(self.poll(cq, n - found.len()));
            assert!(start.elapsed() < PATIENCE, "only {} of {n} completions: {found:?}", found.len());
        }
        found
    }

    /// Polls until there is a completion.
    #[track_caller]
    pub fn wait_one(&mut self, cq: usize) -> Wc {
        self.wait(cq, 1)[0]
    }

    /// Polls for a time in which nothing may complete.
    #[track_caller]
    pub fn quiet(&mut self, cq: usize, time: Duration) {
        let start = Instant::now();
        loop {
            assert_eq!(self.poll(cq, 1), [], "nothing should have completed");
            if start.elapsed() >= time {
                return;
            }
        }
    }

    #[track_caller]
    pub fn fill(&mut self, region: usize, offset: usize, len: usize, seed: u64) {
        self.get(op::FILL, &[region as u64, offset as u64, len as u64, seed]);
    }

    /// A word of a region.
    #[track_caller]
    pub fn word(&mut self, region: usize, offset: usize) -> u64 {
        let bytes = self.read(region, offset, 8);
        u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
    }

    #[track_caller]
    pub fn put(&mut self, region: usize, offset: usize, value: u64) {
        self.get(op::PUT, &[region as u64, offset as u64, value]);
    }

    /// Checks that the bytes are those of the pattern `seed` from position `first`.
    #[track_caller]
    pub fn check_from(&mut self, region: usize, offset: usize, len: usize, seed: u64, first: usize) {
        let words = [region, offset, len, seed as usize, first].map(|w| w as u64);
        let wrong = self.get(op::CHECK, &words)[0];
        assert_eq!(wrong, u64::MAX, "byte {wrong} of {len} is wrong");
    }

    #[track_caller]
    pub fn check(&mut self, region: usize, offset: usize, len: usize, seed: u64) {
        self.check_from(region, offset, len, seed, 0);
    }

    #[track_caller]
    pub fn read(&mut self, region: usize, offset: usize, len: usize) -> Vec<u8> {
        let words = self.get(op::READ, &[region, offset, len].map(|w| w as u64));
        words.into_iter().map(|w| w as u8).collect()
    }

    #[track_caller]
    pub fn arm(&mut self, cq: usize, solicited: bool) {
        self.get(op::ARM, &[cq as u64, u64::from(solicited)]);
    }

    #[track_caller]
    pub fn is_ready(&mut self, channel: usize, ms: u64) -> bool {
        self.get(op::READY, &[channel as u64, ms])[0] != 0
    }

    #[track_caller]
    pub fn number(&mut self, command: u64) -> u64 {
        self.get(command, &[])[0]
    }

    /// Destroys all objects; no destruction may be refused.
    pub fn close(mut self) {
        assert_eq!(self.errno(op::CLOSE, &[]), 0, "an object could not be destroyed");
        if let Place::There(far) = self.place {
            far.closed();
        }
    }
}
