//! Encryption of messages (`docs/encryption.md`), their compression (`docs/compression.md`), and proof of their integrity: hashes, and the trees
//! over them (`docs/integrity.md`).

pub mod cipher;
pub mod compressing;
pub mod dictionary;
pub mod leaves;
pub mod packed;
pub mod packing;
pub mod tree;
