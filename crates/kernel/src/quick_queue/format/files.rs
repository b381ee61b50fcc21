//! Names of a queue's files.

use super::producer::Producer;

/// Suffix of data pages.
pub const DATA: &str = "qd";
/// Suffix of index pages of a single writer.
pub const SINGLE_INDEX: &str = "qx";
/// Suffix of index pages that named producers share.
pub const SHARED_INDEX: &str = "qmx";
/// Suffix of producers' profiles.
pub const PROFILE: &str = "qm";
/// Marks the directory as a Quick-Queue; writers lock it. Java ignores it.
pub const LOCK: &str = "quick-queue.lock";

/// The kind of a file in the queue's directory, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A data page of the single writer.
    Data(u32),
    /// An index page of the single writer.
    SingleIndex(u32),
    /// An index page that producers share.
    SharedIndex(u32),
    /// A producer's profile.
    Profile(Producer),
    /// The lock file.
    Lock,
}

/// Parses a file name; None for foreign files.
#[must_use]
pub fn parse(name: &str) -> Option<Name> {
    if name == LOCK {
        return Some(Name::Lock);
    }
    let (stem, suffix) = name.split_once('.')?;
    match suffix {
        DATA => page(stem).map(Name::Data),
        SINGLE_INDEX => page(stem).map(Name::SingleIndex),
        SHARED_INDEX => page(stem).map(Name::SharedIndex),
        PROFILE => Producer::from_file_name(stem).map(Name::Profile),
        _ => None,
    }
}

/// The number of a page in a file name.
fn page(stem: &str) -> Option<u32> {
    let page: u32 = stem.parse().ok().filter(|page| *page < 1 << 31)?;
    (page.to_string() == stem).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_original() {
        assert_eq!(parse("0.qd"), Some(Name::Data(0)));
        assert_eq!(parse("17.qx"), Some(Name::SingleIndex(17)));
        assert_eq!(parse("2147483647.qmx"), Some(Name::SharedIndex(2_147_483_647)));
        assert_eq!(parse("AA0.qm"), Producer::new("AA0").map(Name::Profile));
        assert_eq!(parse("quick-queue.lock"), Some(Name::Lock));
        for name in ["", "qd", ".qd", "00.qd", "+1.qd", "-1.qx", "2147483648.qx", "0.qd.bak"] {
            assert_eq!(parse(name), None, "{name}");
        }
        for name in ["AAAA.qm", "A.B.qm", "metadata.cq4t", "..qm", "/.qm"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
