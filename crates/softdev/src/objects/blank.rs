//! Completions with only their first members set.

use verbs::abi::*;

/// Returns a completion with these members; all others are 0.
#[inline]
pub(crate) fn blank_completion(
    wr_id: u64,
    status: ibv_wc_status,
    opcode: ibv_wc_opcode,
    qp_num: u32,
) -> ibv_wc {
    ibv_wc {
        wr_id,
        status,
        opcode,
        vendor_err: 0,
        byte_len: 0,
        imm_data: 0,
        qp_num,
        src_qp: 0,
        wc_flags: 0,
        pkey_index: 0,
        slid: 0,
        sl: 0,
        dlid_path_bits: 0,
    }
}
