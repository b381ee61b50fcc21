//! Consumer groups: the side file of a group, and its members.

pub mod group;
pub mod member;
