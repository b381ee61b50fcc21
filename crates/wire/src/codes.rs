//! The code table of BinaryWire (`docs/format.md` §8.1).

/// An 8-bit length, followed by that many bytes.
pub const BYTES_LENGTH8: u8 = 0x80;
/// A 16-bit length, followed by that many bytes.
pub const BYTES_LENGTH16: u8 = 0x81;
/// A 32-bit length, followed by that many bytes.
pub const BYTES_LENGTH32: u8 = 0x82;
/// The first byte of a blob in one of the three blocks above.
pub const U8_ARRAY: u8 = 0x8A;
/// Capacity, used count, and 64-bit integers to fill the capacity.
pub const I64_ARRAY: u8 = 0x8D;
/// Padding with a 32-bit length.
pub const PADDING32: u8 = 0x8E;
/// One byte of padding.
pub const PADDING: u8 = 0x8F;
/// A 32-bit float.
pub const FLOAT32: u8 = 0x90;
/// A 64-bit float.
pub const FLOAT64: u8 = 0x91;
/// A stop-bit integer, divided by 100.
pub const FLOAT_STOP_2: u8 = 0x92;
/// A stop-bit integer, divided by 10,000.
pub const FLOAT_STOP_4: u8 = 0x94;
/// A stop-bit integer, divided by 1,000,000.
pub const FLOAT_STOP_6: u8 = 0x96;
/// Unsigned 8 bits.
pub const UINT8: u8 = 0xA1;
/// Unsigned 16 bits.
pub const UINT16: u8 = 0xA2;
/// Unsigned 32 bits.
pub const UINT32: u8 = 0xA3;
/// Signed 8 bits.
pub const INT8: u8 = 0xA4;
/// Signed 16 bits.
pub const INT16: u8 = 0xA5;
/// Signed 32 bits.
pub const INT32: u8 = 0xA6;
/// Signed 64 bits.
pub const INT64: u8 = 0xA7;
/// Unsigned 8 bits, reserved form.
pub const SET_LOW_INT8: u8 = 0xA8;
/// Unsigned 16 bits, reserved form.
pub const SET_LOW_INT16: u8 = 0xA9;
/// Signed 64 bits, printed in hexadecimal.
pub const INT64_0X: u8 = 0xAF;
/// False.
pub const FALSE: u8 = 0xB0;
/// True.
pub const TRUE: u8 = 0xB1;
/// Time of day as text.
pub const TIME: u8 = 0xB2;
/// A zoned date and time as text: the last of the four text codes that start at [`TIME`].
pub const ZONED_DATE_TIME: u8 = 0xB5;
/// The type name of the next value.
pub const TYPE_PREFIX: u8 = 0xB6;
/// A field name of any length.
pub const FIELD_NAME_ANY: u8 = 0xB7;
/// A string of any length.
pub const STRING_ANY: u8 = 0xB8;
/// An event name or a map key.
pub const EVENT_NAME: u8 = 0xB9;
/// A numeric field name.
pub const FIELD_NUMBER: u8 = 0xBA;
/// Null.
pub const NULL: u8 = 0xBB;
/// A type name as a value.
pub const TYPE_LITERAL: u8 = 0xBC;
/// A key that is not a string.
pub const EVENT_OBJECT: u8 = 0xBD;
/// A comment.
pub const COMMENT: u8 = 0xBE;
/// An empty field name; the next 31 codes are names of 1 to 31 bytes.
pub const FIELD_NAME0: u8 = 0xC0;
/// An empty string; the next 31 codes are strings of 1 to 31 bytes.
pub const STRING_0: u8 = 0xE0;
/// The length bits of the two codes above.
pub const SHORT_LENGTH_MASK: u8 = 0x1F;
/// The longest string or name whose length fits in its code.
pub const SHORT_LENGTH_MAX: usize = SHORT_LENGTH_MASK as usize;
/// UUID: two 64-bit integers, high half first.
pub const UUID: u8 = 0xA0;
/// The first byte of a block with packed history.
pub const HISTORY_MESSAGE: u8 = 0x86;
/// Reserved: an array of unsigned 16-bit integers.
pub const U16_ARRAY: u8 = 0x8B;
/// Reserved: an array of 32-bit integers.
pub const I32_ARRAY: u8 = 0x8C;
/// A local date as text.
pub const DATE: u8 = 0xB3;
/// A local date and time as text.
pub const DATE_TIME: u8 = 0xB4;
/// Reserved: a hint.
pub const HINT: u8 = 0xBF;

/// The name of a code, for messages.
#[must_use]
pub const fn name(code: u8) -> &'static str {
    match code {
        0..=0x7F => "small integer",
        BYTES_LENGTH8 => "BYTES_LENGTH8",
        BYTES_LENGTH16 => "BYTES_LENGTH16",
        BYTES_LENGTH32 => "BYTES_LENGTH32",
        HISTORY_MESSAGE => "HISTORY_MESSAGE",
        0x87 => "FIELD_ANCHOR",
        0x88 => "ANCHOR",
        0x89 => "UPDATED_ALIAS",
        U8_ARRAY => "U8_ARRAY",
        U16_ARRAY => "U16_ARRAY",
        I32_ARRAY => "I32_ARRAY",
        I64_ARRAY => "I64_ARRAY",
        PADDING32 => "PADDING32",
        PADDING => "PADDING",
        FLOAT32 => "FLOAT32",
        FLOAT64 => "FLOAT64",
        FLOAT_STOP_2 => "FLOAT_STOP_2",
        FLOAT_STOP_4 => "FLOAT_STOP_4",
        FLOAT_STOP_6 => "FLOAT_STOP_6",
        0x9A => "FLOAT_SET_LOW_0",
        0x9B => "FLOAT_SET_LOW_2",
        0x9C => "FLOAT_SET_LOW_4",
        UUID => "UUID",
        UINT8 => "UINT8",
        UINT16 => "UINT16",
        UINT32 => "UINT32",
        INT8 => "INT8",
        INT16 => "INT16",
        INT32 => "INT32",
        INT64 => "INT64",
        SET_LOW_INT8 => "SET_LOW_INT8",
        SET_LOW_INT16 => "SET_LOW_INT16",
        INT64_0X => "INT64_0x",
        FALSE => "FALSE",
        TRUE => "TRUE",
        TIME => "TIME",
        DATE => "DATE",
        DATE_TIME => "DATE_TIME",
        ZONED_DATE_TIME => "ZONED_DATE_TIME",
        TYPE_PREFIX => "TYPE_PREFIX",
        FIELD_NAME_ANY => "FIELD_NAME_ANY",
        STRING_ANY => "STRING_ANY",
        EVENT_NAME => "EVENT_NAME",
        FIELD_NUMBER => "FIELD_NUMBER",
        NULL => "NULL",
        TYPE_LITERAL => "TYPE_LITERAL",
        EVENT_OBJECT => "EVENT_OBJECT",
        COMMENT => "COMMENT",
        HINT => "HINT",
        FIELD_NAME0..STRING_0 => "FIELD_NAME",
        STRING_0..=0xFF => "STRING",
        _ => "no code",
    }
}
