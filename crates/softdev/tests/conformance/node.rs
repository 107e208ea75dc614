//! The two ends that a case plays with, wherever they are.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use verbs::Provider;
use verbs::abi::*;

use super::rig::{Element, Rig, attribute_words, op, route_words};

/// First argument of a process that is the far end of a case.
pub(crate) const PEER: &str = "--peer";

/// Nothing that a case waits for takes longer, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An end.
pub(crate) enum Node {
    /// In this process.
    Local(Box<Rig>),
    /// In a process of its own, which executes the same commands.
    Remote { child: Child, to: ChildStdin, from: BufReader<ChildStdout> },
}

/// A completion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wc {
    pub(crate) id: u64,
    pub(crate) status: u32,
    pub(crate) opcode: u32,
    pub(crate) byte_len: u32,
    pub(crate) imm: u32,
    pub(crate) qp: u32,
    pub(crate) src_qp: u32,
    pub(crate) flags: u32,
}

/// A send request.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub(crate) id: u64,
    pub(crate) flags: u32,
    pub(crate) opcode: u32,
    pub(crate) imm: u32,
    /// Address handle, queue-pair number, Q_Key.
    pub(crate) to: Option<(usize, u32, u32)>,
    pub(crate) elements: Vec<Element>,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) service: ibv_qp_type,
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) elements: u32,
    pub(crate) inline: u32,
    pub(crate) all_signaled: bool,
    pub(crate) entries: u32,
    /// Bytes of the one region.
    pub(crate) bytes: usize,
    /// The region is of the program's memory, not of the device's.
    pub(crate) own_memory: bool,
}

impl Shape {
    pub(crate) fn of(service: ibv_qp_type) -> Self {
        Self {
            service,
            sends: 16,
            receives: 16,
            elements: 4,
            inline: 64,
            all_signaled: false,
            entries: 256,
            bytes: 1 << 16,
            own_memory: false,
        }
    }
}

/// A queue pair with all that it needs, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) service: ibv_qp_type,
    pub(crate) pd: usize,
    pub(crate) send_cq: usize,
    pub(crate) receive_cq: usize,
    pub(crate) region: usize,
    pub(crate) qp: usize,
    pub(crate) number: u32,
    pub(crate) gid: [u64; 2],
    /// Work requests that the device gave room for.
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) inline: u32,
}

/// How two queue pairs are connected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) mtu: ibv_mtu,
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) rnr_retries: u8,
    pub(crate) rnr_timer: u8,
    /// First packet sequence number of both directions.
    pub(crate) psn: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { mtu: IBV_MTU_1024, timeout: 14, retries: 7, rnr_retries: 7, rnr_timer: 12, psn: 0x00ab_cdef }
    }
}

pub(crate) const QKEY: u32 = 0x1122_3344;

impl Node {
    pub(crate) fn local(provider: &'static Provider, device: &str) -> Self {
        Self::Local(Box::new(Rig::open(provider, device)))
    }

    /// Starts this program once more as a far end.
    pub(crate) fn remote(provider: &'static Provider, device: &str) -> Self {
        let program = std::env::current_exe().expect("a program knows itself");
        let mut command = Command::new(program);
        command.args([PEER, provider.name, device]);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts again");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self::Remote { child, to, from: BufReader::new(from) }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, command: u64, words: &[u64]) -> Vec<u64> {
        self.start(command, words);
        self.finish(command, words)
    }

    /// Gives a remote end a command; a local one executes it in `finish`.
    #[track_caller]
    pub(crate) fn start(&mut self, command: u64, words: &[u64]) {
        if let Self::Remote { to, .. } = self {
            writeln!(to, "{}", row(std::iter::once(&command).chain(words))).expect("the far end listens");
        }
    }

    #[track_caller]
    pub(crate) fn finish(&mut self, command: u64, words: &[u64]) -> Vec<u64> {
        match self {
            Self::Local(rig) => {
                let all: Vec<u64> = std::iter::once(command).chain(words.iter().copied()).collect();
                rig.execute(&all)
            }
            Self::Remote { from, .. } => {
                let mut line = String::new();
                from.read_line(&mut line).expect("the far end answers");
                let words: Vec<u64> = parse(&line);
                assert!(!words.is_empty(), "the far end has ended");
                words
            }
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
    pub(crate) fn errno(&mut self, command: u64, words: &[u64]) -> i32 {
        self.call(command, words)[0] as i32
    }

    #[track_caller]
    pub(crate) fn gid(&mut self) -> [u64; 2] {
        let words = self.get(op::GID, &[]);
        [words[0], words[1]]
    }

    #[track_caller]
    pub(crate) fn pd(&mut self) -> usize {
        self.make(op::PD, &[])
    }

    #[track_caller]
    pub(crate) fn cq(&mut self, entries: u32) -> usize {
        self.make(op::CQ, &[u64::from(entries), 0])
    }

    #[track_caller]
    pub(crate) fn channel(&mut self) -> usize {
        self.make(op::CHANNEL, &[])
    }

    #[track_caller]
    pub(crate) fn cq_on(&mut self, channel: usize, entries: u32) -> usize {
        self.make(op::CQ, &[u64::from(entries), channel as u64 + 1])
    }

    /// A region of the device's own memory where it has some.
    #[track_caller]
    pub(crate) fn region(&mut self, pd: usize, bytes: usize, access: u32) -> usize {
        self.make(op::MR, &[pd as u64, bytes as u64, u64::from(access), 0])
    }

    /// A region of the program's memory.
    #[track_caller]
    pub(crate) fn own_region(&mut self, pd: usize, bytes: usize, access: u32) -> usize {
        self.make(op::MR, &[pd as u64, bytes as u64, u64::from(access), 1])
    }

    #[track_caller]
    pub(crate) fn release(&mut self, region: usize) {
        self.get(op::RELEASE, &[region as u64]);
    }

    #[track_caller]
    pub(crate) fn side(&mut self, shape: &Shape) -> Side {
        let pd = self.pd();
        let (send_cq, receive_cq) = (self.cq(shape.entries), self.cq(shape.entries));
        let access = IBV_ACCESS_LOCAL_WRITE;
        let region = if shape.own_memory {
            self.own_region(pd, shape.bytes, access)
        } else {
            self.region(pd, shape.bytes, access)
        };
        self.side_with(shape, pd, [send_cq, receive_cq], region)
    }

    #[track_caller]
    pub(crate) fn side_with(&mut self, shape: &Shape, pd: usize, cqs: [usize; 2], region: usize) -> Side {
        let caps = [shape.service, shape.sends, shape.receives, shape.elements, shape.elements, shape.inline];
        let mut words: Vec<u64> = [pd, cqs[0], cqs[1]].map(|i| i as u64).to_vec();
        words.extend(caps.map(u64::from));
        words.push(u64::from(shape.all_signaled));
        let made = self.get(op::QP, &words);
        Side {
            service: shape.service,
            pd,
            send_cq: cqs[0],
            receive_cq: cqs[1],
            region,
            qp: made[0] as usize,
            number: made[1] as u32,
            gid: self.gid(),
            sends: made[2] as u32,
            receives: made[3] as u32,
            inline: made[4] as u32,
        }
    }

    #[track_caller]
    pub(crate) fn modify(&mut self, qp: usize, attr: &ibv_qp_attr, mask: u32) -> i32 {
        let mut words = vec![qp as u64, u64::from(mask)];
        words.extend(attribute_words(attr));
        self.errno(op::MODIFY, &words)
    }

    /// Changes only the state; must succeed.
    #[track_caller]
    pub(crate) fn change_state(&mut self, qp: usize, state: ibv_qp_state) {
        let attr = ibv_qp_attr { qp_state: state, ..ibv_qp_attr::default() };
        assert_eq!(self.modify(qp, &attr, IBV_QP_STATE), 0, "the change to state {state}");
    }

    #[track_caller]
    pub(crate) fn state(&mut self, qp: usize) -> ibv_qp_state {
        self.get(op::QUERY, &[qp as u64])[0] as u32
    }

    #[track_caller]
    pub(crate) fn init(&mut self, side: &Side) {
        let attr = ibv_qp_attr { qp_state: IBV_QPS_INIT, port_num: 1, qkey: QKEY, ..ibv_qp_attr::default() };
        let own = if side.service == IBV_QPT_UD { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own;
        assert_eq!(self.modify(side.qp, &attr, mask), 0, "RESET to INIT");
    }

    #[track_caller]
    pub(crate) fn ready_to_receive(&mut self, side: &Side, number: u32, gid: [u64; 2], tuning: &Tuning) {
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: tuning.mtu,
            dest_qp_num: number,
            rq_psn: tuning.psn,
            max_dest_rd_atomic: 1,
            min_rnr_timer: tuning.rnr_timer,
            ah_attr: global_route(gid),
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
    pub(crate) fn ready_to_send(&mut self, side: &Side, tuning: &Tuning) {
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            sq_psn: tuning.psn,
            timeout: tuning.timeout,
            retry_cnt: tuning.retries,
            rnr_retry: tuning.rnr_retries,
            max_rd_atomic: 1,
            ..ibv_qp_attr::default()
        };
        let reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        let mask = if side.service == IBV_QPT_RC { reliable } else { 0 };
        assert_eq!(self.modify(side.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | mask), 0, "RTR to RTS");
    }

    /// Takes a queue pair from RESET to RTS with a peer of this number.
    #[track_caller]
    pub(crate) fn connect_to(&mut self, side: &Side, number: u32, gid: [u64; 2], tuning: &Tuning) {
        self.init(side);
        self.ready_to_receive(side, number, gid, tuning);
        self.ready_to_send(side, tuning);
    }

    /// An address handle for the port of `gid`.
    #[track_caller]
    pub(crate) fn handle(&mut self, pd: usize, gid: [u64; 2]) -> usize {
        let mut words = vec![pd as u64];
        words.extend(route_words(&global_route(gid)));
        self.make(op::AH, &words)
    }

    /// Posts a list of sends: the error number and the position of the bad one.
    #[track_caller]
    pub(crate) fn try_send(&mut self, qp: usize, requests: &[Send]) -> (i32, Option<usize>) {
        let mut words = vec![qp as u64, requests.len() as u64];
        for r in requests {
            let (handle, number, qkey) = r.to.map_or((0, 0, 0), |(h, n, k)| (h as u64 + 1, n, k));
            words.extend([r.id, u64::from(r.flags), u64::from(r.opcode), u64::from(r.imm.to_be())]);
            words.extend([handle, u64::from(number), u64::from(qkey), r.elements.len() as u64]);
            words.extend(r.elements.iter().flatten());
        }
        let answer = self.call(op::SEND, &words);
        (answer[0] as i32, (answer[1] != u64::MAX).then_some(answer[1] as usize))
    }

    #[track_caller]
    pub(crate) fn send(&mut self, qp: usize, request: Send) {
        assert_eq!(self.try_send(qp, &[request]), (0, None), "post_send");
    }

    /// Posts a list of receives: the error number and the position of the bad one.
    #[track_caller]
    pub(crate) fn try_receive(
        &mut self,
        qp: usize,
        requests: &[(u64, Vec<Element>)],
    ) -> (i32, Option<usize>) {
        let mut words = vec![qp as u64, requests.len() as u64];
        for (id, elements) in requests {
            words.extend([*id, elements.len() as u64]);
            words.extend(elements.iter().flatten());
        }
        let answer = self.call(op::RECEIVE, &words);
        (answer[0] as i32, (answer[1] != u64::MAX).then_some(answer[1] as usize))
    }

    #[track_caller]
    pub(crate) fn receive(&mut self, qp: usize, id: u64, elements: &[Element]) {
        assert_eq!(self.try_receive(qp, &[(id, elements.to_vec())]), (0, None), "post_recv");
    }

    /// Polls once: completions, or the error number.
    #[track_caller]
    pub(crate) fn try_poll(&mut self, cq: usize, room: usize) -> Result<Vec<Wc>, i32> {
        let answer = self.call(op::POLL, &[cq as u64, room as u64]);
        if answer[0] != 0 {
            return Err(answer[0] as i32);
        }
        let completion = |w: &[u64]| Wc {
            id: w[0],
            status: w[1] as u32,
            opcode: w[2] as u32,
            byte_len: w[3] as u32,
            imm: u32::from_be(w[4] as u32),
            qp: w[5] as u32,
            src_qp: w[6] as u32,
            flags: w[7] as u32,
        };
        Ok(answer[1..].chunks(8).map(completion).collect())
    }

    #[track_caller]
    pub(crate) fn poll(&mut self, cq: usize, room: usize) -> Vec<Wc> {
        self.try_poll(cq, room).expect("poll_cq")
    }

    /// Polls until `n` completions have come.
    #[track_caller]
    pub(crate) fn wait(&mut self, cq: usize, n: usize) -> Vec<Wc> {
        let start = Instant::now();
        let mut found = Vec::new();
        while found.len() < n {
            found.extend(self.poll(cq, n - found.len()));
            assert!(start.elapsed() < PATIENCE, "{} of {n} completions came: {found:?}", found.len());
        }
        found
    }

    /// Polls until one completion has come.
    #[track_caller]
    pub(crate) fn wait_one(&mut self, cq: usize) -> Wc {
        self.wait(cq, 1)[0]
    }

    /// Polls for a while, in which nothing may come.
    #[track_caller]
    pub(crate) fn quiet(&mut self, cq: usize, time: Duration) {
        let start = Instant::now();
        loop {
            assert_eq!(self.poll(cq, 1), [], "nothing should have completed");
            if start.elapsed() >= time {
                return;
            }
        }
    }

    #[track_caller]
    pub(crate) fn fill(&mut self, region: usize, offset: usize, len: usize, seed: u64) {
        self.get(op::FILL, &[region as u64, offset as u64, len as u64, seed]);
    }

    /// The bytes are those of the pattern `seed` from its position `first`.
    #[track_caller]
    pub(crate) fn check_from(&mut self, region: usize, offset: usize, len: usize, seed: u64, first: usize) {
        let words = [region, offset, len, seed as usize, first].map(|w| w as u64);
        let wrong = self.get(op::CHECK, &words)[0];
        assert_eq!(wrong, u64::MAX, "byte {wrong} of {len} is wrong");
    }

    #[track_caller]
    pub(crate) fn check(&mut self, region: usize, offset: usize, len: usize, seed: u64) {
        self.check_from(region, offset, len, seed, 0);
    }

    #[track_caller]
    pub(crate) fn read(&mut self, region: usize, offset: usize, len: usize) -> Vec<u8> {
        let words = self.get(op::READ, &[region, offset, len].map(|w| w as u64));
        words.into_iter().map(|w| w as u8).collect()
    }

    #[track_caller]
    pub(crate) fn arm(&mut self, cq: usize, solicited: bool) {
        self.get(op::ARM, &[cq as u64, u64::from(solicited)]);
    }

    #[track_caller]
    pub(crate) fn is_ready(&mut self, channel: usize, ms: u64) -> bool {
        self.get(op::READY, &[channel as u64, ms])[0] != 0
    }

    #[track_caller]
    pub(crate) fn number(&mut self, command: u64) -> u64 {
        self.get(command, &[])[0]
    }

    /// Destroys everything; nothing may refuse.
    pub(crate) fn close(mut self) {
        assert_eq!(self.errno(op::CLOSE, &[]), 0, "an object could not be destroyed");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Self::Remote { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The life of a far end: executes what it is told until its input ends.
pub(crate) fn serve(provider: &'static Provider, device: &str) {
    let mut rig = Rig::open(provider, device);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let answer = rig.execute(&parse(&line));
        if writeln!(out, "{}", row(answer.iter())).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn row<'a>(words: impl Iterator<Item = &'a u64>) -> String {
    words.map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn parse(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| word.parse().expect("words are integers")).collect()
}

pub(crate) fn global_route(gid: [u64; 2]) -> ibv_ah_attr {
    let mut raw = [0; 16];
    raw[..8].copy_from_slice(&gid[0].to_be_bytes());
    raw[8..].copy_from_slice(&gid[1].to_be_bytes());
    ibv_ah_attr {
        grh: ibv_global_route { dgid: ibv_gid { raw }, hop_limit: 64, ..ibv_global_route::default() },
        is_global: 1,
        port_num: 1,
        ..ibv_ah_attr::default()
    }
}

impl Side {
    /// An element of the region.
    pub(crate) fn at(&self, offset: usize, len: usize) -> Element {
        [self.region as u64, offset as u64, len as u64, 0]
    }
}

impl Send {
    /// A signalled Send.
    pub(crate) fn new(id: u64, elements: &[Element]) -> Self {
        let elements = elements.to_vec();
        Self { id, flags: IBV_SEND_SIGNALED, opcode: IBV_WR_SEND, imm: 0, to: None, elements }
    }

    pub(crate) fn unsignaled(mut self) -> Self {
        self.flags &= !IBV_SEND_SIGNALED;
        self
    }

    pub(crate) fn flag(mut self, flag: u32) -> Self {
        self.flags |= flag;
        self
    }

    pub(crate) fn immediate(mut self, data: u32) -> Self {
        (self.opcode, self.imm) = (IBV_WR_SEND_WITH_IMM, data);
        self
    }

    pub(crate) fn to(mut self, handle: usize, number: u32, qkey: u32) -> Self {
        self.to = Some((handle, number, qkey));
        self
    }
}

/// What a case runs on.
pub(crate) struct Bench {
    pub(crate) provider: &'static Provider,
    pub(crate) device: String,
    pub(crate) near: Node,
    pub(crate) far: Node,
    pub(crate) processes: bool,
}

impl Bench {
    pub(crate) fn new(provider: &'static Provider, device: &str, processes: bool) -> Self {
        let near = Node::local(provider, device);
        let far = if processes { Node::remote(provider, device) } else { Node::local(provider, device) };
        Self { provider, device: device.to_owned(), near, far, processes }
    }

    /// One more far end.
    pub(crate) fn another(&self) -> Node {
        if self.processes {
            Node::remote(self.provider, &self.device)
        } else {
            Node::local(self.provider, &self.device)
        }
    }

    /// Two connected queue pairs in RTS.
    #[track_caller]
    pub(crate) fn connected(&mut self, shape: &Shape, tuning: &Tuning) -> (Side, Side) {
        let (a, b) = (self.near.side(shape), self.far.side(shape));
        self.connect(&a, &b, tuning);
        (a, b)
    }

    #[track_caller]
    pub(crate) fn connect(&mut self, a: &Side, b: &Side, tuning: &Tuning) {
        self.near.init(a);
        self.far.init(b);
        self.near.ready_to_receive(a, b.number, b.gid, tuning);
        self.far.ready_to_receive(b, a.number, a.gid, tuning);
        self.near.ready_to_send(a, tuning);
        self.far.ready_to_send(b, tuning);
    }

    pub(crate) fn close(self) {
        self.near.close();
        self.far.close();
    }
}
