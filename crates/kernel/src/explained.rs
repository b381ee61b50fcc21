//! What the bytes of one message mean, part by part, in any format.

use std::path::{Path, PathBuf};

/// The most bytes of a part that are returned.
pub const SHOWN_MAX: usize = 256;

/// The section of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Bytes before the payload.
    Header,
    /// The message.
    Payload,
    /// Bytes after the payload.
    Next,
    /// Words that point to the message.
    Index,
}

impl Section {
    /// Its public name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Payload => "payload",
            Self::Next => "next",
            Self::Index => "index",
        }
    }
}

/// Consecutive bytes of a file that mean one thing.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where it belongs.
    pub section: Section,
    /// The file it is in.
    pub file: PathBuf,
    /// Where in the file.
    pub position: u64,
    /// Bytes.
    pub length: u64,
    /// How many blocks it is inside of.
    pub depth: usize,
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// Its kind: a code of BinaryWire, or a word of the format.
    pub code: &'static str,
    /// Its meaning.
    pub meaning: String,
}

impl Part {
    /// A part that is in no block.
    #[must_use]
    pub fn plain(
        (section, file): (Section, &Path),
        (position, length): (u64, u64),
        bytes: &[u8],
        code: &'static str,
        meaning: String,
    ) -> Self {
        let bytes = bytes[..bytes.len().min(SHOWN_MAX)].to_vec();
        Self { section, file: file.to_path_buf(), position, length, depth: 0, bytes, code, meaning }
    }
}

/// The bytes of one message.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The file that holds the message, or its beginning.
    pub file: PathBuf,
    /// In the order of their sections.
    pub parts: Vec<Part>,
}
