//! Addresses of data and index: `page * page_bytes + position`, and the pages they lie in.

/// The number of addressable pages: page numbers are signed 32-bit integers in Java.
const PAGES: u64 = 1 << 31;

/// How long each page file is: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    shift: u32,
}

/// A range of addresses within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The page.
    pub page: u32,
    /// Where the range starts in it.
    pub position: u64,
    /// Bytes of the range.
    pub length: u64,
}

impl PageSize {
    /// The default of the original.
    pub const DEFAULT: Self = Self { shift: 30 };
    /// Room for one index entry.
    pub const SMALLEST: Self = Self { shift: 4 };
    /// The largest power of two that Java maps at once.
    pub const LARGEST: Self = Self { shift: 30 };

    /// Pages of `bytes`; None if that is not a power of two between the smallest and the largest.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        let is_valid = bytes.is_power_of_two()
            && bytes >= Self::SMALLEST.bytes()
            && bytes <= Self::LARGEST.bytes();
        if is_valid { Some(Self { shift: bytes.trailing_zeros() }) } else { None }
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.shift
    }

    /// The first address that cannot be used.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        PAGES << self.shift
    }

    /// The page of an address below [`PageSize::capacity`].
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // below 2^31
    pub const fn page(self, address: u64) -> u32 {
        (address >> self.shift) as u32
    }

    /// The position of an address in its page.
    #[must_use]
    pub const fn position(self, address: u64) -> u64 {
        address & (self.bytes() - 1)
    }

    /// The address at which a page starts.
    #[must_use]
    pub const fn start_of(self, page: u32) -> u64 {
        (page as u64) << self.shift
    }

    /// The parts of a range in the pages it touches; none of an empty range.
    pub fn parts(self, start: u64, length: u64) -> impl Iterator<Item = Part> {
        let end = start + length;
        let mut at = start;
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            let position = self.position(at);
            let part = Part {
                page: self.page(at),
                position,
                length: (self.bytes() - position).min(end - at),
            };
            at += part.length;
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_are_powers_of_two() {
        for bytes in [0, 1, 8, 15, 17, 4095, 4097, 1 << 31, u64::MAX] {
            assert_eq!(PageSize::new(bytes), None, "{bytes}");
        }
        assert_eq!(PageSize::new(16), Some(PageSize::SMALLEST));
        assert_eq!(PageSize::new(1 << 30), Some(PageSize::DEFAULT));
    }

    #[test]
    fn addresses_reach_the_last_page() {
        let last = PageSize::DEFAULT.capacity() - 1;
        assert_eq!(PageSize::DEFAULT.page(last), (1 << 31) - 1);
        assert_eq!(PageSize::DEFAULT.position(last), (1 << 30) - 1);
        let start = PageSize::DEFAULT.start_of((1 << 31) - 1);
        assert_eq!(start, PageSize::DEFAULT.capacity() - (1 << 30));
    }

    #[test]
    fn a_range_is_cut_at_pages() {
        let size = PageSize::new(16).unwrap();
        let parts: Vec<_> = size.parts(14, 20).map(|p| (p.page, p.position, p.length)).collect();
        assert_eq!(parts, [(0, 14, 2), (1, 0, 16), (2, 0, 2)]);
        assert_eq!(size.parts(16, 0).count(), 0);
        assert_eq!(size.parts(16, 16).count(), 1);
    }
}
