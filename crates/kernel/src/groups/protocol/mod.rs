//! Who may change which word, and in which order: [`claims`] are taken and acknowledged,
//! [`leases`] say until when, [`file`] makes and replaces side files, [`liveness`] says which
//! members are alive.

pub mod claims;
#[cfg(not(loom))]
pub mod file;
pub mod leases;
#[cfg(not(loom))]
pub mod liveness;
#[cfg(not(loom))]
pub mod tails;
