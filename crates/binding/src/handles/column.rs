//! Columns of Arrow as they are handed over: buffers that are checked before they are used.

use quire_kernel::Error;

/// The buffers of an Arrow binary or string column.
pub struct Column<'a> {
    /// Where its elements begin and end.
    pub offsets: &'a [u8],
    /// Their bytes.
    pub data: &'a [u8],
    /// The first element.
    pub start: usize,
    /// The offsets have 64 bits.
    pub wide: bool,
    /// The elements are text, which may be empty.
    pub text: bool,
}

impl<'a> Column<'a> {
    /// Looks at every element before the first is written.
    pub fn check(&self, count: usize) -> quire_kernel::Result<()> {
        for number in 0..count {
            if self.element(number)?.is_empty() && !self.text {
                return Err(Error::Invalid(format!(
                    "a message holds at least one byte: length=0 row={number}"
                )));
            }
        }
        Ok(())
    }

    /// An element.
    pub fn element(&self, number: usize) -> quire_kernel::Result<&'a [u8]> {
        let bounds = (self.offset(number), self.offset(number + 1));
        let (Some(from), Some(to)) = bounds else { return Err(bad_column(number)) };
        self.data.get(from..to).ok_or_else(|| bad_column(number))
    }

    fn offset(&self, number: usize) -> Option<usize> {
        let place = self.start.checked_add(number)?;
        if self.wide {
            let bytes = self.offsets.get(place.checked_mul(8)?..)?.first_chunk()?;
            usize::try_from(i64::from_le_bytes(*bytes)).ok()
        } else {
            let bytes = self.offsets.get(place.checked_mul(4)?..)?.first_chunk()?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        }
    }
}

#[cold]
fn bad_column(number: usize) -> Error {
    Error::Invalid(format!("the column's offsets leave its data: row={number}"))
}
