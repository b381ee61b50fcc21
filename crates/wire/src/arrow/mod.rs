//! Arrow columns: a [`schema`] defines what is decoded from which messages, [`infer`] collects the
//! facts to propose one from a sample, [`decode`] converts messages to columns, [`extras`] adds
//! columns that are not message values, and [`encode`] converts columns to messages.

pub mod decode;
pub mod encode;
pub mod extras;
pub mod infer;
pub mod schema;
