//! Arrow columns: [`decode`] makes them of messages, [`encode`] makes messages of them, and [`infer`]
//! collects what a sample of messages looks like.

pub mod decode;
pub mod encode;
pub mod infer;
