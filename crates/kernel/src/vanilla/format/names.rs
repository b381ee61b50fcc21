//! Names of the files of a cycle.

/// Index files of a cycle, as many as Java makes.
pub const MOST_INDEX_FILES: u64 = 10_000;

/// The kind of a cycle's file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `index-{n}`
    Index(u64),
    /// `data-{tid}-{m}`
    Data {
        /// The writer's thread id.
        tid: u32,
        /// The number among the files of that thread.
        file: u64,
    },
}

impl FileName {
    /// Parses a name; None for a foreign file.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(number) = name.strip_prefix("index-") {
            return decimal(number).filter(|it| *it < MOST_INDEX_FILES).map(Self::Index);
        }
        let (tid, file) = name.strip_prefix("data-")?.split_once('-')?;
        Some(Self::Data { tid: u32::try_from(decimal(tid)?).ok()?, file: decimal(file)? })
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(number) => write!(out, "index-{number}"),
            Self::Data { tid, file } => write!(out, "data-{tid}-{file}"),
        }
    }
}

/// A number in its canonical form, so that two names never mean one file.
fn decimal(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|it| it.is_ascii_digit());
    let is_shortest = digits == "0" || !digits.starts_with('0');
    if is_plain && is_shortest { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["index-0", "index-12", "data-1-0", "data-4194303-7"] {
            assert_eq!(FileName::parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn foreign_names_are_none() {
        for name in ["index-", "index-01", "index-x", "index--1", "data-1", "data-1-", "data--1"] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
        for name in ["index-10000", "index-18446744073709551615"] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
        for name in ["data-+1-0", "data-4294967296-0", "index-0.tmp", "20150101", ""] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
