//! A side file of a consumer group whose words are arbitrary.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quire_kernel::Result;
use quire_kernel::groups::format::layout::{self, Layout};
use quire_kernel::groups::format::word::Cause;
use quire_kernel::groups::group::{self, Group};
use quire_kernel::groups::member::Working;
use quire_kernel::groups::protocol::file::Shape;
use quire_kernel::os::detached::Detached;

use crate::bounded;
use crate::sample::Scratch;
use crate::words;

const NAME: &str = "fuzz";
/// The first claimed message of the sample.
const FIRST: u64 = 19_737 << 32;
/// The index to which a group is reset.
const AGAIN: u64 = FIRST + 7;
const ENDLESS_MS: u64 = u64::MAX;
/// Messages that a member claims, or takes, at once.
const MANY: u64 = 70;
/// The most memory that reading all claims may allocate.
const MEMORY: usize = 8 << 20;
/// The most messages that claims can have.
const MOST: u64 = Layout::FILE.count as u64 * 32;

const KEYED: u8 = 1;
/// Form bit: the header's checksum is corrected, so that the rest of the file is used.
const IS_SUMMED: u8 = 2;
/// Form bit: the second half of the edits is made while a member is working.
const IS_LIVE: u8 = 4;
const IS_CUT: u8 = 8;

/// The first byte is the form; the others are edits.
pub fn group(data: &[u8]) {
    let Some((form, edits)) = data.split_first() else { return };
    let half = if form & IS_LIVE == 0 { edits.len() } else { edits.len() / 2 };
    let (before, live) = edits.split_at(half / 10 * 10);
    let path = laid_out(*form, before);
    let shape = Shape { keyed: form & KEYED != 0, step: 1, start: 0, known: 0 };
    let dir = path.parent().unwrap();
    let group = Arc::new(Group::new(dir, NAME, shape, 0o600).unwrap());
    bounded(MEMORY, || {
        look(&path);
        let mut may_wait = Detached::here();
        if let Ok(member) = group.join("fuzz", ENDLESS_MS, 0, &mut may_wait) {
            words::change_at(&path, &places(), live);
            let _ = member.lock(&may_wait).and_then(|mut member| work(&mut member, shape.keyed));
            look(&path);
            member.close(&may_wait);
        }
        if group.reset(AGAIN, AGAIN, &mut Detached::here()).is_ok() {
            begins_again(&group, &path, shape.keyed);
        }
        look(&path);
    });
}

fn laid_out(form: u8, edits: &[u8]) -> PathBuf {
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    let mut file = sample(form & KEYED != 0).to_vec();
    words::change(&mut file, &places(), edits);
    if form & IS_SUMMED != 0 {
        let load = |at| words::load(&file, at);
        let (version, keyed) = (load(layout::VERSION_AT), load(layout::KEYED_AT));
        let sum = layout::sum(version, keyed, load(layout::STEP_AT), load(layout::START_AT));
        words::store(&mut file, layout::SUM_AT, sum);
    }
    if form & IS_CUT != 0 {
        file.truncate(usize::from(form) * 2048);
    }
    let name = format!("{NAME}{}", layout::SUFFIX);
    SCRATCH.with(|scratch| scratch.with(&[(&name, &file)])).join(name)
}

/// The words that are changed: the header, some members, the first claims and the last one.
fn places() -> Vec<u64> {
    let header = (0..=layout::RETIRED_AT).step_by(8);
    let members = [0, 1, layout::MEMBERS - 1].map(layout::member_at);
    let members = members.into_iter().flat_map(|at| [at, at + 8, at + 16]);
    let claims = (0..9).chain([Layout::FILE.count - 1]).map(|claim| Layout::FILE.state(claim));
    let claims = claims.flat_map(|at| (at..at + 40).step_by(8));
    header.chain([Layout::FILE.frontier, Layout::FILE.high]).chain(members).chain(claims).collect()
}

/// A side file with claims in all states, whose members are dead.
fn sample(is_keyed: bool) -> &'static [u8] {
    static SAMPLES: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    SAMPLES[usize::from(is_keyed)].get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape { keyed: is_keyed, step: 1, start: FIRST, known: 0 };
        let group = Arc::new(Group::new(dir.path(), NAME, shape, 0o600).unwrap());
        let (one, other) = (
            group.join("one", 1, 0, &mut Detached::here()).unwrap(),
            group.join("two", 1, 0, &mut Detached::here()).unwrap(),
        );
        let may_wait = Detached::here();
        for member in [&one, &other] {
            let mut member = member.lock(&may_wait).unwrap();
            let frontier = member.frontier().unwrap();
            let indexes: Vec<u64> = (frontier.next..frontier.next + MANY).collect();
            if is_keyed {
                let keys: Vec<u64> = indexes.iter().map(|index| index % 3).collect();
                member.offer(frontier, &indexes[..4], &keys[..4]).unwrap();
                let taken = member.take(1).unwrap();
                member.acknowledge(&[(taken[0].key, 1)]).unwrap();
            } else {
                let held = member.hold(frontier, &indexes).unwrap();
                assert_eq!(member.acknowledge(&[(held[0].key, 0xFF)]).unwrap(), [0xFF]);
                assert!(member.give_back(&held[1].key, Cause::Refused, 0).unwrap());
            }
        }
        std::fs::read(group.path()).unwrap()
    })
}

fn look(path: &Path) {
    if let Ok(Some(backlog)) = group::backlog(path) {
        assert!(backlog.unacknowledged <= MOST && backlog.lowest <= backlog.next, "{backlog:?}");
    }
    for member in group::members(path).unwrap_or_default() {
        assert!(member.name.chars().count() <= layout::NAME_MAX && member.messages <= MOST);
    }
}

/// Takes, acknowledges, refuses and claims messages.
fn work(member: &mut Working<'_>, is_keyed: bool) -> Result<()> {
    for round in 0..4 {
        for (number, held) in member.take(MANY)?.iter().enumerate() {
            let pending = held.pending;
            if number % 2 == 0 {
                assert_eq!(member.acknowledge(&[(held.key, pending)])?[0] & !pending, 0);
                let again = member.acknowledge(&[(held.key, pending)])?;
                assert_eq!(again, [0], "acknowledged twice");
            } else {
                member.give_back(&held.key, Cause::Refused, 0)?;
            }
        }
        let frontier = member.frontier()?;
        let next = frontier.next;
        let indexes: Vec<u64> = (next..next.saturating_add(MANY)).step_by(1 + round % 2).collect();
        if is_keyed {
            let keys: Vec<u64> = indexes.iter().map(|index| index % 3).collect();
            assert!(member.offer(frontier, &indexes, &keys)? <= indexes.len());
        } else {
            let held = member.hold(frontier, &indexes)?;
            let count: u32 = held.iter().map(|held| held.pending.count_ones()).sum();
            assert!(count as usize <= indexes.len(), "claimed: {held:?}");
        }
    }
    Ok(())
}

/// Whatever the file held, a group that was reset delivers each message from there on once.
fn begins_again(group: &Arc<Group>, path: &Path, is_keyed: bool) {
    let backlog = group::backlog(path).unwrap().unwrap();
    assert_eq!((backlog.next, backlog.unacknowledged, backlog.lowest), (AGAIN, 0, AGAIN));
    // Whether a side file is keyed does not change.
    let mut may_wait = Detached::here();
    let Ok(member) = group.join("again", ENDLESS_MS, 0, &mut may_wait) else { return };
    if !is_keyed {
        let indexes: Vec<u64> = (AGAIN..AGAIN + MANY).collect();
        let mut member = member.lock(&may_wait).unwrap();
        let frontier = member.frontier().unwrap();
        let held = member.hold(frontier, &indexes).unwrap();
        let ranges = held.iter().map(|held| (held.key.first, held.pending));
        let expected = [(AGAIN, u32::MAX), (AGAIN + 32, u32::MAX), (AGAIN + 64, 0b11_1111)];
        assert!(ranges.eq(expected), "claimed: {held:?}");
    }
}
