//! Encryption of messages (`docs/encryption.md`), and proof of their integrity: hashes, and the trees
//! over them (`docs/integrity.md`).

pub mod cipher;
pub mod leaves;
pub mod tree;
