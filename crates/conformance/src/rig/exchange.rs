//! Exchanges many messages in both directions and checks each of them.

use std::time::Instant;

use verbs::abi::*;

use super::{Rig, WC_WORDS};

impl Rig {
    /// Sends numbered messages and checks received ones, until all messages have been exchanged, a
    /// completion has an error, or nothing happens for a time. Returns the numbers of sent and
    /// received messages and the last status.
    ///
    /// Words: queue pair, send queue, receive queue, region, bytes of a message, outstanding
    /// requests, messages to send, messages to receive, milliseconds, address handle (0 for none,
    /// else its number + 1), queue-pair number, Q_Key.
    pub(super) fn exchange(&mut self, w: &[u64]) -> Vec<u64> {
        let [qp, send_cq, receive_cq, region, size, window, to_send, to_receive, idle_ms] = w[..9] else {
            panic!("twelve words");
        };
        let header = if w[9] == 0 { 0 } else { 40 };
        let slot = |n: u64, second_half: u64| (n % window + second_half * window) * (size + 64);
        let len = |n: u64| if n.is_multiple_of(3) { size } else { 8 + n * 64 % (size - 8) };
        let mut posted = 0;
        let mut received = 0;
        let mut sent = 0;
        let mut confirmed = 0;
        let mut last = Instant::now();
        let status = loop {
            while posted < to_receive.min(received + window) {
                let answer = self.receive(&[qp, 1, posted, 1, region, slot(posted, 1), size + header, 0]);
                assert_eq!(answer[0], 0, "post_recv");
                posted += 1;
            }
            if sent < to_send.min(confirmed + window) {
                self.number_message(region, slot(sent, 0), len(sent), sent);
                let request = [sent, u64::from(IBV_SEND_SIGNALED), u64::from(IBV_WR_SEND_WITH_IMM)];
                let mut words = vec![qp, 1];
                words.extend(request);
                words.extend([u64::from((sent as u32).to_be()), w[9], w[10], w[11], 0, 0, 0, 0, 1]);
                words.extend([region, slot(sent, 0), len(sent), 0]);
                let answer = self.send(&words);
                assert_eq!(answer[0], 0, "post_send");
                sent += 1;
            }
            let sends = self.poll(&[send_cq, 16]);
            let receives = self.poll(&[receive_cq, 16]);
            if let Some(bad) =
                sends[1..].chunks(WC_WORDS).chain(receives[1..].chunks(WC_WORDS)).find(|wc| wc[1] != 0)
            {
                break bad[1];
            }
            confirmed += sends[1..].chunks(WC_WORDS).len() as u64;
            for wc in receives[1..].chunks(WC_WORDS) {
                let n = u64::from(u32::from_be(wc[4] as u32));
                assert!(header != 0 || n == received, "message {n} arrived instead of {received}");
                assert_eq!(wc[3], len(n) + header, "length of message {n}");
                self.check_number(region, slot(wc[0], 1) + header, len(n), n);
                received += 1;
            }
            if sends.len() + receives.len() > 2 {
                last = Instant::now();
            } else {
                std::thread::yield_now(); // The peer may need this CPU.
            }
            if (confirmed == to_send && received == to_receive) || last.elapsed().as_millis() as u64 > idle_ms
            {
                break 0;
            }
        };
        vec![0, confirmed, received, status]
    }

    fn number_message(&mut self, region: u64, offset: u64, len: u64, n: u64) {
        let (at, len) = self.bytes(&[region, offset, len]);
        let words: Vec<u8> = (0..len as u64 / 8).flat_map(|i| (n << 32 | i).to_ne_bytes()).collect();
        // SAFETY: the range is in the region, and the words are not longer.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len()) };
    }

    fn check_number(&mut self, region: u64, offset: u64, len: u64, n: u64) {
        let bytes = self.copy(&[region, offset, len]);
        let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("eight bytes"));
        let wrong = (0..).zip(bytes.chunks_exact(8)).find(|(i, chunk)| word(chunk) != (n << 32 | *i));
        assert!(wrong.is_none(), "message {n} of {len} B is broken: {wrong:x?}");
    }
}
