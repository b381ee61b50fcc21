//! Encryption of messages (`docs/encryption.md`), their compression (`docs/compression.md`), their
//! storage as differences, and proof of their integrity: hashes, and the trees
//! over them (`docs/integrity.md`); and compressed streams of connections.

pub mod added_keys;
pub mod bases;
pub mod cipher;
pub mod compressing;
pub mod dictionary;
pub mod difference;
mod fields;
pub mod layers;
pub mod leaves;
mod numbers;
pub mod packed;
pub mod packing;
pub mod stream;
pub mod tree;
