//! Options for opening a queue.

use std::time::Duration;

use super::commit::Durability;
use crate::chronicle::format::blocks;
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::protocol::lock::recovery::ForceUnlock;
use crate::os::clock::Clock;
use crate::sealed::cipher::Encryption;
use crate::sealed::packing::Method;

/// How to open a queue. `None` means the queue's stored value, or the default for a new queue.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct Options {
    /// The roll cycle the caller named.
    pub roll_cycle: Option<RollCycle>,
    /// Change no byte of the directory.
    pub read_only: bool,
    /// Create the directory and the table if missing.
    pub create: bool,
    /// The time that chooses the cycle.
    pub clock: Clock,
    /// Epoch in milliseconds.
    pub epoch_ms: Option<i64>,
    /// Time of day of the roll, `HH:mm`.
    pub roll_time: Option<String>,
    /// Its zone, by its IANA name.
    pub roll_time_zone: Option<String>,
    /// Slots of new index arrays.
    pub index_count: Option<u32>,
    /// Every n-th message is indexed, in new files.
    pub index_spacing: Option<u32>,
    /// Chronicle's name of the wire type.
    pub wire_type: Option<String>,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// The queue's id in message history.
    pub source_id: i32,
    /// How long to wait for a live holder of the write lock.
    pub timeout: Duration,
    /// When the write lock may be taken by force.
    pub force_unlock: ForceUnlock,
    /// Buffer a document while another writer holds the write lock.
    pub double_buffer: bool,
    /// The grace time after which a tailer leaves an unchanged file without an end-of-file marker.
    pub eof_grace: Option<Duration>,
    /// Run a thread that prepares file space ahead of a fast appender.
    pub pretouch: bool,
    /// The durability of appends.
    pub durability: Durability,
    /// How long messages are collected for one sync.
    pub group_commit: Duration,
    /// Warn when less than this percentage of the disk is free; 0: never for this reason.
    pub low_space_percent: u8,
    /// Warn when fewer bytes are free; None: 200 MiB, unless the percentage is 0.
    pub low_space_bytes: Option<u64>,
    /// Count and time appends and reads.
    pub metrics: bool,
    /// Record the times of appends.
    pub time_index: bool,
    /// Record checksums of appended messages.
    pub append_checksums: bool,
    /// Refuse a new cycle that begins more milliseconds than this after the newest one ended.
    pub max_clock_ahead_ms: Option<u64>,
    /// Report which files are opened and released.
    pub file_events: bool,
    /// Tailers see only messages that a replica has acknowledged.
    pub read_after_replica_acknowledged: bool,
    /// Whether and how messages are encrypted.
    pub encryption: Encryption,
    /// How messages are compressed.
    pub compression: Option<Method>,
    /// Permission bits of new files.
    pub file_mode: u32,
    /// Allow opening for writing on a network file system.
    pub allow_network: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            roll_cycle: None,
            read_only: false,
            create: true,
            clock: Clock::System,
            epoch_ms: None,
            roll_time: None,
            roll_time_zone: None,
            index_count: None,
            index_spacing: None,
            wire_type: None,
            block_bytes: blocks::DEFAULT_BLOCK,
            source_id: 0,
            timeout: Duration::from_secs(10),
            force_unlock: ForceUnlock::Dead,
            double_buffer: false,
            eof_grace: Some(Duration::from_secs(1)),
            pretouch: true,
            durability: Durability::Process,
            group_commit: Duration::ZERO,
            low_space_percent: 5,
            low_space_bytes: None,
            metrics: false,
            time_index: false,
            append_checksums: false,
            max_clock_ahead_ms: None,
            file_events: false,
            read_after_replica_acknowledged: false,
            encryption: Encryption::No,
            compression: None,
            file_mode: 0o600,
            allow_network: false,
        }
    }
}
