//! Active messages of the extended layer for its own handlers: a Short or, with a payload, a
//! Medium.
//!
//! Called by the collectives and the vector transfers. Invariant: the payload is
//! read before the call returns.
//!
//! An event with arguments lies in memory that any rank of the host can overwrite. Where a wrong
//! argument would leave a rank waiting without end, the last argument is a checksum of the others.
//! The number of an operation needs none: the table of operations refuses one that is not in
//! flight, and the search for lost messages finds the operation that stays open.

use crate::client_memory::Src;
use crate::conduit::Outgoing;
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;

/// Sends a request. `function` names the caller in messages.
pub(super) fn request(
    ctx: Ctx,
    function: &str,
    to: JobRank,
    handler: u8,
    args: &[i32],
    payload: Src<'_>,
) {
    // A call for each category: the conduit's code for a constant category is shorter.
    match payload.len() {
        0 => ctx.request(function, to, &Outgoing::short(handler, args)),
        _ => ctx.request(function, to, &Outgoing::medium(handler, args, payload)),
    };
}

/// Sends the reply of the handler that was given `token`.
pub(super) fn reply(
    ctx: Ctx,
    function: &str,
    token: &AmToken,
    handler: u8,
    args: &[i32],
    payload: Src<'_>,
) {
    match payload.len() {
        0 => ctx.reply_to(function, token, &Outgoing::short(handler, args)),
        _ => ctx.reply_to(function, token, &Outgoing::medium(handler, args, payload)),
    }
}

/// The checksum of these arguments.
pub(super) fn checksum(args: &[i32]) -> i32 {
    let add = |sum, arg: &i32| sys::checksum::add(sum, u64::from(*arg as u32));
    (args.iter().fold(args.len() as u64, add) >> 32) as i32
}

/// The arguments before the last, if that one is their checksum.
pub(super) fn without_checksum(args: &[i32]) -> Option<&[i32]> {
    let (&last, others) = args.split_last()?;
    (last == checksum(others)).then_some(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_arguments_are_found() {
        let mut args = [5, 0, 1, -7, 0, 0];
        args[5] = checksum(&args[..5]);
        assert_eq!(without_checksum(&args), Some(&args[..5]));
        for (i, bit) in (0..6).flat_map(|i| (0..32).map(move |bit| (i, bit))) {
            let mut changed = args;
            changed[i] ^= 1 << bit;
            assert_eq!(without_checksum(&changed), None);
        }
        assert_eq!(without_checksum(&args[..5]), None);
        assert_eq!(without_checksum(&[0; 6]), None);
        assert_eq!(without_checksum(&[]), None);
    }
}
