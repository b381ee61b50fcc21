//! Arrow columns: a [`schema`] says what is wanted of which messages, [`infer`] proposes one from a
//! sample; [`decode`] makes columns of messages, [`extras`] those that do not come from the values,
//! and [`encode`] messages of columns.

pub mod decode;
pub mod encode;
pub mod extras;
pub mod infer;
pub mod schema;
