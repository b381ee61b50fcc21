//! Vanilla Chronicles: [`queue`], [`appender`] with its [`excerpt_writer`], [`tailer`] with its
//! [`excerpt`]; [`indexed_queue`] and [`indexed_tailer`] read Indexed Chronicles.

pub mod appended;
pub mod appender;
pub mod excerpt;
pub mod excerpt_writer;
pub mod indexed_queue;
pub mod indexed_tailer;
pub mod object;
pub mod queue;
pub mod tailer;
