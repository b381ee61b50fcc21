//! Where every field of a group's side file is (`docs/groups.md`, "The side file").

pub mod layout;
pub mod word;
