//! Consumer groups: the side file of a group, and its members.

pub mod claim;
pub mod group;
pub mod member;
