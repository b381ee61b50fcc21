//! Conversion between message values and Python objects.
//!
//! - [`schema`] is a declared type, [`encode_declared`] writes its values, [`decode_declared`]
//!   reads them; [`codec`] handles message classes, [`fixed`] those with a fixed layout;
//! - [`literal`] checks values of `Literal` types, [`array`] handles those of numpy;
//! - [`encode`] and [`decode`] write and read values without a declared type;
//! - [`text`] converts messages to and from YAML and JSON;
//! - [`numpy`] converts numpy scalars to Python values;
//! - [`temporal`], [`classes`] and [`failure`] are shared by them.

pub mod array;
pub mod classes;
pub mod codec;
pub mod decode;
pub mod decode_declared;
pub mod encode;
pub mod encode_declared;
pub mod failure;
pub mod fixed;
pub mod literal;
pub mod numpy;
pub mod schema;
pub mod temporal;
pub mod text;
