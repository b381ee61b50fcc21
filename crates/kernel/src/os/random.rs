//! Random bytes from the system.

use std::io;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::{Error, Result};

/// Fills a buffer with random bytes.
pub fn fill(bytes: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                let error = io::Error::from(error);
                return Err(Error::io("cannot read", Path::new("/dev/urandom"), error));
            }
        }
    }
    Ok(())
}
