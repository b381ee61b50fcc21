//! Moving a tailer: its direction, and seeks.

use super::{Direction, Inner, Tailer};
use crate::Result;
use crate::os::detached::Detached;

impl Tailer {
    /// The direction.
    pub fn direction(&self, may_wait: &Detached) -> Result<Direction> {
        self.queue.check_generation()?;
        Ok(self.inner.lock(may_wait).cursor.direction())
    }

    /// Changes the direction.
    pub fn set_direction(&self, may_wait: &Detached, direction: Direction) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        inner.cursor.set_direction(&self.queue, direction)
    }

    /// Whether reads backward visit only indexed messages.
    pub fn is_striding(&self, may_wait: &Detached) -> Result<bool> {
        self.queue.check_generation()?;
        Ok(self.inner.lock(may_wait).cursor.is_striding())
    }

    /// Sets whether reads backward visit only indexed messages, from the next step on.
    pub fn set_striding(&self, may_wait: &Detached, is_striding: bool) -> Result<()> {
        self.enter(may_wait)?.cursor.set_striding(is_striding);
        Ok(())
    }

    /// Goes to the first message.
    pub fn to_start(&self, may_wait: &Detached) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        inner.cursor.go_to_start(&self.queue)?;
        self.moved(may_wait, &mut inner)
    }

    /// Moves past the last message; backward: to the last message.
    pub fn to_end(&self, may_wait: &Detached) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        inner.cursor.go_to_end(&self.queue)?;
        self.moved(may_wait, &mut inner)
    }

    /// Goes to an index; true if it has a message.
    pub fn move_to_index(&self, may_wait: &Detached, index: i64) -> Result<bool> {
        let mut inner = self.enter(may_wait)?;
        let found = inner.cursor.move_to_index(&self.queue, index)?;
        self.moved(may_wait, &mut inner)?;
        Ok(found)
    }

    fn moved(&self, may_wait: &Detached, inner: &mut Inner) -> Result<()> {
        inner.turn_back();
        inner.unfinished = false;
        match &self.name {
            Some(name) => {
                let index = inner.cursor.index_or_first(&self.queue)?.max(0);
                name.store_move(&self.queue, index, may_wait)
            }
            None => Ok(()),
        }
    }
}
