//! The classes of Python that stand for what the kernel has open: [`queue`], [`appender`],
//! [`tailer`], and their documents [`read_document`], [`write_document`] and [`excerpt`], which
//! [`wire_in`] and [`wire_out`] read and write value by value; [`dump`], [`clock`] and
//! [`roll_cycle`].
//!
//! [`payload`] is what a caller hands over as a message, [`column`] a column of them, [`scan`] a long read that looks for
//! signals, [`spin`] a wait without a pause, and [`repr`] the text that an interpreter shows.

pub mod appender;
pub mod clock;
pub mod column;
pub mod dump;
pub mod excerpt;
pub mod payload;
pub mod queue;
pub mod read_document;
pub mod repr;
pub mod roll_cycle;
pub mod scan;
pub mod spin;
pub mod tailer;
pub mod wire_in;
pub mod wire_out;
pub mod write_document;
