//! Events: how they are posted into a queue's ring, and how the owner reads them.

pub(crate) mod record;
pub(crate) mod ring;
