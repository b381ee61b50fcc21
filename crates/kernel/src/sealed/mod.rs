//! Proof of integrity: hashes of messages, and the trees over them (`docs/integrity.md`).

pub mod leaves;
pub mod tree;
