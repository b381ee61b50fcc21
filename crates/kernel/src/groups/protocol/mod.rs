//! Who may change which word, and in which order: [`claims`] are taken and acknowledged,
//! [`file`] makes and replaces side files, [`liveness`] says which members are alive.

pub mod claims;
#[cfg(not(loom))]
pub mod file;
#[cfg(not(loom))]
pub mod liveness;
#[cfg(not(loom))]
pub mod tails;
