//! The file being appended to, as far as one appender knows (steps 5 to 9 of an append, which are
//! listed in `end.rs`).

use super::append_checksums::Span;
use crate::chronicle::format::blocks::{self, Growth};
use crate::chronicle::format::document::{self, HEADER_LEN, NOT_INITIALIZED, TAIL_ZEROS};
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::protocol::indexing::{self, IndexWriter};
use crate::chronicle::protocol::locate;
use crate::chronicle::protocol::lock::guard::{DetachedGuard, WriteGuard};
use crate::chronicle::protocol::publish::{self, Payload};
use crate::chronicle::protocol::roll_file::{Known, Slot, View};
use crate::chronicle::protocol::walk::Walk;
use crate::probe::fault::step;
use crate::sealed::cipher::Place;
use crate::sealed::layers::{AtEnd, Layers, Storing};
use crate::sealed::packing::Compression;
use crate::{Error, Result, warnings};

/// The next step of space is reserved once fewer bytes than this are writable.
pub const LOW: u64 = 16 << 10;

/// The file being appended to, and where its documents end as far as this appender knows.
pub struct Tail {
    pub view: View,
    index: IndexWriter,
    /// `writePosition` when `free` and `sequence` were determined.
    write_position: u64,
    /// The first 0 header.
    free: u64,
    /// The sequence the next message gets.
    pub sequence: u64,
    /// The index of the file's message of sequence 0.
    first_index: i64,
    /// How many messages the file's index and the queue's indexes can number.
    limit: u64,
    /// Positions up to here are writable.
    writable_to: u64,
    /// From this position on the next step of space is due; the maximum once that was reported.
    low_from: u64,
    /// Documents may start at positions below this one: the file is long enough for its block.
    starts_below: u64,
    /// How the file grows.
    growth: Growth,
    /// The longest payload.
    longest: u64,
    /// Messages that are stored and not visible yet.
    run: Run,
}

/// Consecutive stored messages, all after a first header that is still 0.
#[derive(Default)]
struct Run {
    count: u64,
    /// Position and header word of the first.
    first: (u64, u32),
    /// Position of the last.
    last: u64,
    /// Positions and sequences of the messages that get a slot in the index.
    due: Vec<(u64, u64)>,
}

impl Tail {
    pub fn new(mut view: View, roll: &RollCycle, growth: Growth) -> Result<Self> {
        let index = IndexWriter::new(&mut view)?;
        let first_index = roll.to_index(view.file().cycle, 0)?;
        let limit = view.file().shape.max_messages().min(roll.sequence_mask() + 1);
        Ok(Self {
            view,
            index,
            write_position: u64::MAX,
            free: 0,
            sequence: 0,
            first_index,
            limit,
            writable_to: 0,
            low_from: u64::MAX,
            starts_below: 0,
            growth,
            longest: blocks::longest_payload(growth.block),
            run: Run::default(),
        })
    }

    /// The index the next message gets.
    #[inline]
    #[must_use]
    pub const fn next_index(&self) -> i64 {
        self.first_index + self.sequence.cast_signed()
    }

    /// The place that an encrypted document at the end is bound to; for metadata, that of the next
    /// message.
    fn place(&self, is_metadata: bool) -> Place {
        Place { cycle: self.view.file().cycle, index: self.next_index(), is_metadata }
    }

    /// Whether one more message can be published without waiting or a system call.
    #[inline]
    pub fn is_ready_for(&self, cycle: i32, length: u64) -> bool {
        self.run.count == 0 && self.has_room_for(cycle, length) && self.is_up_to_date()
    }

    #[inline]
    fn has_room_for(&self, cycle: i32, length: u64) -> bool {
        let file = self.view.file();
        file.cycle == cycle
            && length <= self.longest
            && self.free + room(length) <= self.writable_to
            && self.free < self.starts_below
            && self.sequence < self.limit
            && (!file.shape.is_indexed(self.sequence)
                || self.index.is_ready(&self.view, self.sequence))
    }

    /// Whether the next step of space is due.
    #[inline]
    pub const fn is_low(&self) -> bool {
        self.free > self.low_from
    }

    /// Like [`Tail::is_low`], but returns true only once per step.
    pub const fn take_low(&mut self) -> bool {
        let is_low = self.is_low();
        if is_low {
            self.low_from = u64::MAX;
        }
        is_low
    }

    /// Position of the last published message; beyond the file if unknown.
    #[inline]
    pub const fn last_position(&self) -> u64 {
        self.write_position
    }

    /// Where the next message goes.
    pub const fn end(&self) -> u64 {
        self.free
    }

    /// Notes that positions up to `to` are writable.
    pub fn note_writable(&mut self, to: u64) {
        if to > self.writable_to && to <= self.view.region().len() {
            self.writable_to = to;
            self.low_from = to.saturating_sub(LOW);
        }
    }

    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    fn is_up_to_date(&self) -> bool {
        let cells = self.view.region();
        cells.load_acquire(self.view.file().layout.write_position) == self.write_position
            && cells.load_header_acquire(self.free) == NOT_INITIALIZED
    }

    /// Stores one more message of a run, to be shown by [`Tail::show_run`]; false if making room
    /// would need a step that waits, or the first header is not 0.
    #[inline]
    pub fn store_in_run(
        &mut self,
        guard: &WriteGuard<'_>,
        cycle: i32,
        payload: Payload<'_>,
    ) -> Result<bool> {
        let is_first = self.run.count == 0;
        if !self.has_room_for(cycle, payload.len()) || is_first && !self.is_up_to_date() {
            return Ok(false);
        }
        let (position, cells) = (self.free, self.view.region());
        let length = length_of(payload);
        let word = document::word(length, false);
        let stored = if is_first {
            self.run.first = (position, word);
            publish::store(cells, position, payload, guard)
        } else {
            publish::store_after(cells, position, payload, word, guard)
        };
        stored.map_err(|error| indexing::not_published(&self.view, position, error, guard))?;
        if IndexWriter::is_due(&self.view, self.sequence) {
            self.run.due.push((position, self.sequence));
        }
        self.run.count += 1;
        self.run.last = position;
        self.free = document::next(position, length, true);
        self.sequence += 1;
        Ok(true)
    }

    /// Like [`Tail::store_in_run`], for a message that is stored transformed; returns its stored
    /// length, or None.
    #[inline(never)]
    pub fn store_layered(
        &mut self,
        guard: &WriteGuard<'_>,
        cycle: i32,
        payload: Payload<'_>,
        layered: Layered<'_>,
    ) -> Result<Option<u64>> {
        let stored = layered.stored(self, payload, false)?;
        Ok(self.store_in_run(guard, cycle, stored)?.then_some(stored.len()))
    }

    /// Steps 8 and 9 for the messages of a run; returns their span, if there are any.
    pub fn show_run(&mut self, guard: &WriteGuard<'_>) -> Result<Option<Span>> {
        if self.run.count == 0 {
            return Ok(None);
        }
        let run = std::mem::take(&mut self.run);
        let (position, word) = run.first;
        let shown = publish::show(self.view.region(), position, word, guard);
        if let Err(error) = shown {
            self.forget(&run);
            return Err(indexing::not_published(&self.view, position, error, guard));
        }
        IndexWriter::record(&self.view, run.last, self.sequence - 1, guard);
        self.write_position = run.last;
        for &(position, sequence) in &run.due {
            self.add_to_index(guard, position, sequence);
        }
        self.run.due = run.due;
        self.run.due.clear();
        let last = self.next_index() - 1;
        Ok(Some(Span { first: last + 1 - run.count.cast_signed(), position, last }))
    }

    /// Drops a run whose messages never became visible.
    fn forget(&mut self, run: &Run) {
        if run.count > 0 {
            self.sequence -= run.count;
            self.free = run.first.0;
        }
    }

    /// Steps 5 and 6.
    pub fn catch_up(&mut self, guard: &WriteGuard<'_>) -> Result<()> {
        let left_over = std::mem::take(&mut self.run);
        self.forget(&left_over);
        let file = self.view.file();
        let write_position = self.view.region().load_acquire(file.layout.write_position);
        if write_position != self.write_position || self.free == 0 {
            let end = locate::end(&mut self.view)?;
            (self.write_position, self.free) = (write_position, end.position);
            self.sequence = end.next_sequence();
        }
        // A writer may have died after publishing messages and before raising the write position.
        let free = Known { position: self.free, sequence: self.sequence };
        let mut walk = Walk::from(&mut self.view, Some(free));
        let slot = walk.to_end()?;
        (self.free, self.sequence) = (walk.at.position, walk.at.sequence);
        match slot {
            Slot::Waiting(found) if found != NOT_INITIALIZED => self.clear_abandoned(found, guard),
            Slot::EndOfData => {
                let file = self.view.path();
                Err(Error::WriteAfterEof { file, position: self.free })
            }
            _ => Ok(()),
        }
    }

    /// Resets `writePosition` to the last message before the end if it lies after the end: a power
    /// cut lost the messages in between, and their positions will be written again.
    pub fn forget_after_end(&mut self, _guard: &WriteGuard<'_>) -> Result<()> {
        if self.write_position > self.free {
            let last = locate::end(&mut self.view)?.last.map_or(0, |last| last.position);
            let (word, step) =
                (self.view.file().layout.write_position, step!("append.write-position.store"));
            self.view.region().lower_acq_rel(word, last.cast_signed(), step);
            self.write_position = last;
        }
        Ok(())
    }

    /// The index of the file's last message; None if the file has its end marker, or no message.
    pub fn last_if_open(&mut self) -> Result<Option<i64>> {
        let end = locate::end(&mut self.view)?;
        let last = end.last.filter(|_| end.slot != Slot::EndOfData);
        Ok(last.map(|last| self.first_index + last.sequence.cast_signed()))
    }

    /// Clears a header that a dead or foreign writer left incomplete.
    fn clear_abandoned(&self, found: u32, _guard: &WriteGuard<'_>) -> Result<()> {
        let (file, position) = (self.view.file(), self.free);
        warnings::leave(format!(
            "an unfinished document is overwritten: file={} position={position:#x} \
             header={found:#010x}",
            file.path().display()
        ));
        let (cells, step) = (self.view.region(), step!("append.abandoned.cas"));
        cells.publish_header(position, found, NOT_INITIALIZED, step).map_err(|found| {
            let found = format!("{found:#010x}");
            Error::corrupt("header changed under the write lock", file.path(), position, found, "0")
        })?;
        Ok(())
    }

    pub fn check_sequence(&self, metadata: bool) -> Result<()> {
        if metadata || self.sequence < self.limit {
            return Ok(());
        }
        let cycle = self.view.file().cycle;
        Err(Error::CycleFull { cycle, sequence: self.sequence, limit: self.limit })
    }

    /// Step 7: room for the message, for the index array it may need, and for a next header.
    /// Returns where it ends.
    pub fn make_room(
        &mut self,
        length: u64,
        metadata: bool,
        guard: &DetachedGuard<'_>,
    ) -> Result<u64> {
        let mut end = self.free + room(length);
        if !metadata && IndexWriter::is_due(&self.view, self.sequence) {
            end += self.index.make_room(&mut self.view, self.sequence)?;
        }
        if end > self.writable_to || self.free >= self.starts_below {
            let writable_to = self.view.make_writable(self.free, end, self.growth, guard)?;
            self.note_writable(writable_to);
            let block = self.growth.block;
            self.starts_below = (self.free / block + 1) * block;
        }
        if !metadata && self.write_position == 0 {
            self.name_a_document(guard)?;
        }
        Ok(end)
    }

    /// Sets `writePosition` to a document before the first message becomes visible: if this process
    /// dies right after, Java continues counting from that document, and would miscount if it were
    /// 0.
    #[cold]
    fn name_a_document(&mut self, _guard: &WriteGuard<'_>) -> Result<()> {
        let file = self.view.file();
        let (index2index, word) = (file.layout.index2index, file.layout.write_position);
        let position = self.view.word(index2index)?;
        let step = step!("append.first-position.cas");
        if self.view.array(position)?.is_some()
            && self.view.region().swap_acq_rel(word, 0, position, step).is_ok()
        {
            self.write_position = position;
        }
        Ok(())
    }

    /// Steps 8 and 9; returns the index.
    pub fn publish(
        &mut self,
        guard: &WriteGuard<'_>,
        payload: Payload<'_>,
        metadata: bool,
    ) -> Result<i64> {
        if !metadata {
            return self.publish_message(guard, payload);
        }
        self.publish_document(guard, payload, true)?;
        Ok(self.next_index())
    }

    /// Like [`Tail::publish`], for a document that is stored transformed; also returns its stored
    /// length.
    #[inline(never)]
    pub fn publish_layered(
        &mut self,
        guard: &WriteGuard<'_>,
        payload: Payload<'_>,
        metadata: bool,
        layered: Layered<'_>,
    ) -> Result<(i64, u64)> {
        let stored = layered.stored(self, payload, metadata)?;
        Ok((self.publish(guard, stored, metadata)?, stored.len()))
    }

    /// Like [`Tail::publish`], for a message.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 3 %")]
    #[inline(always)]
    pub fn publish_message(&mut self, guard: &WriteGuard<'_>, payload: Payload<'_>) -> Result<i64> {
        let (index, position, sequence) = (self.next_index(), self.free, self.sequence);
        self.publish_document(guard, payload, false)?;
        self.sequence += 1;
        IndexWriter::record(&self.view, position, sequence, guard);
        self.write_position = position;
        self.add_to_index(guard, position, sequence);
        Ok(index)
    }

    /// Step 8.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 3 %")]
    #[inline(always)]
    fn publish_document(
        &mut self,
        guard: &WriteGuard<'_>,
        payload: Payload<'_>,
        metadata: bool,
    ) -> Result<()> {
        let (position, length) = (self.free, length_of(payload));
        let word = document::word(length, metadata);
        publish::publish(self.view.region(), position, payload, word, guard)
            .map_err(|error| indexing::not_published(&self.view, position, error, guard))?;
        self.free = document::next(position, length, true);
        Ok(())
    }

    /// Stores the slot of a visible message, if it gets one. The message stays valid on failure: a
    /// missing slot only makes searches longer.
    #[inline]
    fn add_to_index(&mut self, guard: &WriteGuard<'_>, position: u64, sequence: u64) {
        if IndexWriter::is_due(&self.view, sequence) {
            match self.index.index(&mut self.view, position, sequence, self.free, guard) {
                Ok(free) => self.free = free,
                Err(error) => self.leave_unindexed(sequence, &error),
            }
        }
    }

    #[cold]
    fn leave_unindexed(&mut self, sequence: u64, error: &Error) {
        self.write_position = u64::MAX;
        warnings::leave(format!(
            "a message stays without index entry: file={} sequence={sequence} reason={error}",
            self.view.file().path().display()
        ));
    }
}

/// How documents are stored, and the buffers for that.
pub struct Layered<'a> {
    pub layers: &'a Layers,
    pub compression: Option<&'a Compression>,
    pub storing: &'a mut Storing,
}

impl<'a> Layered<'a> {
    fn stored(self, tail: &Tail, payload: Payload<'a>, is_metadata: bool) -> Result<Payload<'a>> {
        let end = DocumentAtEnd { tail, is_metadata };
        self.layers.stored(self.compression, &end, payload, self.storing)
    }
}

struct DocumentAtEnd<'a> {
    tail: &'a Tail,
    is_metadata: bool,
}

impl AtEnd for DocumentAtEnd<'_> {
    fn place(&self) -> Place {
        self.tail.place(self.is_metadata)
    }

    fn position(&self) -> u64 {
        self.tail.free
    }

    fn sum_of(&self, position: u64, length: u32) -> Option<u32> {
        let (run, cells) = (&self.tail.run, self.tail.view.region());
        let word = document::word(length, false);
        let payload = position + HEADER_LEN;
        if payload + u64::from(length) > self.tail.free.min(cells.len()) {
            return None;
        }
        // The first header of a run is stored last.
        let is_first = run.count > 0 && run.first == (position, word);
        let is_there = is_first || cells.load_header_acquire(position) == word;
        is_there.then(|| crc32fast::hash(&cells.copy_out_relaxed(payload, length.into())))
    }
}

/// A payload's length, which the overlap and the header's bits bound.
#[allow(clippy::cast_possible_truncation)]
#[inline]
const fn length_of(payload: Payload<'_>) -> u32 {
    payload.len() as u32
}

/// Bytes a message of this length takes, with the zeros after it and the next header.
#[inline]
const fn room(length: u64) -> u64 {
    HEADER_LEN + length + TAIL_ZEROS + HEADER_LEN + document::ALIGNMENT
}
