//! Vanilla Chronicles: [`queue`], [`appender`] with its [`excerpt_writer`], [`tailer`] with its
//! [`excerpt`].

pub mod appender;
pub mod excerpt;
pub mod excerpt_writer;
pub mod queue;
pub mod tailer;
