//! The write lock: [`gate`] checks the append lock, which comes first and which [`append_lock`]
//! keeps for a sink; [`word`] is the lock word in the table store, [`guard`] the lock while it is
//! held; [`recovery`] waits for it and takes it over from a dead holder; [`lock_wait`] says how
//! long to wait, [`open_document`] which document of this process holds it, [`held_since`] since
//! when it is held.

pub mod gate;
pub mod guard;
pub mod word;

#[cfg(not(loom))]
pub mod append_lock;
#[cfg(not(loom))]
pub mod held_since;
#[cfg(not(loom))]
pub mod lock_wait;
#[cfg(not(loom))]
pub mod open_document;
#[cfg(not(loom))]
pub mod recovery;
