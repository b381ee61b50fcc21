//! The range of a file that its only writer has reserved: a file of the older formats has one
//! writer at a time.

use std::ops::Range;
use std::sync::Arc;

use super::pages::Pages;
use super::reservation::Reservation;
use super::window::{Region, Window};
use crate::Result;

/// Positions that are reserved and present, and how fast they are used.
pub struct ReservedRange {
    range: Range<u64>,
    reservation: Reservation,
}

impl Default for ReservedRange {
    fn default() -> Self {
        Self { range: 0..0, reservation: Reservation::new(Pages::here()) }
    }
}

impl ReservedRange {
    /// Whether stores into a range cannot fail.
    #[inline]
    pub const fn covers(&self, start: u64, end: u64) -> bool {
        start >= self.range.start && end <= self.range.end
    }

    /// Reserves a range and a step after it, up to `limit`, so that stores into it cannot fail.
    #[cold]
    pub fn extend(
        &mut self,
        window: &Window,
        region: &mut Arc<Region>,
        needed: Range<u64>,
        limit: u64,
    ) -> Result<()> {
        let pages = Pages::here();
        let is_next = needed.start >= self.range.start && needed.start <= self.range.end;
        let from = if is_next { self.range.end } else { pages.down(needed.start) };
        let exactly = pages.up(needed.end).min(limit).max(needed.end);
        self.reservation.measure(needed.end);
        let target = self.reservation.step(needed.end).min(limit).max(exactly);
        let to = window.reserve_step(region, from, target, exactly)?;
        self.range = if is_next { self.range.start } else { from }..to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reservation::SMALL_STEP;
    use super::*;

    #[test]
    fn a_range_grows_by_steps_from_where_it_ends_and_starts_anew_elsewhere() {
        let (dir, pages) = (tempfile::tempdir().unwrap(), Pages::here());
        let (path, limit) = (dir.path().join("file"), 1 << 20);
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.unwrap();
        file.set_len(limit).unwrap();
        let window = Window::new(&path, file, true).unwrap();
        let (mut region, mut reserved) = (window.region(), ReservedRange::default());
        let mut extend = |reserved: &mut ReservedRange, needed| {
            reserved.extend(&window, &mut region, needed, limit).unwrap();
            reserved.range.clone()
        };

        assert!(!reserved.covers(0, 8));
        assert_eq!(extend(&mut reserved, 0..8), 0..pages.up(8 + SMALL_STEP));
        assert!(reserved.covers(0, SMALL_STEP) && !reserved.covers(0, limit));
        let needed = SMALL_STEP..2 * SMALL_STEP + 1;
        assert_eq!(extend(&mut reserved, needed.clone()).start, 0);
        assert!(reserved.covers(0, needed.end));
        let elsewhere = limit - 9..limit;
        assert_eq!(extend(&mut reserved, elsewhere), pages.down(limit - 9)..limit);
        assert!(!reserved.covers(0, 8));
    }
}
