//! The buckets of an HDR histogram: 64 for each power of two, so that a value is known to 1.6 %.

const SUB_BITS: u32 = 6;
/// Values of more bits (in nanoseconds, more than an hour) count in the last bucket.
const VALUE_BITS: u32 = 42;
/// How many buckets there are.
pub const BUCKETS: u64 = ((VALUE_BITS - SUB_BITS + 1) as u64) << SUB_BITS;

/// The bucket of a value.
#[must_use]
pub const fn bucket(value: u64) -> u64 {
    let limit = (1 << VALUE_BITS) - 1;
    let value = if value > limit { limit } else { value };
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    ((shift as u64) << SUB_BITS) + (value >> shift)
}

/// The lowest value of a bucket, and the lowest of the next.
#[must_use]
pub const fn bounds(bucket: u64) -> (u64, u64) {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let place = bucket - (shift << SUB_BITS);
    (place << shift, (place + 1) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_ends() {
        let mut next = 0;
        for number in 0..BUCKETS {
            let (low, high) = bounds(number);
            assert_eq!((low, bucket(low), bucket(high - 1)), (next, number, number));
            assert!(high - low == 1 || (high - low) * 64 <= low, "{low} to {high}");
            next = high;
        }
        assert_eq!(next, 1 << VALUE_BITS);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
