//! How many members of the in-sync set must have a message.

/// How many members must have a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// This many, at least one.
    AtLeast(usize),
    /// All members, and at least one.
    All,
}

impl Quorum {
    /// The index up to which enough members have all messages, given each member's index; None if
    /// there is none.
    #[must_use]
    pub fn reached(self, mut have: Vec<Option<i64>>) -> Option<i64> {
        have.sort_unstable();
        let position = match self {
            Self::All => 0,
            Self::AtLeast(count) => have.len().checked_sub(count.max(1))?,
        };
        have.get(position).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_that_have_least_decide() {
        let have = || vec![Some(7), Some(3), None, Some(5)];
        let cases = [
            (Quorum::AtLeast(0), Some(7)),
            (Quorum::AtLeast(1), Some(7)),
            (Quorum::AtLeast(2), Some(5)),
            (Quorum::AtLeast(3), Some(3)),
            (Quorum::AtLeast(4), None),
            (Quorum::AtLeast(5), None),
            (Quorum::All, None),
        ];
        for (quorum, expected) in cases {
            assert_eq!(quorum.reached(have()), expected, "{quorum:?}");
        }
        assert_eq!(Quorum::All.reached(vec![Some(2), Some(1)]), Some(1));
        assert_eq!(Quorum::All.reached(vec![]), None);
        assert_eq!(Quorum::AtLeast(1).reached(vec![]), None);
    }
}
