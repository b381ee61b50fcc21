//! The system's pages: mapped ranges are populated and counted in whole pages. These are
//! 4 KiB on most machines, 16 or 64 KiB on some.

/// A page size: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages(u64);

impl Pages {
    /// Rounds up to the next power of two.
    #[cfg(test)]
    pub const fn of(bytes: u64) -> Self {
        Self(bytes.next_power_of_two())
    }

    /// The page size of this machine.
    #[must_use]
    pub fn here() -> Self {
        Self(rustix::param::page_size() as u64)
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The start of the page that holds a position.
    #[must_use]
    pub const fn down(self, position: u64) -> u64 {
        position / self.0 * self.0
    }

    /// The position rounded up to the start of a page.
    #[must_use]
    pub const fn up(self, position: u64) -> u64 {
        position.next_multiple_of(self.0)
    }

    /// Splits a range at page boundaries.
    pub fn parts(self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        (start / self.0..end.div_ceil(self.0))
            .map(move |page| (start.max(page * self.0), end.min((page + 1) * self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundings_follow_the_size() {
        for bytes in [4096, 16_384, 65_536] {
            let pages = Pages::of(bytes);
            assert_eq!((pages.down(bytes + 1), pages.up(bytes + 1)), (bytes, 2 * bytes));
            assert_eq!((pages.down(bytes), pages.up(bytes)), (bytes, bytes));
            let parts: Vec<_> = pages.parts(bytes - 1, 2 * bytes + 1).collect();
            assert_eq!(parts, [(bytes - 1, bytes), (bytes, 2 * bytes), (2 * bytes, 2 * bytes + 1)]);
            assert_eq!(pages.parts(bytes, bytes).count(), 0);
        }
    }

    #[test]
    fn the_size_is_that_of_the_machine() {
        assert!(Pages::here().bytes() >= 4096);
        assert_eq!(Pages::here(), Pages::here());
    }
}
