//! Known departures of devices from the conformance cases, by theme. Each departure has a reason
//! and the cases that are skipped because of it.
//!
//! `RDMASCOPE_CONFORMANCE_DEPARTURES=run` runs these cases nevertheless, and lists cases that pass:
//! remove their entries.

use crate::runner::Skip;

/// Related departures of one kind of device.
pub struct Theme {
    /// The kind of device: the name without the number, such as `rxe`.
    pub kind: &'static str,
    pub title: &'static str,
    /// Departures with the place in the device's code, and the cases that they violate.
    pub departures: &'static [Departure],
    /// Departures that do not occur in every run.
    pub at_times: &'static [Departure],
}

/// The reason, and the cases that are skipped because of it.
pub type Departure = (&'static str, &'static [&'static str]);

/// Why a case is skipped for a kind of device.
pub fn of(kind: &str, case: &str) -> Option<Skip> {
    find(DEPARTURES, kind, case)
}

/// All known departures. Files are in drivers/infiniband of Linux 6.1 (in sw/rxe if no directory is
/// named) and in rdma-core 44 (providers/, libibverbs/).
pub const DEPARTURES: &[Theme] = &[
    Theme {
        kind: "rxe",
        title: "Changes of state",
        departures: &[
            (
                "a failed send takes UC and UD to ERR, never to SQE: rxe_completer() (rxe_comp.c) calls rxe_qp_error() for all",
                &[
                    "states::every_transition_from_sqe",
                    "states::every_attribute_from_sqe",
                    "behaviour::a_stopped_send_queue_still_receives_and_goes_on",
                ],
            ),
            (
                "a wrong cur_qp_state is accepted: rxe_qp_chk_attr() (rxe_qp.c) checks the transition from that state",
                &["states::a_wrong_current_state_is_refused"],
            ),
            (
                "rxe_qp_chk_attr() (rxe_qp.c) accepts MTU 0, 25-bit queue-pair numbers, RNR timers over 31, retries over 7",
                &["states::values_that_mean_nothing_are_refused"],
            ),
            (
                "rxe_qp_chk_attr() (rxe_qp.c) checks neither the P_Key index nor max_dest_rd_atomic against the device",
                &["states::what_the_device_has_not_is_refused"],
            ),
            (
                "a drained UC pair takes no new route: modify_qp() (core/uverbs_cmd.c) adds a port, which UC may not change",
                &["states::a_drained_uc_pair_takes_another_route"],
            ),
            (
                "sends posted in SQD wait until the next post: rxe_qp_from_attr() (rxe_qp.c) does not start the requester in RTS",
                &["behaviour::what_was_held_back_is_sent_in_rts", "rights::a_drained_queue_reaches_nothing"],
            ),
            (
                "completions from before RESET remain: rxe_qp_reset() (rxe_qp.c) empties only the work queues",
                &["behaviour::reset_forgets_completions", "srq::a_pair_that_goes_gives_its_places_back"],
            ),
        ],
        at_times: &[
            (
                "RESET under traffic corrupts the receive ring (ENOMEM): rxe_qp_reset() (rxe_qp.c) does not stop the responder",
                &["lifecycle::resetting_while_sends_arrive"],
            ),
            (
                "a message still arrives after ERR if it had begun: rxe_qp_error() (rxe_qp.c) does not wait for the responder",
                &["rights::nothing_arrives_after_the_connection"],
            ),
        ],
    },
    Theme {
        kind: "rxe",
        title: "Posting",
        departures: &[
            (
                "bad_wr is null if the state refuses a post: rxe_post_send(), rxe_post_recv() (providers/rxe/rxe.c)",
                &["behaviour::what_a_state_refuses_is_named"],
            ),
            (
                "a send that is refused before RTS is sent in RTS: rxe_post_send() (providers/rxe/rxe.c) leaves it in the ring",
                &["behaviour::a_refused_send_is_not_sent_later"],
            ),
            (
                "receives posted in ERR are not flushed: rxe_post_recv() (providers/rxe/rxe.c) does not call the kernel",
                &[
                    "behaviour::error_state_flushes_receives_posted_to_it",
                    "errors::flushed_receives_leave_their_queue",
                    "events::immediate_flushes_are_announced",
                ],
            ),
            (
                "unknown opcodes are accepted, read beyond rxe_wr_opcode_info[] (rxe_loc.h), and fail as LOC_QP_OP_ERR",
                &["queues::unknown_operations_are_refused"],
            ),
            (
                "inline reads and atomics are accepted: validate_send_wr() (providers/rxe/rxe.c) checks only their length",
                &["rights::what_has_no_payload_is_not_inline"],
            ),
            (
                "a read waits for ever if max_rd_atomic is 0: check_init_depth() (rxe_req.c) waits for another read to end",
                &["rights::without_depth_nothing_is_read"],
            ),
            (
                "create_qp returns the requested depths, query_qp the actual 2^n - 1: rxe_qp_init_req/_resp() (rxe_qp.c)",
                &["queues::creation_says_how_deep_the_queues_are"],
            ),
        ],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Completions",
        departures: &[
            (
                "a wrong key of a send is LOC_QP_OP_ERR: copy_data() (rxe_mr.c) returns EINVAL, but rxe_req.c expects EFAULT",
                &[
                    "access::sends_by_a_wrong_key_are_protection_errors",
                    "rights::the_requesters_memory_is_checked",
                ],
            ),
            (
                "forbidden memory of a receive is LOC_QP_OP_ERR: send_data_in() (rxe_resp.c) treats it as a malformed request",
                &["access::receives_into_forbidden_memory_are_protection_errors"],
            ),
            (
                "a message longer than its receive fails the queue pair, also over UC and UD: send_data_in() (rxe_resp.c)",
                &[
                    "errors::a_receive_that_is_too_small_is_named",
                    "errors::uc_drops_what_is_too_long",
                    "datagram::too_small_a_receive_is_kept",
                    "srq::a_shared_receive_that_is_too_small_is_kept",
                ],
            ),
            (
                "errors do not wake a wait for solicited completions: do_complete() in rxe_comp.c and rxe_resp.c",
                &["events::errors_wake_the_solicited"],
            ),
        ],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Retries",
        departures: &[(
            "seven retries are infinite, also without any answer: rxe_completer() (rxe_comp.c) does not count down from seven",
            &["errors::seven_retries_are_seven"],
        )],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Extended verbs",
        departures: &[
            (
                "all elements of a list get the length of the first: wr_set_sge_list() (providers/rxe/rxe.c)",
                &["builders::setters_say_what_is_sent", "builders::ud_builds_every_operation"],
            ),
            (
                "end_poll skips a completion if next_poll found none: cq_end_poll() (providers/rxe/rxe.c)",
                &[
                    "extended::members_are_those_of_a_completion",
                    "extended::an_empty_queue_has_nothing_to_read",
                    "extended::every_completion_is_read_once",
                    "extended::plain_polls_serve_an_extended_queue",
                    "extended::failures_are_read_as_well",
                    "extended::an_extended_queue_wakes_its_channel",
                ],
            ),
            (
                "completions have no time stamps: RXE_SUP_WC_FLAGS (providers/rxe/rxe.c), and the device has no readable clock",
                &[
                    "extended::stamps_say_when_a_send_was_done",
                    "extended::stamps_say_when_a_message_came",
                    "extended::stamps_keep_the_order_of_completions",
                    "extended::receives_are_shared_as_well",
                    "extended::the_clock_has_its_frequency",
                ],
            ),
            (
                "unknown creation flags are ignored: ibv_cmd_create_cq_ex() (libibverbs/cmd_cq.c)",
                &["extended::what_a_queue_has_not_cannot_be_asked_for"],
            ),
        ],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Asynchronous events",
        departures: &[
            (
                "responder errors and first messages cause no event: rxe_resp.c raises only the event of a shared queue's limit",
                &[
                    "async_events::a_refused_access_is_an_event_of_the_target",
                    "async_events::a_refused_request_is_an_event_of_the_target",
                    "async_events::the_first_message_establishes_the_communication",
                    "async_events::a_sleeper_is_woken_by_a_peer",
                    "async_events::a_failed_pair_tells_that_it_takes_no_more",
                    "wrapper::an_event_names_its_queue_pair",
                ],
            ),
            (
                "a drained send queue always causes an event: req_next_wqe() (rxe_req.c) ignores en_sqd_async_notify",
                &["async_events::nobody_is_told_unasked"],
            ),
        ],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Multicast",
        departures: &[(
            "a host does not receive its own multicasts: rxe_mcast_add() (rxe_mcast.c) does not join the IP group",
            &[
                "multicast::a_group_reaches_its_members",
                "multicast::the_header_names_the_group",
                "multicast::every_copy_needs_the_key_and_a_receive",
                "multicast::who_joins_later_is_reached_and_who_has_left_is_not",
                "multicast::numbers_of_groups_and_pairs_do_not_mix",
            ],
        )],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Datagrams",
        departures: &[(
            "a controlled Q_Key is sent unchanged: init_req_packet() (rxe_req.c) never uses the queue pair's own Q_Key",
            &["datagram::a_key_with_the_high_bit_is_the_queue_pairs_own"],
        )],
        at_times: &[],
    },
    Theme {
        kind: "rxe",
        title: "Connections",
        departures: &[
            (
                "a waiting request is lost if its listener migrates: ucma_migrate_id() (core/ucma.c) keeps its ctx->file",
                &["channels::a_listener_takes_its_requests_along"],
            ),
            (
                "loopback addresses belong to no device: cma_acquire_dev_by_src_ip() (core/cma.c) finds no GID of lo",
                &["addresses::loopback_leads_to_the_own_host"],
            ),
            (
                "a reply is still repeated after a reject: cm_send_rej_locked() (core/cm.c) does not cancel the REP",
                &["refusals::who_is_accepted_twice_is_rejected"],
            ),
        ],
        at_times: &[],
    },
    Theme {
        kind: "softdev on a link",
        title: "Messages under way",
        departures: &[(
            "a message takes time to arrive, and may find a receive that was posted after it",
            &["errors::an_early_receive_does_not_shorten_the_wait"],
        )],
        at_times: &[(
            "a message takes time to arrive: it may not be there when the case polls for it",
            &[
                "errors::uc_drops_what_nobody_awaits",
                "datagram::what_nobody_awaits_is_dropped",
                "datagram::a_key_with_the_high_bit_is_the_queue_pairs_own",
                "datagram::many_senders_share_a_short_queue",
                "multicast::every_copy_needs_the_key_and_a_receive",
                "events::a_descriptor_that_does_not_block_says_so",
                "extended::every_completion_is_read_once",
                "extended::stamps_say_when_a_message_came",
                "extended::another_thread_waits_for_its_turn_to_read",
                "extended::a_resized_queue_keeps_its_completions",
                "srq::a_pair_that_goes_gives_its_places_back",
            ],
        )],
    },
];

fn find(themes: &[Theme], kind: &str, case: &str) -> Option<Skip> {
    let lists = |theme: &Theme| [(theme.departures, false), (theme.at_times, true)];
    let mut lists = themes.iter().filter(|theme| theme.kind == kind).flat_map(lists);
    lists.find_map(|(list, at_times)| {
        let (reason, _) = list.iter().find(|(_, cases)| cases.contains(&case))?;
        Some(Skip { why: format!("{kind}: {reason}"), at_times })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_departure_is_of_one_kind_and_of_the_cases_that_it_names() {
        const ERRORS: Theme = Theme {
            kind: "rxe",
            title: "Errors",
            departures: &[("always", &["errors::first", "errors::third"])],
            at_times: &[("sometimes", &["errors::fourth"])],
        };
        for (kind, case, expected) in [
            ("rxe", "errors::first", Some(("rxe: always", false))),
            ("rxe", "errors::third", Some(("rxe: always", false))),
            ("rxe", "errors::fourth", Some(("rxe: sometimes", true))),
            ("rxe", "errors::second", None),
            ("softdev", "errors::first", None),
        ] {
            let expected = expected.map(|(why, at_times)| Skip { why: why.to_owned(), at_times });
            assert_eq!(find(&[ERRORS], kind, case), expected, "{kind} {case}");
        }
    }

    #[test]
    fn each_departure_names_cases_that_there_are_and_no_case_departs_twice() {
        let mut seen = HashSet::new();
        for theme in DEPARTURES {
            for (reason, cases) in theme.departures.iter().chain(theme.at_times) {
                assert!(!cases.is_empty(), "{reason}");
                for case in *cases {
                    let mut all = crate::CASES.iter().chain(crate::manager::CASES);
                    assert!(all.any(|known| known.name == *case), "there is no case {case}");
                    assert!(seen.insert((theme.kind, case)), "{case} has two departures");
                }
            }
        }
    }
}
