//! Runs the models, and one that must fail.

use models::conduit::credits::models as of_credits;
use models::conduit::firehose::models as of_firehose;
use models::conduit::models as plain;
use models::portals::models as of_portals;
use models::portals::sleep_models as of_sleep;
use models::runtime::models as of_operations;

macro_rules! models {
    ($($of:ident::$name:ident)*) => {
        $(#[test]
        fn $name() {
            $of::$name();
        })*
    };
}

models! {
    plain::chunks_have_one_holder
    plain::tickets_come_back
    plain::locks_exclude
    plain::the_last_reference_sees_all
    plain::slack_never_falls_below_zero
    plain::halves_meet_once
    plain::a_change_is_announced_until_it_is_dealt_with
    plain::changes_are_taken_as_they_were
    of_credits::loans_keep_the_sum
    of_credits::who_holds_more_is_noted
    of_credits::records_exclude
    of_credits::one_revoke_at_a_time
    of_credits::credits_are_taken_once
    of_credits::an_epoch_is_reported_once
    of_firehose::a_hold_is_of_the_region_that_was_looked_for
    of_firehose::a_held_entry_is_not_closed
    of_firehose::a_stale_entry_is_freed_once
    of_operations::fragments_that_were_counted_are_in_flight
    of_portals::a_ring_with_room_is_not_full
    of_portals::a_ring_with_room_is_not_full_for_siblings
    of_sleep::a_doorbell_wakes
    of_sleep::a_bell_wakes_all
    of_sleep::a_ring_before_takes_none_away
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_race_is_found() {
    plain::a_planted_race();
}
