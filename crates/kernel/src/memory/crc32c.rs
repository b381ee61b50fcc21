//! CRC-32C (Castagnoli), by the processor's instruction where it has one.

/// The polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// The most words per part. An input is summed in three parts at once, as the instruction has a
/// latency of three cycles and a throughput of one per cycle; a longer input is summed piece by
/// piece.
const LANE: usize = 128;
/// An input of fewer words is summed in one part.
const SHORT: usize = 24;

/// The sum of bytes with `bytes` appended, where `sum` is that of the preceding bytes (0 for none).
#[inline]
#[must_use]
pub fn add(sum: u32, bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("sse4.2")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
    {
        // SAFETY: the processor supports SSE4.2 and PCLMULQDQ (checked), all that the function
        // requires.
        return !unsafe { by_instruction(!sum, bytes) };
    }
    !by_table(!sum, bytes)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn by_instruction(mut state: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (mut words, rest) = bytes.as_chunks::<8>();
    while words.len() >= SHORT {
        let lane = (words.len() / 3).min(LANE);
        let (first, after) = words.split_at(lane);
        let (second, after) = after.split_at(lane);
        let (third, after) = after.split_at(lane);
        let mut sums = [u64::from(state), 0, 0];
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            sums[0] = _mm_crc32_u64(sums[0], u64::from_le_bytes(*first));
            sums[1] = _mm_crc32_u64(sums[1], u64::from_le_bytes(*second));
            sums[2] = _mm_crc32_u64(sums[2], u64::from_le_bytes(*third));
        }
        state = low(past_zeros(sums[0], 2 * lane) ^ past_zeros(sums[1], lane) ^ sums[2]);
        words = after;
    }
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let state = low(words.fold(u64::from(state), |state, word| _mm_crc32_u64(state, word)));
    rest.iter().fold(state, |state, byte| _mm_crc32_u8(state, *byte))
}

/// The state after this many words of zeros.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
fn past_zeros(state: u64, words: usize) -> u64 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    };

    let (state, power) = (state.cast_signed(), i64::from(POWERS[words]));
    let product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(state), _mm_cvtsi64_si128(power), 0);
    _mm_crc32_u64(0, _mm_cvtsi128_si64(product).cast_unsigned())
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(clippy::cast_possible_truncation)] // the upper half is 0
const fn low(state: u64) -> u32 {
    state as u32
}

fn by_table(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |state, byte| state >> 8 ^ BYTES[index(state ^ u32::from(*byte))])
}

const fn index(word: u32) -> usize {
    (word & 0xFF) as usize
}

/// The state after each byte.
#[allow(clippy::cast_possible_truncation)] // below 256
static BYTES: [u32; 256] = {
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

/// By number of zero words, the factor that advances a state past them: x to the power of their
/// bits, minus the 33 that reversed multiplication and the final sum add.
#[cfg(all(target_arch = "x86_64", not(miri)))]
static POWERS: [u32; 2 * LANE + 1] = {
    let mut powers = [0; 2 * LANE + 1];
    let (mut power, mut bits) = (1 << 31, 0);
    while bits + 33 <= 128 * LANE {
        if (bits + 33) % 64 == 0 {
            powers[(bits + 33) / 64] = power;
        }
        power = if power & 1 == 1 { power >> 1 ^ POLYNOMIAL } else { power >> 1 };
        bits += 1;
    }
    powers
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
        let bytes: Vec<u8> = (0..8000_u32).map(|it| ((it * it) >> 3).to_le_bytes()[0]).collect();
        let edges = [8 * SHORT - 1, 8 * SHORT, 24 * LANE, 24 * LANE + 1, 48 * LANE + 7, 8000];
        for length in (0..bytes.len()).step_by(41).chain(edges) {
            let (first, rest) = bytes[..length].split_at(length / 3);
            let expected = !by_table(!0, &bytes[..length]);
            assert_eq!(add(0, &bytes[..length]), expected, "{length}");
            assert_eq!(add(add(0, first), rest), expected, "{length}");
        }
    }
}
