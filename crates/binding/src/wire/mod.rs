//! Values of messages and Python's objects.
//!
//! - [`kind`] is a declared type, [`kind_put`] writes its values, [`kind_get`] reads them; [`codec`]
//!   knows the classes of messages, [`layout`] those of fixed layout;
//! - [`values`] and [`objects`] write and read what has no declared type;
//! - [`wire_out`] and [`wire_in`] are a document value by value;
//! - [`numpy`] has the scalars of numpy as values of Python;
//! - [`temporal`], [`classes`] and [`failure`] are what they need.

pub mod classes;
pub mod codec;
pub mod failure;
pub mod kind;
pub mod kind_get;
pub mod kind_put;
pub mod layout;
pub mod numpy;
pub mod objects;
pub mod temporal;
pub mod values;
pub mod wire_in;
pub mod wire_out;
