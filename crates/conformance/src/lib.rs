//! One list of cases for every device: the promises of the InfiniBand specification and of
//! libibverbs' man pages to a program. A case calls only verbs. It runs with its near and its far
//! node in one process and, if it uses both nodes, again in two processes.
//!
//! * [`subject`]: the tested device, its port and its GID.
//! * [`rig`]: verbs objects behind a table of commands; [`node`]: a rig in this process or in
//!   another one; [`shape`]: parameters of objects and requests; [`Bench`]: the two nodes of a
//!   case.
//! * [`runner`]: runs named trials with a time limit.
//! * [`manager`]: the list of cases for connections through librdmacm.
//! * the cases, by subject; [`departures`]: cases that a device is known to violate.
//!
//! # Invariants
//!
//! * Every device runs the one conformance list (`crates/conformance/`). A departure of a kernel
//!   device is an entry with its reason, never a condition in a case. Statistics are compared with
//!   numpy. The report is opened in a real browser. Tests include dead, silent, foreign and
//!   misbehaving agents.

#![allow(missing_docs, reason = "test code: most names need no explanation")]

pub mod bench;
pub mod departures;
pub mod manager;
pub mod node;
pub mod rig;
pub mod runner;
pub mod shape;
pub mod subject;

mod access;
mod async_events;
mod atomics;
mod behaviour;
mod builders;
mod datagram;
mod errors;
mod events;
mod extended;
mod lifecycle;
mod multicast;
mod program;
mod queues;
mod rdma;
mod rights;
mod srq;
mod states;
mod transfer;
mod wrapper;

pub use bench::Bench;
pub use node::{Node, PATIENCE};
pub use shape::{CmEvent, Parameters, QKEY, REMOTE, Remote, SERVICES, Send, Shape, Side, Tuning, Wc, ids};
pub use subject::Subject;

use runner::{Skip, Trial};

/// A case.
pub struct Case {
    pub name: &'static str,
    /// Whether the case uses both nodes.
    pub two_ends: bool,
    pub run: fn(&mut Bench),
}

/// Runs the cases of the list that the program's arguments select, and ends the program.
pub fn run(subject: &Subject) -> ! {
    run_cases(subject, CASES)
}

/// Runs the given cases that the program's arguments select, and ends the program.
pub fn run_cases(subject: &Subject, cases: &'static [Case]) -> ! {
    run_some(subject, cases, |_| None)
}

/// As [`run_cases`], but skips the cases for which `why_not` returns a reason.
fn run_some(subject: &Subject, cases: &'static [Case], why_not: impl Fn(&Case) -> Option<Skip>) -> ! {
    let make = |case: &'static Case, processes| {
        let skipped = why_not(case).or_else(|| departures::of(subject.kind(), case.name));
        trial(subject, case, processes, skipped)
    };
    let alone = cases.iter().map(|case| make(case, false));
    let across = cases.iter().filter(|case| case.two_ends).map(|case| make(case, true));
    runner::run(&alone.chain(across).collect::<Vec<_>>())
}

fn trial(subject: &Subject, case: &'static Case, processes: bool, skipped: Option<Skip>) -> Trial {
    let place = if processes { "two_processes" } else { "one_process" };
    let subject = subject.clone();
    let run = move || {
        let mut bench = Bench::new(&subject, processes);
        (case.run)(&mut bench);
        bench.close();
    };
    Trial { name: format!("{place}::{}", case.name), skipped, run: Box::new(run) }
}

/// Cases that use both nodes, by the names of their functions.
#[macro_export]
macro_rules! two_ends {
    ($($case:ident)*) => {
        &[$($crate::Case { name: stringify!($case), two_ends: true, run: $case }),*]
    };
}

/// Defines a list of cases: for each module, the cases with one node and the cases with two.
macro_rules! cases {
    ($list:ident $($module:ident { one: $($one:ident)*; two: $($two:ident)*; })*) => {
        /// All cases.
        pub const $list: &[$crate::Case] = &[$(
            $($crate::Case {
                name: concat!(stringify!($module), "::", stringify!($one)),
                two_ends: false,
                run: $module::$one,
            },)*
            $($crate::Case {
                name: concat!(stringify!($module), "::", stringify!($two)),
                two_ends: true,
                run: $module::$two,
            },)*
        )*];
    };
}
pub(crate) use cases;

cases! {
    CASES
    states {
        one: every_transition_of_rc every_transition_of_uc every_transition_of_ud
            every_attribute_of_rc every_attribute_of_uc every_attribute_of_ud
            every_transition_from_sqe every_attribute_from_sqe
            a_drained_uc_pair_takes_another_route
            values_out_of_range_are_refused values_that_mean_nothing_are_refused
            what_the_device_has_not_is_refused a_wrong_current_state_is_refused
            attributes_read_back;
        two: ;
    }
    behaviour {
        one: sends_are_refused_before_rts receives_are_refused_in_reset_only
            what_a_state_refuses_is_named
            error_state_flushes_sends_posted_to_it error_state_flushes_receives_posted_to_it;
        two: a_refused_send_is_not_sent_later
            a_stopped_send_queue_still_receives_and_goes_on
            a_drained_queue_holds_sends_back what_was_held_back_is_sent_in_rts
            reset_forgets_requests_and_connects_again reset_forgets_completions
            reset_ends_the_old_connection
            flushed_receives_do_not_outlive_a_reset;
    }
    transfer {
        one: ;
        two: rc_carries_every_size uc_carries_every_size ud_carries_every_size
            own_memory_is_reached_as_well
            gathers_and_scatters_across_odd_cuts
            inline_buffer_may_be_reused_at_once inline_limit_is_kept
            immediate_data_arrives
            every_mtu_carries_the_same both_directions_at_once
            a_thousand_messages_keep_their_order loopback_to_itself;
    }
    queues {
        one: creation_says_how_deep_the_queues_are;
        two: unsignaled_sends_give_their_place_back_with_a_signaled_one
            send_queue_has_its_limit
            every_send_is_signaled_where_the_queue_says_so
            unsignaled_sends_do_not_complete
            receive_queue_has_its_limit
            lists_stop_at_the_bad_request unknown_operations_are_refused
            too_many_elements_are_refused
            completions_keep_the_order_of_posting
            one_queue_serves_several_pairs_fairly
            receives_do_not_starve_behind_sends
            an_overrun_queue_says_so;
    }
    errors {
        one: ;
        two: receiver_not_ready_ends_at_once_without_retries
            receiver_not_ready_waits_as_long_as_it_is_told
            receiver_not_ready_waits_for_ever_with_seven
            an_early_receive_does_not_shorten_the_wait
            an_absent_peer_exhausts_the_retries
            seven_retries_are_seven
            a_wrong_sequence_number_exhausts_the_retries
            uc_begins_with_any_sequence_number
            another_service_exhausts_the_retries
            a_destroyed_peer_exhausts_the_retries
            a_peer_in_error_exhausts_the_retries
            rc_fails_both_ends_when_the_receive_is_too_small
            a_receive_that_is_too_small_is_named
            uc_drops_what_nobody_awaits uc_drops_what_is_too_long
            a_failed_send_completes_although_unsignaled
            a_failure_flushes_both_queues_in_order
            sends_behind_a_waiting_one_are_flushed_in_order
            flushed_sends_leave_their_queue flushed_receives_leave_their_queue;
    }
    access {
        one: contradictory_registrations_are_refused memory_that_cannot_be_pinned_is_refused;
        two: sends_from_forbidden_memory_fail_on_rc sends_from_forbidden_memory_fail_on_uc
            sends_from_forbidden_memory_fail_on_ud
            sends_from_beyond_a_region_are_protection_errors
            sends_by_a_wrong_key_are_protection_errors
            receives_into_forbidden_memory_fail_on_rc receives_into_forbidden_memory_fail_on_uc
            receives_into_forbidden_memory_fail_on_ud
            receives_into_forbidden_memory_are_protection_errors
            sending_needs_no_write_access nothing_is_written_beyond_the_message
            an_old_key_stays_dead an_empty_element_needs_no_key;
    }
    rdma {
        one: ;
        two: rc_writes_every_size uc_writes_every_size own_memory_is_written_as_well
            rc_reads_every_size own_memory_is_read_as_well
            writes_gather_and_reads_scatter_across_odd_cuts
            every_mtu_writes_and_reads_the_same
            an_immediate_takes_a_receive
            immediates_and_sends_take_receives_in_turn
            an_immediate_waits_for_its_receive
            an_immediate_without_receive_fails_without_retries
            uc_drops_an_immediate_that_nobody_awaits
            an_immediate_can_be_solicited
            writes_arrive_before_the_send_that_follows_them
            a_write_shows_to_whoever_watches_memory
            rc_volleys_show_their_last_byte_last uc_volleys_show_their_last_byte_last
            own_memory_shows_its_last_byte_last
            an_inline_write_leaves_its_buffer_at_once
            no_bytes_need_no_key
            a_queue_pair_reaches_its_own_memory
            a_read_sees_the_writes_before_it a_fenced_send_takes_what_the_read_has_brought
            unsignaled_requests_do_not_complete;
    }
    atomics {
        one: ;
        two: atomics_answer_with_what_was_there atomics_reach_own_memory_as_well
            additions_of_all_ends_count additions_in_own_memory_count
            swaps_of_all_ends_count swaps_in_own_memory_count
            a_misaligned_word_is_refused an_answer_needs_room;
    }
    rights {
        one: ;
        two: rc_denies_what_no_registration_allows rc_denies_the_same_in_own_memory
            uc_drops_what_no_registration_allows
            rc_refuses_what_the_queue_pair_does_not_allow
            uc_drops_what_the_queue_pair_does_not_allow
            a_region_allows_what_it_was_registered_for
            the_requesters_memory_is_checked
            nothing_arrives_after_deregistration
            nothing_arrives_in_own_memory_after_deregistration
            nothing_arrives_after_the_connection
            nobody_there_exhausts_the_retries
            operations_of_other_services_are_refused
            what_has_no_payload_is_not_inline
            what_is_posted_to_a_failed_pair_is_flushed
            a_drained_queue_reaches_nothing
            without_depth_nothing_is_read without_resources_nothing_is_served
            as_many_reads_as_the_device_says;
    }
    srq {
        one: attributes_of_a_shared_queue_are_checked;
        two: rc_pairs_take_from_one_queue uc_pairs_take_from_one_queue ud_pairs_take_from_one_queue
            shared_receives_in_own_memory_take_every_size
            receives_are_taken_in_the_order_of_posting an_immediate_takes_a_shared_receive
            an_empty_shared_queue_is_not_ready a_send_waits_for_a_shared_receive
            unreliable_messages_without_shared_receive_are_dropped
            a_shared_receive_that_is_too_small_fails_one_pair a_shared_receive_that_is_too_small_is_kept
            shared_receives_into_forbidden_memory_fail
            an_error_flushes_no_shared_receive a_pair_that_goes_gives_its_places_back
            a_shared_queue_has_its_limit lists_to_a_shared_queue_stop_at_the_bad_request
            a_pair_with_a_shared_queue_has_no_receives_of_its_own
            a_limit_is_kept_until_it_is_reached a_shared_queue_in_use_is_busy;
    }
    datagram {
        one: routes_that_do_not_exist_are_refused;
        two: header_names_both_ends a_datagram_has_one_packet_at_most
            wrong_keys_are_dropped a_key_with_the_high_bit_is_the_queue_pairs_own
            nobody_there_is_no_error
            too_small_a_receive_is_kept what_nobody_awaits_is_dropped
            many_senders_reach_one_receiver many_senders_share_a_short_queue
            a_connected_pair_takes_no_datagrams;
    }
    events {
        one: a_signal_interrupts_the_wait destruction_waits_for_the_acknowledgement
            a_queue_without_channel_may_be_armed;
        two: one_event_for_one_arming a_completion_before_arming_is_not_announced
            a_descriptor_that_does_not_block_says_so the_descriptor_can_be_polled
            only_solicited_completions_wake_the_solicited
            arming_for_all_is_not_weakened
            errors_wake_the_solicited
            sends_wake_their_own_queue a_blocked_wait_is_woken
            flushes_are_announced immediate_flushes_are_announced
            a_waiting_send_goes_on_while_its_process_sleeps
            a_send_that_waits_wakes_the_sleeper
            one_channel_serves_several_queues;
    }
    async_events {
        one: a_quiet_context_has_no_events a_signal_interrupts_the_wait
            a_drained_send_queue_says_so_where_it_is_asked nobody_is_told_unasked
            events_of_a_pair_that_has_gone_are_dropped destruction_waits_for_the_acknowledgement
            events_outlive_a_reset;
        two: a_refused_access_is_an_event_of_the_target a_refused_request_is_an_event_of_the_target
            what_a_completion_says_is_no_event
            the_first_message_establishes_the_communication
            a_ready_receiver_needs_no_telling
            an_overrun_queue_has_an_event
            a_sleeper_is_woken_by_a_peer
            a_shared_queue_tells_of_its_limit a_failed_pair_tells_that_it_takes_no_more;
    }
    multicast {
        one: what_is_no_group_is_refused joining_twice_is_joining_once a_member_is_not_destroyed;
        two: a_group_reaches_its_members the_header_names_the_group
            every_copy_needs_the_key_and_a_receive
            who_joins_later_is_reached_and_who_has_left_is_not
            numbers_of_groups_and_pairs_do_not_mix;
    }
    lifecycle {
        one: a_domain_in_use_is_busy a_completion_queue_in_use_is_busy a_channel_in_use_is_busy
            limits_of_creation_are_kept numbers_are_unique;
        two: objects_come_and_go_without_a_trace memory_comes_back
            destroying_while_sends_arrive resetting_while_sends_arrive;
    }
    builders {
        one: what_a_service_has_not_cannot_be_asked_for;
        two: rc_builds_every_operation uc_builds_every_operation ud_builds_every_operation
            setters_say_what_is_sent each_request_has_its_own_flags
            nothing_is_executed_before_completion an_aborted_batch_leaves_nothing
            an_error_refuses_the_whole_batch a_batch_has_room_or_is_refused
            batches_and_lists_keep_their_order another_thread_waits_for_its_turn;
    }
    extended {
        one: what_a_queue_has_not_cannot_be_asked_for the_clock_has_its_frequency
            a_device_query_fills_what_it_is_given a_port_query_fills_what_it_is_given;
        two: members_are_those_of_a_completion an_empty_queue_has_nothing_to_read
            every_completion_is_read_once plain_polls_serve_an_extended_queue
            failures_are_read_as_well another_thread_waits_for_its_turn_to_read
            an_extended_queue_wakes_its_channel
            stamps_say_when_a_send_was_done stamps_say_when_a_message_came
            stamps_keep_the_order_of_completions receives_are_shared_as_well
            a_resized_queue_keeps_its_completions;
    }
    wrapper {
        one: a_refused_change_says_why a_buffer_outlives_its_registration a_datagram_without_address_is_refused;
        two: services_carry_messages an_event_names_its_queue_pair;
    }
}
