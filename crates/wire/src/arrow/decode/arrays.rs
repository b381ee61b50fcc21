//! Growing Arrow buffers. A column can be truncated, to drop a malformed row.

/// A finished column: Arrow's buffers in Arrow's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// The number of values.
    pub length: usize,
    /// The number of nulls.
    pub nulls: usize,
    /// Validity first (None if all values are valid), then the buffers of the type.
    pub buffers: Vec<Option<Vec<u8>>>,
    /// The nested columns.
    pub children: Vec<Array>,
    /// The values of a dictionary.
    pub dictionary: Option<Box<Array>>,
}

/// A bitmap.
#[derive(Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    length: usize,
}

impl Bits {
    #[inline]
    pub fn push(&mut self, set: bool) {
        let bit = self.length % 8;
        if bit == 0 {
            self.bytes.push(0);
        }
        if set && let Some(last) = self.bytes.last_mut() {
            *last |= 1 << bit;
        }
        self.length += 1;
    }

    fn get(&self, place: usize) -> bool {
        self.bytes.get(place / 8).is_some_and(|byte| byte & (1 << (place % 8)) != 0)
    }

    /// A bitmap with this many set bits.
    fn ones(length: usize) -> Self {
        let mut bits = Self { bytes: vec![0xFF; length.div_ceil(8)], length };
        bits.truncate(length);
        bits
    }

    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.bytes.truncate(self.length.div_ceil(8));
        let used = self.length % 8;
        if used > 0
            && let Some(last) = self.bytes.last_mut()
        {
            *last &= (1 << used) - 1;
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The validity bitmap, which is allocated at the first null.
#[derive(Debug, Default)]
pub struct Validity {
    length: usize,
    nulls: usize,
    bits: Option<Bits>,
}

impl Validity {
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub fn push(&mut self, valid: bool) {
        if !valid || self.bits.is_some() {
            self.push_bit(valid);
        }
        self.length += 1;
    }

    fn push_bit(&mut self, valid: bool) {
        self.bits.get_or_insert_with(|| Bits::ones(self.length)).push(valid);
        self.nulls += usize::from(!valid);
    }

    pub fn truncate(&mut self, length: usize) {
        if let Some(bits) = &mut self.bits {
            self.nulls -= (length..self.length).filter(|place| !bits.get(*place)).count();
            bits.truncate(length);
        }
        self.length = self.length.min(length);
    }

    /// An array with its length, null count and validity.
    pub fn into_array(self) -> Array {
        let bits = self.bits.filter(|_| self.nulls > 0).map(Bits::into_bytes);
        Array { length: self.length, nulls: self.nulls, buffers: vec![bits], ..Array::default() }
    }
}

/// The offsets of a column with variable-length values.
#[derive(Debug)]
pub struct Offsets(Vec<u8>);

impl Default for Offsets {
    fn default() -> Self {
        Self(0_i32.to_le_bytes().to_vec())
    }
}

impl Offsets {
    /// The end of the next value, unless it exceeds what Arrow's offsets can address.
    #[inline]
    pub fn push(&mut self, end: usize) -> Option<()> {
        self.0.extend_from_slice(&i32::try_from(end).ok()?.to_le_bytes());
        Some(())
    }

    /// Appends an empty value.
    #[inline]
    pub fn push_same(&mut self) {
        self.0.extend_from_within(self.0.len() - 4..);
    }

    /// Truncates to this many values; returns the end of the last one.
    pub fn truncate(&mut self, count: usize) -> usize {
        self.0.truncate(4 * (count + 1));
        let last = self.0.last_chunk().map_or(0, |last| i32::from_le_bytes(*last));
        usize::try_from(last).unwrap_or(0)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Strings or byte arrays.
#[derive(Debug, Default)]
pub struct Strings {
    offsets: Offsets,
    data: Vec<u8>,
}

impl Strings {
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.offsets.push(self.data.len() + bytes.len())?;
        self.data.extend_from_slice(bytes);
        Some(())
    }

    pub fn push_empty(&mut self) {
        self.offsets.push_same();
    }

    pub fn truncate(&mut self, count: usize) {
        self.data.truncate(self.offsets.truncate(count));
    }

    pub fn into_buffers(self) -> [Option<Vec<u8>>; 2] {
        [Some(self.offsets.into_bytes()), Some(self.data)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_made_at_the_first_null_and_cut_back() {
        let mut validity = Validity::default();
        (0..9).for_each(|_| validity.push(true));
        assert!(validity.bits.is_none());
        for valid in [false, true, false] {
            validity.push(valid);
        }
        validity.truncate(11);
        let array = validity.into_array();
        assert_eq!((array.length, array.nulls), (11, 1));
        assert_eq!(array.buffers, [Some(vec![0xFF, 0b101])]);
    }

    #[test]
    fn a_column_without_nulls_has_no_bits() {
        let mut validity = Validity::default();
        validity.push(true);
        validity.push(false);
        validity.truncate(1);
        assert_eq!(validity.into_array().buffers, [None]);
    }

    #[test]
    fn strings_are_cut_back_with_their_data() {
        let mut strings = Strings::default();
        for text in ["one", "", "three"] {
            strings.push(text.as_bytes()).unwrap();
        }
        strings.truncate(2);
        strings.push_empty();
        let [offsets, data] = strings.into_buffers();
        assert_eq!(data, Some(b"one".to_vec()));
        let expected: Vec<u8> = [0, 3, 3, 3_i32].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(offsets, Some(expected));
    }

    #[test]
    fn offsets_stop_where_arrow_cannot_count_further() {
        let mut offsets = Offsets::default();
        assert_eq!(offsets.push(1 << 31), None);
        assert_eq!(offsets.push((1 << 31) - 1), Some(()));
    }
}
