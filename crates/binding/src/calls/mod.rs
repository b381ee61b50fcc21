//! Calls as messages: [`method`] is a method of an interface, [`method_writer`] converts calls to
//! messages, [`method_reader`] messages to calls, and [`history`] is part of both.

pub mod awaited_document;
pub mod history;
pub mod method;
pub mod method_reader;
pub mod method_writer;
