//! Where a tailer goes: its direction, and moves other than by reading on.

use super::{Direction, Inner, Tailer};
use crate::Result;

impl Tailer {
    /// The direction.
    pub fn direction(&self) -> Result<Direction> {
        self.queue.check_generation()?;
        Ok(self.lock().cursor.direction())
    }

    /// Changes the direction.
    pub fn set_direction(&self, direction: Direction) -> Result<()> {
        let mut inner = self.enter()?;
        inner.cursor.set_direction(&self.queue, direction)
    }

    /// Whether reads backward visit only the messages that the index names.
    pub fn is_striding(&self) -> Result<bool> {
        self.queue.check_generation()?;
        Ok(self.lock().cursor.is_striding())
    }

    /// Has reads backward visit only the messages that the index names, from the next step on.
    pub fn set_striding(&self, is_striding: bool) -> Result<()> {
        self.enter()?.cursor.set_striding(is_striding);
        Ok(())
    }

    /// Goes to the first message.
    pub fn to_start(&self) -> Result<()> {
        let mut inner = self.enter()?;
        inner.cursor.go_to_start(&self.queue)?;
        self.moved(&mut inner)
    }

    /// Moves past the last message; backward: to the last message.
    pub fn to_end(&self) -> Result<()> {
        let mut inner = self.enter()?;
        inner.cursor.go_to_end(&self.queue)?;
        self.moved(&mut inner)
    }

    /// Goes to an index; true when a message is there.
    pub fn move_to_index(&self, index: i64) -> Result<bool> {
        let mut inner = self.enter()?;
        let found = inner.cursor.move_to_index(&self.queue, index)?;
        self.moved(&mut inner)?;
        Ok(found)
    }

    fn moved(&self, inner: &mut Inner) -> Result<()> {
        inner.turn_back();
        inner.unfinished = false;
        match &self.name {
            Some(name) => {
                name.store_move(&self.queue, inner.cursor.index_or_first(&self.queue)?.max(0))
            }
            None => Ok(()),
        }
    }
}
