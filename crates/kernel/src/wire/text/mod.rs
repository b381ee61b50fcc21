//! What text documents are made of: how lines are laid out, strings quoted and numbers shown.

pub mod escape;
pub mod layout;
pub mod number;
pub mod scalar;
pub mod source;
pub mod uuid;
