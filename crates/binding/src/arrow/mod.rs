//! Arrow columns: [`decode`] makes them of messages, [`encode`] makes messages of them.

pub mod decode;
pub mod encode;
