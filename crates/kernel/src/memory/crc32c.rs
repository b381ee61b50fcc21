//! CRC-32C (Castagnoli), by the processor's instruction where it has one.

/// The polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// Of a long input three parts of this length are summed at once: the instruction takes three cycles,
/// and may begin in each.
const LANE: usize = 128;

/// The sum of what follows bytes whose sum is `sum`, 0 before any.
#[inline]
#[must_use]
pub fn add(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has what the function needs.
        return !unsafe { by_instruction(!sum, bytes) };
    }
    !by_table(!sum, bytes)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2")]
fn by_instruction(mut state: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (blocks, rest) = bytes.as_chunks::<{ 3 * LANE }>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        let mut lanes = [u64::from(state), 0, 0];
        for at in 0..LANE / 8 {
            for (number, lane) in lanes.iter_mut().enumerate() {
                let word = words[number * LANE / 8 + at];
                *lane = _mm_crc32_u64(*lane, u64::from_le_bytes(word));
            }
        }
        let [first, second, third] = lanes.map(low);
        state = past_lane(past_lane(first) ^ second) ^ third;
    }
    let (words, rest) = rest.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let state = low(words.fold(u64::from(state), |state, word| _mm_crc32_u64(state, word)));
    rest.iter().fold(state, |state, byte| _mm_crc32_u8(state, *byte))
}

#[allow(clippy::cast_possible_truncation)] // the upper half is 0
const fn low(state: u64) -> u32 {
    state as u32
}

fn by_table(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |state, byte| state >> 8 ^ BYTES[index(state ^ u32::from(*byte))])
}

/// The state after a lane of zeros.
const fn past_lane(state: u32) -> u32 {
    LANES[0][index(state)]
        ^ LANES[1][index(state >> 8)]
        ^ LANES[2][index(state >> 16)]
        ^ LANES[3][index(state >> 24)]
}

const fn index(word: u32) -> usize {
    (word & 0xFF) as usize
}

/// The state that each byte leads to.
static BYTES: [u32; 256] = BYTES_MADE;
#[allow(clippy::cast_possible_truncation)] // below 256
const BYTES_MADE: [u32; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut state, mut bit) = (byte as u32, 0);
        while bit < 8 {
            state = if state & 1 == 1 { state >> 1 ^ POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        table[byte] = state;
        byte += 1;
    }
    table
};

/// For each byte of a state what it leads to past a lane of zeros.
static LANES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut bit = 0;
    while bit < 32 {
        let (mut state, mut zeros) = (1_u32 << bit, 0);
        while zeros < LANE {
            state = state >> 8 ^ BYTES_MADE[index(state)];
            zeros += 1;
        }
        // The sum of several bits is that of each.
        let mut byte = 0;
        while byte < 256 {
            if byte >> (bit % 8) & 1 == 1 {
                tables[bit / 8][byte] ^= state;
            }
            byte += 1;
        }
        bit += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, sum) in [
            (&b""[..], 0),
            (b"123456789", 0xE306_9283),
            (&[0; 32], 0x8A91_36AA),
            (&[0xFF; 32], 0x62A8_AB43),
            (&ascending, 0x46DD_794E),
        ] {
            assert_eq!(add(0, bytes), sum);
            assert_eq!(!by_table(!0, bytes), sum);
        }
    }

    #[test]
    fn the_instruction_and_the_table_agree_wherever_the_input_is_cut() {
        let bytes: Vec<u8> = (0..2000_u32).map(|it| ((it * it) >> 3).to_le_bytes()[0]).collect();
        for length in (0..bytes.len()).step_by(41).chain([383, 384, 385, 768, 1152]) {
            let (first, rest) = bytes[..length].split_at(length / 3);
            let expected = !by_table(!0, &bytes[..length]);
            assert_eq!(add(0, &bytes[..length]), expected, "{length}");
            assert_eq!(add(add(0, first), rest), expected, "{length}");
        }
    }
}
