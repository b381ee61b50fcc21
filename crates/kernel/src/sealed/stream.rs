//! A compressed stream of parts over a connection: each part is compressed in the context of all
//! earlier ones, and can be decompressed as soon as it arrives.

use zstd::stream::raw::{Decoder, Encoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::{CParameter, DParameter};

use crate::{Error, Result};

/// How far back parts refer to earlier ones, as a power of two: the window that each side keeps.
const WINDOW_LOG: u32 = 21;
const LEVEL: i32 = 3;
/// The size of output steps.
const STEP: usize = 64 << 10;

/// Compresses the parts of a stream.
pub struct Compressing(Encoder<'static>);

impl Compressing {
    /// At the start of a stream.
    pub fn new() -> Result<Self> {
        let mut encoder = Encoder::new(LEVEL).map_err(failed)?;
        encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG)).map_err(failed)?;
        Ok(Self(encoder))
    }

    /// Compresses the next part.
    pub fn compress(&mut self, part: &[u8]) -> Result<Vec<u8>> {
        let (mut made, mut input) = (Vec::new(), InBuffer::around(part));
        while input.pos() < part.len() {
            step(&mut made, |output| self.0.run(&mut input, output).map(drop))?;
        }
        while step(&mut made, |output| self.0.flush(output))? > 0 {}
        Ok(made)
    }
}

/// Decompresses the parts of a stream.
pub struct Decompressing(Decoder<'static>);

impl Decompressing {
    /// At the start of a stream.
    pub fn new() -> Result<Self> {
        let mut decoder = Decoder::new().map_err(failed)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(failed)?;
        Ok(Self(decoder))
    }

    /// Decompresses the next part, which must have `length` bytes; otherwise an error, before
    /// decompressing more.
    pub fn decompress(&mut self, stored: &[u8], length: usize) -> Result<Vec<u8>> {
        let (mut made, mut input) = (Vec::new(), InBuffer::around(stored));
        loop {
            let before = (input.pos(), made.len());
            step(&mut made, |output| self.0.run(&mut input, output).map(drop))?;
            if made.len() > length || before == (input.pos(), made.len()) {
                break;
            }
        }
        if made.len() == length && input.pos() == stored.len() {
            return Ok(made);
        }
        Err(Error::Invalid(format!(
            "not a part of a compressed stream: announced={length} found={} read={} of={}",
            made.len(),
            input.pos(),
            stored.len()
        )))
    }
}

/// Runs one step, whose output is appended to `made`.
fn step<T>(
    made: &mut Vec<u8>,
    way: impl FnOnce(&mut OutBuffer<'_, [u8]>) -> std::io::Result<T>,
) -> Result<T> {
    let start = made.len();
    made.resize(start + STEP, 0);
    let mut output = OutBuffer::around(&mut made[start..]);
    let done = way(&mut output);
    let end = start + output.pos();
    made.truncate(end);
    done.map_err(failed)
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn failed(error: std::io::Error) -> Error {
    Error::Invalid(format!("not a part of a compressed stream: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Vec<Vec<u8>> {
        let long = (0..400_000_u32).flat_map(|it| it.wrapping_mul(it).to_le_bytes()).collect();
        vec![b"one message".repeat(20), Vec::new(), b"one message".repeat(20), long]
    }

    #[test]
    fn each_part_is_read_once_it_is_there_and_later_ones_are_shorter() {
        let (mut to, mut from) = (Compressing::new().unwrap(), Decompressing::new().unwrap());
        let stored: Vec<_> = parts().iter().map(|part| to.compress(part).unwrap()).collect();
        assert!(stored[2].len() < stored[0].len());
        for (part, stored) in parts().iter().zip(&stored) {
            assert_eq!(from.decompress(stored, part.len()).unwrap(), *part);
        }
    }

    #[test]
    fn a_part_that_is_longer_than_announced_is_given_up() {
        let stored = Compressing::new().unwrap().compress(&vec![0; 64 << 20]).unwrap();
        for length in [0, 1, 4 << 20] {
            assert!(Decompressing::new().unwrap().decompress(&stored, length).is_err());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let stored = Compressing::new().unwrap().compress(b"some bytes").unwrap();
        let mut from = Decompressing::new().unwrap();
        assert!(from.decompress(&stored[1..], 10).is_err());
        assert!(Decompressing::new().unwrap().decompress(&stored[..stored.len() - 1], 10).is_err());
    }
}
