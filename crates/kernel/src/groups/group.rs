//! A consumer group of a queue: its side file, and queries that need no membership.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::format::layout::{self, Layout, NAME_MAX, SUFFIX};
use super::format::word::State;
use super::member::Member;
use super::protocol::claims::{Claims, Frontier, Seen};
use super::protocol::file::{self, Found, Replace, Replaced, Shape, SideFile};
use super::protocol::liveness;
use super::protocol::tails::{self, Tail};
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Error, Result, warnings};

/// The longest name of a group.
const GROUP_NAME_MAX: usize = 64;
/// Attempts to join a group whose side file others are replacing.
const JOIN_ATTEMPTS: usize = 100;

/// Attempts to read a backlog that members keep changing.
pub(super) const BACKLOG_ATTEMPTS: usize = 50;

/// A group.
pub struct Group {
    name: String,
    path: PathBuf,
    shape: Shape,
    file_mode: u32,
    open: RwLock<Option<Arc<SideFile>>>,
}

/// The backlog of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The index of the first unclaimed message; 0 is the first of the queue.
    pub next: u64,
    /// Messages that are claimed but not acknowledged.
    pub unacknowledged: u64,
    /// The index of the first unacknowledged message; 0 is the first of the queue.
    pub lowest: u64,
    /// When the longest-unacknowledged claimed messages were delivered, in epoch milliseconds.
    pub oldest_ms: Option<u64>,
}

/// A member, as listed for other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    pub pid: u32,
    /// Messages it is working on.
    pub messages: u64,
}

impl Group {
    /// The group of this name in the queue at `dir`. Nothing is created until a member joins.
    pub fn new(dir: &Path, name: &str, shape: Shape, file_mode: u32) -> Result<Self> {
        check_name(name)?;
        let path = dir.join(format!("{name}{SUFFIX}"));
        Ok(Self { name: name.to_owned(), path, shape, file_mode, open: RwLock::new(None) })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub const fn step(&self) -> u64 {
        self.shape.step
    }

    /// An error about this group.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> Error {
        Error::Group { what: what.into(), group: self.name.clone(), path: self.path.clone() }
    }

    /// Joins the group under a name that others see. `end` is the index after the queue's last
    /// message. If the side file is damaged, earlier messages may have been delivered already.
    pub fn join(
        self: &Arc<Self>,
        name: &str,
        ack_timeout_ms: u64,
        end: u64,
        may_wait: &mut Detached,
    ) -> Result<Member> {
        for _ in 0..JOIN_ATTEMPTS {
            let side = self.open_or_make(end, may_wait)?;
            self.check_not_kept(&side)?;
            let joined = liveness::join(&self.path, &side.file, self.file_mode, may_wait)?;
            let Some((number, lock)) = joined else {
                return Err(
                    self.error(format!("the group already has {} live members", layout::MEMBERS))
                );
            };
            // Our byte is locked in the mapped file, and that file is not being replaced.
            let is_same = file::is_at(&lock, &self.path)? && file::is_at(&side.file, &self.path)?;
            if is_same && !file::is_marked(&side.cells) {
                Claims::new(&side.cells, Layout::FILE).end_of_member(number, true);
                store_name(&side, number, name);
                return Ok(Member::new(Arc::clone(self), side, number, lock, ack_timeout_ms));
            }
            drop(lock);
            self.forget();
            file::unmark(&self.path, Signals::Handled(may_wait))?;
        }
        Err(self.error("the side file of the group is replaced again and again"))
    }

    /// The side file; created if missing, replaced if damaged.
    fn open_or_make(&self, end: u64, may_wait: &mut Detached) -> Result<Arc<SideFile>> {
        if let Some(side) = self.opened() {
            return Ok(side);
        }
        for _ in 0..JOIN_ATTEMPTS {
            match file::open(&self.path, true)? {
                Found::Whole(side) => return self.keep(side),
                Found::Missing => file::create(&self.path, self.shape, self.file_mode)?,
                Found::Damaged(what) => self.rebuild(&what, end, may_wait)?,
            }
        }
        Err(self.error("the side file of the group is replaced again and again"))
    }

    fn keep(&self, side: SideFile) -> Result<Arc<SideFile>> {
        if side.shape.step != self.shape.step {
            return Err(self.error("the group belongs to a queue of another format"));
        }
        if side.shape.keyed != self.shape.keyed {
            let (found, asked) =
                if side.shape.keyed { ("a key", "none") } else { ("no key", "one") };
            let what = format!("the group was created with {found}, but is opened with {asked}");
            return Err(self.error(what));
        }
        let side = Arc::new(side);
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&side));
        Ok(side)
    }

    fn rebuild(&self, what: &str, end: u64, may_wait: &mut Detached) -> Result<()> {
        let shape = Shape { start: 0, known: end, ..self.shape };
        let (mode, signals) = (self.file_mode, Signals::Handled(may_wait));
        let replaced = file::replace(&self.path, shape, mode, Replace::Damaged, signals)?;
        if replaced == Replaced::Done {
            warnings::leave(format!(
                "the side file of a group was damaged and is created again; all messages are \
                 delivered again: group={} {what} file={}",
                self.name,
                self.path.display()
            ));
        }
        Ok(())
    }

    fn opened(&self) -> Option<Arc<SideFile>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().filter(|side| !file::is_marked(&side.cells))
    }

    /// An error if a sink keeps the group for its source.
    fn check_not_kept(&self, side: &SideFile) -> Result<()> {
        if !file::is_kept(&side.cells) {
            return Ok(());
        }
        Err(self.error(
            "the queue is a replica, and the group belongs to its source: its consumers read there \
             until the replica is promoted",
        ))
    }

    fn forget(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Makes the group start at an index (0: the first message); an error if it has members.
    pub fn reset(&self, start: u64, end: u64, may_wait: &mut Detached) -> Result<()> {
        let (keyed, known) = match file::open(&self.path, false)? {
            Found::Whole(side) => {
                self.check_not_kept(&side)?;
                let frontier = Claims::new(&side.cells, Layout::FILE).frontier();
                let known = side.cells.load_acquire(layout::KNOWN_AT);
                (side.shape.keyed, known.max(frontier.map_or(end, |frontier| frontier.next)))
            }
            Found::Damaged(_) => (self.shape.keyed, end),
            Found::Missing => (self.shape.keyed, 0),
        };
        let shape = Shape { keyed, start, known, ..self.shape };
        let (mode, signals) = (self.file_mode, Signals::Handled(may_wait));
        let replaced = file::replace(&self.path, shape, mode, Replace::Unused, signals)?;
        self.forget();
        match replaced {
            Replaced::Done => Ok(()),
            Replaced::NotNeeded => Err(self.error("the side file was replaced meanwhile")),
            Replaced::InUse => Err(self.error("the group has members (close them first)")),
        }
    }

    /// Removes the side file and with it the group; false if there was none.
    pub fn delete(&self, may_wait: &mut Detached) -> Result<bool> {
        if let Found::Whole(side) = file::open(&self.path, false)? {
            self.check_not_kept(&side)?;
        }
        let removed = file::remove(&self.path, Signals::Handled(may_wait))?;
        self.forget();
        match removed {
            None => Ok(false),
            Some(Replaced::Done) => Ok(true),
            Some(Replaced::NotNeeded) => Err(self.error("the side file was replaced meanwhile")),
            Some(Replaced::InUse) => Err(self.error("the group has members (close them first)")),
        }
    }
}

/// The backlog of a side file's group; None if there is no such file.
pub fn backlog(path: &Path) -> Result<Option<Backlog>> {
    let side = match file::open(path, false)? {
        Found::Whole(side) => side,
        Found::Missing => return Ok(None),
        // Its members will start with the first message.
        Found::Damaged(_) => {
            return Ok(Some(Backlog { next: 0, unacknowledged: 0, lowest: 0, oldest_ms: None }));
        }
    };
    let claims = Claims::new(&side.cells, Layout::FILE);
    let damaged = || Error::corrupt("the side file of a group", path, 0, "damaged", "whole");
    let mut attempts = 0;
    loop {
        let frontier = claims.frontier().ok_or_else(damaged)?;
        let in_use = claims.in_use().ok_or_else(damaged)?;
        attempts += 1;
        // Retry if the frontier moved: claims linked in the meantime may be missing.
        if claims.frontier() == Some(frontier) || attempts == BACKLOG_ATTEMPTS {
            return Ok(Some(backlog_of(&claims, frontier, &in_use, side.shape.step)));
        }
    }
}

fn backlog_of(claims: &Claims<'_>, frontier: Frontier, in_use: &[Seen], step: u64) -> Backlog {
    let linked = || in_use.iter().filter(|seen| seen.is_linked && seen.word.pending != 0);
    let lowest = linked().map(|seen| {
        let before = u64::from(seen.word.pending.trailing_zeros());
        seen.first.saturating_add(before.saturating_mul(step))
    });
    Backlog {
        next: frontier.next,
        unacknowledged: linked().map(|seen| u64::from(seen.word.pending.count_ones())).sum(),
        lowest: lowest.chain([frontier.next]).min().unwrap_or_default(),
        oldest_ms: linked().filter_map(|seen| claims.since_ms(seen)).filter(|ms| *ms > 0).min(),
    }
}

/// The tail records of a side file, newest first (`tails.rs`).
pub fn tails(path: &Path) -> Result<Vec<Tail>> {
    let Found::Whole(side) = file::open(path, false)? else { return Ok(Vec::new()) };
    Ok(tails::all(&side.cells))
}

/// The living members of a side file's group.
pub fn members(path: &Path) -> Result<Vec<Described>> {
    let Found::Whole(side) = file::open(path, false)? else { return Ok(Vec::new()) };
    let in_use = Claims::new(&side.cells, Layout::FILE).in_use().unwrap_or_default();
    let numbers = liveness::members(path, &side.file)?;
    Ok(numbers
        .into_iter()
        .map(|number| {
            let own = in_use.iter().filter(|seen| seen.is_linked && seen.word.owner == number);
            let own = own.filter(|seen| seen.word.state != State::Offered);
            let messages = own.map(|seen| u64::from(seen.word.pending.count_ones())).sum();
            let (name, pid) = stored_name(&side, number);
            Described { name, pid, messages }
        })
        .collect())
}

pub(super) fn check_name(name: &str) -> Result<()> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && name.len() <= GROUP_NAME_MAX && name.chars().all(is_valid) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "invalid name of a group: {name:?} (1 to {GROUP_NAME_MAX} letters, digits, '_', '-' and '.', \
         the first a letter or digit)"
    )))
}

/// Stores a member's pid and the first bytes of its name, for listings.
fn store_name(side: &SideFile, member: u16, name: &str) {
    let mut end = name.len().min(NAME_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let at = layout::member_at(member);
    let mut record = vec![0; 16 + NAME_MAX];
    record[0..8].copy_from_slice(&u64::from(crate::os::process::pid()).to_le_bytes());
    record[8..16].copy_from_slice(&(end as u64).to_le_bytes());
    record[16..16 + end].copy_from_slice(&name.as_bytes()[..end]);
    side.cells.store_each_relaxed(at, &record, step!("group.member.store"));
}

pub(super) fn stored_name(side: &SideFile, member: u16) -> (String, u32) {
    let at = layout::member_at(member);
    let pid = side.cells.load_acquire(at);
    let len = side.cells.load_acquire(at + 8).min(NAME_MAX as u64);
    let name = side.cells.copy_out_relaxed(at + 16, len);
    (String::from_utf8_lossy(&name).into_owned(), u32::try_from(pid).unwrap_or_default())
}

/// Milliseconds of the monotonic clock, which starts at boot.
pub(super) fn now_ms() -> u64 {
    u64::try_from(clock::monotonic_time_ns() / 1_000_000).unwrap_or_default()
}

/// Epoch milliseconds.
pub(super) fn wall_ms() -> u64 {
    u64::try_from(clock::coarse_time_ms()).unwrap_or_default()
}
