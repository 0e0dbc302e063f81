//! Moving the bytes of messages: within one host by copies, otherwise in frames.

pub(crate) mod bytes;
pub(crate) mod copy;
pub(crate) mod framed;
pub(crate) mod framer;
