//! What is wrong with a message, and where in it.

use std::borrow::Cow;
use std::fmt;

use crate::codes;

/// A message that cannot be read or written as asked: `what: name=value ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(Box<Told>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    what: Cow<'static, str>,
    /// The names that lead to the value, the outermost first.
    field: String,
    details: String,
    /// The message: its index, file and position.
    place: String,
}

impl WireError {
    /// Something that needs no more words.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Told { what: what.into(), ..Told::default() }))
    }

    /// Adds `name=value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        use fmt::Write;
        let _ = write!(self.0.details, " {name}={value}");
        self
    }

    /// The bytes at `offset` end before the value does.
    #[must_use]
    pub fn early(what: impl Into<Cow<'static, str>>, offset: usize) -> Self {
        Self::new(what).with("offset", offset).with("found", "the end")
    }

    /// Another code than the one that was needed.
    #[must_use]
    pub fn unexpected(expected: &str, found: Option<u8>, offset: usize) -> Self {
        let found = found.map_or("the end".into(), described);
        Self::new("cannot read the message")
            .with("expected", expected)
            .with("found", found)
            .with("offset", offset)
    }

    /// Names the field around what was wrong.
    #[must_use]
    pub fn inside(mut self, name: impl fmt::Display) -> Self {
        let inner = std::mem::take(&mut self.0.field);
        let joint = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
        self.0.field = format!("{name}{joint}{inner}");
        self
    }

    /// Names the message. The innermost wins: a message may be looked at on behalf of another.
    #[must_use]
    pub fn in_message(mut self, index: i64, file: impl fmt::Display, position: u64) -> Self {
        if self.0.place.is_empty() {
            self.0.place = format!(" index={index:#x} file={file} position={position:#x}");
        }
        self
    }
}

/// A code, and the name it has in the table.
fn described(code: u8) -> String {
    format!("{code:#04x} ({})", codes::name(code))
}

impl fmt::Display for WireError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { what, field, details, place } = &*self.0;
        let named = if field.is_empty() { String::new() } else { format!(" field={field}") };
        let colon = if named.len() + details.len() + place.len() > 0 { ":" } else { "" };
        write!(to, "{what}{colon}{named}{details}{place}")
    }
}

impl std::error::Error for WireError {}

/// Results of reading and writing values.
pub type Result<T> = std::result::Result<T, WireError>;
