//! Arrow columns: [`decode`] converts messages to columns, [`encode`] columns to messages, and
//! [`infer`] infers a schema from a sample of messages.

pub mod decode;
pub mod encode;
pub mod infer;
