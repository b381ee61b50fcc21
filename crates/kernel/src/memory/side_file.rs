//! The header of a side file of one length: a magic word, stored last when the file is created.

use std::path::Path;

use crate::{Error, Result};

/// Where the magic word is.
pub const MAGIC_AT: u64 = 0;

/// The magic word and length of one kind of side file.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Its magic word.
    pub magic: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The error text for another kind of file.
    pub otherwise: &'static str,
}

impl Header {
    /// Checks the length of a kind of file that is complete before it gets its name.
    pub fn check_length(self, len: u64, path: &Path) -> Result<()> {
        let expected = self.len;
        self.check(len == expected, path, format!("{len} bytes"), format!("{expected} bytes"))
    }

    /// Checks the magic word of a kind of file that is complete before it gets its name.
    pub fn check_magic(self, word: u64, path: &Path) -> Result<()> {
        let expected = self.magic;
        self.check(word == expected, path, format!("{word:#018x}"), format!("{expected:#018x}"))
    }

    /// Whether a file that is created in place has its length yet.
    pub fn has_length(self, len: u64, path: &Path) -> Result<bool> {
        if len == 0 { Ok(false) } else { self.check_length(len, path).map(|()| true) }
    }

    /// Whether a file that is created in place has its magic word yet.
    pub fn has_magic(self, word: u64, path: &Path) -> Result<bool> {
        if word == 0 { Ok(false) } else { self.check_magic(word, path).map(|()| true) }
    }

    fn check(self, is_right: bool, path: &Path, found: String, expected: String) -> Result<()> {
        if is_right {
            return Ok(());
        }
        Err(Error::corrupt(self.otherwise, path, MAGIC_AT, found, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { magic: 7, len: 64, otherwise: "not a file of sevens" };

    #[test]
    fn a_file_is_whole_in_the_making_or_another() {
        let path = Path::new("sevens");
        assert!(HEADER.has_length(64, path).unwrap() && HEADER.has_magic(7, path).unwrap());
        assert!(!HEADER.has_length(0, path).unwrap() && !HEADER.has_magic(0, path).unwrap());
        let errors = [
            (HEADER.check_length(0, path), "0 bytes"),
            (HEADER.has_length(63, path).map(drop), "63 bytes"),
            (HEADER.check_magic(0, path), "0x0000000000000000"),
            (HEADER.has_magic(8, path).map(drop), "0x0000000000000008"),
        ];
        for (error, found) in errors {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("not a file of sevens") && text.contains(found), "{text}");
        }
    }
}
