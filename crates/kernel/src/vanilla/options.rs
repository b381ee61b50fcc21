use std::time::Duration;

use jiff::tz::TimeZone;

use super::format::cycle;
use super::format::entry::TID_BITS_RANGE;
use super::protocol::detect::Asked;
use crate::os::clock::Clock;
use crate::{Error, Result};

/// The receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumption {
    /// Every reader gets every message.
    Topic,
    /// Readers claim messages, each of which goes to one reader. Every message begins with a claim
    /// word.
    Queue,
}

/// How to open a Vanilla Chronicle. Options that the files show may be omitted.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent switches, as the opener names them
pub struct VanillaOptions {
    /// Change no byte of the directory.
    pub read_only: bool,
    /// Create the directory if missing.
    pub create: bool,
    /// Chooses the cycle.
    pub clock: Clock,
    /// A named cycle: `DAYS` and the like.
    pub roll_cycle: Option<String>,
    /// Pattern of the directories.
    pub cycle_format: Option<String>,
    /// Milliseconds of a cycle.
    pub cycle_length_ms: Option<i64>,
    /// Sequence numbers of a cycle, a power of two.
    pub entries_per_cycle: Option<u64>,
    /// The zone that directories are named in.
    pub zone: Option<TimeZone>,
    /// Block sizes and thread-id bits.
    pub layout: Asked,
    /// Every append returns only when its message is on the medium.
    pub synchronous: bool,
    /// The receivers of a message.
    pub consumption: Consumption,
    /// How long the preceding cycle is checked for late entries.
    pub linger: Duration,
    /// Permission bits of files.
    pub file_mode: u32,
    /// Write on a network file system.
    pub allow_network: bool,
}

impl Default for VanillaOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            create: true,
            clock: Clock::System,
            roll_cycle: None,
            cycle_format: None,
            cycle_length_ms: None,
            entries_per_cycle: None,
            zone: None,
            layout: Asked::default(),
            synchronous: false,
            consumption: Consumption::Topic,
            linger: Duration::from_secs(10),
            file_mode: 0o600,
            allow_network: false,
        }
    }
}

impl VanillaOptions {
    /// An error for numbers that no queue can have.
    pub fn check(&self) -> Result<()> {
        if let Some(name) = self.roll_cycle.as_deref().filter(|name| cycle::by_name(name).is_none())
        {
            let known = cycle::NAMED.map(|it| it.name).join(", ");
            return refused("no such roll cycle", "roll_cycle", name, &known);
        }
        for (name, block) in [
            ("index_block_bytes", self.layout.index_block),
            ("data_block_bytes", self.layout.data_block),
        ] {
            if let Some(block) =
                block.filter(|it| !it.is_power_of_two() || !(64..=1 << 40).contains(it))
            {
                return refused(
                    "invalid block size",
                    name,
                    block,
                    "a power of two from 64 to 2^40",
                );
            }
        }
        if let Some(bits) = self.layout.tid_bits.filter(|bits| !TID_BITS_RANGE.contains(bits)) {
            return refused("invalid thread-id bits", "tid_bits", bits, "15 to 24");
        }
        let entries = self.entries_per_cycle;
        let is_refused = |it: &u64| !it.is_power_of_two() || !(256..=1 << 48).contains(it);
        if let Some(entries) = entries.filter(is_refused) {
            let expected = "a power of two from 256 to 2^48";
            return refused("invalid number of entries", "entries_per_cycle", entries, expected);
        }
        Ok(())
    }
}

fn refused(what: &str, name: &str, found: impl std::fmt::Display, expected: &str) -> Result<()> {
    Err(Error::Invalid(format!("{what}: {name}={found} expected={expected}")))
}

/// A time zone by its name.
pub fn zone(name: &str) -> Result<TimeZone> {
    if matches!(name, "GMT" | "UTC") {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name)
        .map_err(|_| Error::Unsupported(format!("a time zone of this name: zone={name}")))
}
