//! Errors in the fields of a message: messages are not self-describing, so a reader must know the
//! order of fields.

/// Why a field cannot be packed or unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each variant's text says it
pub enum FieldError {
    #[error(
        "the message ends before the field does: field={field} position={position} \
         needed={needed} length={length}"
    )]
    PastEnd { field: &'static str, position: usize, needed: u64, length: usize },
    #[error(
        "the text has no end in the message: field={field} position={position} length={length}"
    )]
    Unterminated { field: &'static str, position: usize, length: usize },
    #[error("not a {field}: position={position} found={found} expected={expected}")]
    Unexpected { field: &'static str, position: usize, found: String, expected: &'static str },
    #[error("pack_string takes only ASCII characters, pack_unicode takes any: character={0:?}")]
    NotAscii(char),
    #[error(
        "a text must not contain a NUL character, which would end it: field={field} \
         position={position}"
    )]
    Nul { field: &'static str, position: usize },
    #[error("too long for a field: field={field} length={length} limit={limit}")]
    TooLong { field: &'static str, length: usize, limit: u32 },
}

/// The result of packing or unpacking a field.
pub type Result<T> = std::result::Result<T, FieldError>;
