//! Arrow buffers owned by another library: every access is checked.

use crate::error::{Result, WireError};

/// A column: Arrow's buffers in Arrow's order.
#[derive(Debug, Default)]
pub struct Buffers<'a> {
    /// The number of values.
    pub length: usize,
    /// The offset of the first value.
    pub start: usize,
    /// For timestamps: they have a zone, and so are in UTC.
    pub has_zone: bool,
    /// Validity first (None if all values are valid), then the buffers of the type.
    pub buffers: Vec<Option<&'a [u8]>>,
    /// The nested columns.
    pub children: Vec<Self>,
    /// The values of a dictionary.
    pub dictionary: Option<Box<Self>>,
}

impl<'a> Buffers<'a> {
    fn buffer(&self, place: usize) -> Option<&'a [u8]> {
        self.buffers.get(place).copied().flatten()
    }

    /// The validity bitmap; None if all values are valid.
    pub fn validity(&self) -> Result<Option<Bits<'a>>> {
        self.buffer(0).map(|bytes| self.bits_of(bytes)).transpose()
    }

    /// One-bit values.
    pub fn bits(&self) -> Result<Bits<'a>> {
        self.bits_of(self.buffer(1).unwrap_or_default())
    }

    fn bits_of(&self, bytes: &'a [u8]) -> Result<Bits<'a>> {
        let end = self.start.checked_add(self.length).ok_or_else(short)?;
        if end.div_ceil(8) > bytes.len() {
            return Err(short());
        }
        Ok(Bits { bytes, start: self.start })
    }

    /// Fixed-size values.
    pub fn fixed<const N: usize>(&self) -> Result<&'a [[u8; N]]> {
        self.counted(self.length)
    }

    /// The offsets of variable-length values: one more than there are values.
    pub fn offsets(&self) -> Result<Offsets<'a>> {
        if self.length == 0 {
            return Ok(Offsets(&[]));
        }
        self.counted(self.length + 1).map(Offsets)
    }

    pub fn strings(&self) -> Result<Strings<'a>> {
        Ok(Strings { offsets: self.offsets()?, data: self.buffer(2).unwrap_or_default() })
    }

    fn counted<const N: usize>(&self, count: usize) -> Result<&'a [[u8; N]]> {
        let all = self.buffer(1).unwrap_or_default().as_chunks::<N>().0;
        let end = self.start.checked_add(count).ok_or_else(short)?;
        all.get(self.start..end).ok_or_else(short)
    }
}

/// A bitmap.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl Bits<'_> {
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        let place = self.start + row;
        self.bytes.get(place / 8).is_some_and(|byte| byte & (1 << (place % 8)) != 0)
    }
}

/// The offsets of variable-length values.
#[derive(Clone, Copy, Debug)]
pub struct Offsets<'a>(&'a [[u8; 4]]);

impl Offsets<'_> {
    /// The range of a value; None if its end is before its start.
    #[inline]
    pub fn range(&self, row: usize) -> Result<std::ops::Range<usize>> {
        let at = |place: usize| {
            let bytes = self.0.get(place)?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        };
        match (at(row), at(row + 1)) {
            (Some(from), Some(to)) if from <= to => Ok(from..to),
            _ => Err(short()),
        }
    }
}

/// Concatenated byte arrays.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    offsets: Offsets<'a>,
    data: &'a [u8],
}

impl<'a> Strings<'a> {
    #[inline]
    pub fn get(&self, row: usize) -> Result<&'a [u8]> {
        self.data.get(self.offsets.range(row)?).ok_or_else(short)
    }
}

/// The error for buffers shorter than the column claims.
#[cold]
pub fn short() -> WireError {
    WireError::new("the column's buffers are too short for its values")
}
