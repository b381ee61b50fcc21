//! The table store `metadata.cq4t`: [`file`] creates and maps it, [`keys`] finds and adds its
//! entries, [`store`] is an open table and [`shared_file`] its file, [`registry`] the tables that
//! this process has open, and [`tailers_in_use`] the named tailers that are open.

#[cfg(not(loom))]
pub mod file;
pub mod keys;
#[cfg(not(loom))]
pub mod registry;
#[cfg(not(loom))]
pub mod shared_file;
#[cfg(not(loom))]
pub mod store;
#[cfg(not(loom))]
pub mod tailers_in_use;
