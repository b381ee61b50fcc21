//! Numbers in groups of seven bits, as in compressed messages (`docs/format.md` §1.13).

/// An unsigned number in groups of seven bits, the lowest first.
pub(super) struct Number([u8; 5], usize);

impl Number {
    pub(super) fn of(mut value: usize) -> Self {
        let (mut bytes, mut length) = ([0; 5], 0);
        loop {
            let low = u8::try_from(value & 0x7f).unwrap_or(0);
            value >>= 7;
            bytes[length] = if value == 0 { low } else { low | 0x80 };
            length += 1;
            if value == 0 || length == bytes.len() {
                return Self(bytes, length);
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Parses an unsigned number in groups of seven bits, the lowest first; returns it and the rest.
pub(super) fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}
