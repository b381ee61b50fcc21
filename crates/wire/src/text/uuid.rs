//! UUIDs as text.

/// Formats the two halves of a UUID.
#[must_use]
pub fn shown(high: u64, low: u64) -> String {
    let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low << 16 >> 16)
}

/// Parses a UUID into its two halves.
#[must_use]
pub fn parse(text: &str) -> Option<(u64, u64)> {
    let lengths = text.split('-').map(str::len);
    let digits = text.replace('-', "");
    let is_one = lengths.eq([8, 4, 4, 4, 12]) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let (high, low) = digits.split_at_checked(16).filter(|_| is_one)?;
    Some((u64::from_str_radix(high, 16).ok()?, u64::from_str_radix(low, 16).ok()?))
}
