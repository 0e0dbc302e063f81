//! x
use crate::Case;
/// x
pub fn cases() -> Vec<Case> {
    Vec::new()
}
