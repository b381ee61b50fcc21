//! Gathers what opening a queue needs, at a cost that hardly grows with its pages: the newest page
//! of the index is found by a binary search.

use std::path::Path;

use super::directory::{Form, Layout, Listing, Span, length_of};
use super::entries::Entries;
use super::pages::Pages;
use crate::probe::fault;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, Stamp};
use crate::{Error, Result};

/// With fewer pages than this the directory is listed.
const MANY: u32 = 64;
/// No page has this number.
const LIMIT: u32 = 1 << 31;

/// The form of a queue, and the pages of its index. For a queue of many pages, nothing else is
/// listed.
pub fn survey(dir: &Path) -> Result<Listing> {
    if let Some(layout) = layout_of_many(dir)?
        && let Some(span) = index_span(dir, layout)?
    {
        return Ok(Listing::of_index(layout.form, span));
    }
    Listing::of(dir)
}

/// The layout of a queue with many index pages, from page 0 on; None if its directory must be
/// listed.
pub fn layout_of_many(dir: &Path) -> Result<Option<Layout>> {
    // With any page size, as only names are checked.
    let is_there = |form, page| is_named(&Pages::index(dir, form, PageSize::DEFAULT), page);
    let has_data = is_named(&Pages::data(dir, None, PageSize::DEFAULT), MANY)?;
    let (form, other) = if has_data || is_there(Form::Single, MANY)? {
        (Form::Single, Form::Shared)
    } else if is_there(Form::Shared, MANY)? {
        (Form::Shared, Form::Single)
    } else {
        return Ok(None);
    };
    if is_there(other, 0)? {
        return Ok(None);
    }
    let first = Pages::index(dir, form, PageSize::DEFAULT).path(0);
    let size = length_of(&first)?.and_then(PageSize::new);
    Ok(size.map(|size| Layout { form, size }))
}

/// The pages of an index from page 0 on; None if they must be listed.
fn index_span(dir: &Path, Layout { form, size }: Layout) -> Result<Option<Span>> {
    let pages = Pages::index(dir, form, size);
    let highest = newest(&pages)?;
    // A full page may be followed by one that was lost, and that by others.
    let last = size.start_of(highest) + size.bytes() - ENTRY;
    let entry = Entries::new(&pages).get(last).ok().flatten();
    let is_last = entry.is_some_and(|entry| entry.stamp == Stamp::FREE);
    Ok(is_last.then_some(Span { lowest: 0, highest }))
}

/// The last page of a contiguous run, found by a binary search; page 0 exists.
fn newest(pages: &Pages) -> Result<u32> {
    let (mut found, mut missing) = (0, 1);
    while missing < LIMIT && is_named(pages, missing)? {
        (found, missing) = (missing, missing * 2);
    }
    while missing - found > 1 {
        let middle = u32::midpoint(found, missing);
        if is_named(pages, middle)? {
            found = middle;
        } else {
            missing = middle;
        }
    }
    Ok(found)
}

/// Whether a page exists; its length may not be set yet.
fn is_named(pages: &Pages, page: u32) -> Result<bool> {
    let path = pages.path(page);
    match fault::call!("quick-queue.page.stat", std::fs::symlink_metadata(&path)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("cannot look at", &path, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PAGE: usize = 64;
    const ENTRIES: usize = 4;

    /// An index of full pages, except for the last one.
    fn index(pages: u32, taken_in_last: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |page: u32, taken: usize| {
            let mut bytes = [1; PAGE];
            bytes[taken * PAGE / ENTRIES..].fill(0);
            fs::write(dir.path().join(format!("{page}.qx")), bytes).unwrap();
        };
        (0..pages - 1).for_each(|page| write(page, ENTRIES));
        write(pages - 1, taken_in_last);
        dir
    }

    fn highest(dir: &Path) -> (Option<Span>, bool) {
        let found = survey(dir).unwrap();
        // A listing also finds the data.
        (found.index(Form::Single), found.data().is_some())
    }

    #[test]
    fn the_newest_page_of_many_is_found_without_a_listing() {
        for pages in [65, 66, 128, 129, 300] {
            for taken in [0, ENTRIES - 1] {
                let dir = index(pages, taken);
                fs::write(dir.path().join("0.qd"), [0; PAGE]).unwrap();
                let expected = Some(Span { lowest: 0, highest: pages - 1 });
                assert_eq!(highest(dir.path()), (expected, false), "{pages} {taken}");
            }
        }
    }

    #[test]
    fn a_page_that_may_have_lost_the_one_after_it_is_not_believed() {
        let dir = index(200, 1);
        fs::write(dir.path().join("0.qd"), [0; PAGE]).unwrap();
        let expected = Some(Span { lowest: 0, highest: 199 });
        for lost in [100, 191, 192, 198] {
            fs::rename(dir.path().join(format!("{lost}.qx")), dir.path().join("kept")).unwrap();
            assert_eq!(highest(dir.path()).0, expected, "{lost}");
            fs::rename(dir.path().join("kept"), dir.path().join(format!("{lost}.qx"))).unwrap();
        }
        fs::remove_file(dir.path().join("0.qx")).unwrap();
        assert_eq!(highest(dir.path()), (Some(Span { lowest: 1, highest: 199 }), true));
    }

    #[test]
    fn pages_of_both_kinds_are_found() {
        let dir = index(100, 1);
        fs::write(dir.path().join("0.qmx"), [0; PAGE]).unwrap();
        let found = survey(dir.path()).unwrap();
        assert!(found.form(dir.path()).is_err());
    }
}
