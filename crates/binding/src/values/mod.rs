//! Values of messages and Python's objects.
//!
//! - [`schema`] is a declared type, [`encode_declared`] writes its values, [`decode_declared`] reads
//!   them; [`codec`] knows the classes of messages, [`fixed`] those of fixed layout;
//! - [`encode`] and [`decode`] write and read what has no declared type;
//! - [`text`] is messages as YAML and JSON;
//! - [`numpy`] has the scalars of numpy as values of Python;
//! - [`temporal`], [`classes`] and [`failure`] are what they need.

pub mod classes;
pub mod codec;
pub mod decode;
pub mod decode_declared;
pub mod encode;
pub mod encode_declared;
pub mod failure;
pub mod fixed;
pub mod numpy;
pub mod schema;
pub mod temporal;
pub mod text;
