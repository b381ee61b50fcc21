//! Quick-Queues: [`queue`], [`appender`] and [`tailer`], a message that was read ([`excerpt`]), and
//! its fields, written by [`packer`] and read by [`unpacker`]. [`decimal`] are decimal numbers and
//! big integers.

pub mod appender;
pub mod decimal;
pub mod excerpt;
pub mod packer;
pub mod queue;
pub mod tailer;
pub mod unpacker;
