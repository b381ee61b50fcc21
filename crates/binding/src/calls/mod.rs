//! Calls as messages: [`method`] is one method of an interface, [`method_writer`] makes messages of
//! calls, [`method_reader`] calls of messages, and [`history`] goes with both.

pub mod history;
pub mod method;
pub mod method_reader;
pub mod method_writer;
