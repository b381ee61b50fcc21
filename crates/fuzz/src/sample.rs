//! The queue that the targets damage: one file with several index arrays and payloads that look
//! like documents themselves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::format::roll_cycle::RollCycle;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

use crate::reading;

/// The roll file's name.
pub const FILE: &str = "20240115T4.cq4";
/// The table's name.
pub const TABLE: &str = "metadata.cq4t";
/// 2024-01-15T10:30:00Z.
pub const NOW_MS: i64 = 1_705_314_600_000;
/// The index of the first message.
pub const FIRST_INDEX: i64 = 19_737 << 32;
const MESSAGES: usize = 300;

/// The bytes of both files.
pub struct Sample {
    /// The roll file.
    pub file: Vec<u8>,
    /// The table.
    pub table: Vec<u8>,
    /// The payloads.
    pub payloads: Vec<Vec<u8>>,
}

/// The payload of the message of this number: of all lengths up to 40, every tenth a row of
/// documents, the next a document and a length beyond the file.
#[must_use]
pub fn payload(number: usize) -> Vec<u8> {
    if number % 10 == 7 {
        return [[4, 0, 0, 0], *b"fake", [0; 4]].concat().repeat(1 + number % 3);
    }
    if number % 10 == 8 {
        return [[4, 0, 0, 0], *b"fake", [0xFF, 0xFF, 0xFF, 0x19]].concat();
    }
    (0..=number % 40).map(|at| u8::try_from((number + at) % 251).unwrap()).collect()
}

/// The queue, created once.
#[must_use]
pub fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let payloads: Vec<_> = (0..MESSAGES).map(payload).collect();
        let options = Options {
            roll_cycle: RollCycle::by_name("TEST4_DAILY").cloned(),
            ..reading::options(false, NOW_MS)
        };
        let queue = Queue::open(dir.path(), options, &mut Detached::here()).unwrap();
        let appender =
            Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here())).unwrap();
        for (number, payload) in payloads.iter().enumerate() {
            if number % 50 == 20 {
                let claim =
                    appender.claim(Signals::Handled(&mut Detached::here()), None, true).unwrap();
                appender.publish(&Detached::here(), claim, b"metadata between messages").unwrap();
            }
            appender
                .append(
                    Signals::Handled(&mut Detached::here()),
                    None,
                    Payload { head: &[], body: payload, zeros: 0 },
                )
                .unwrap();
        }
        queue.close(&Detached::here());
        let [file, table] = [FILE, TABLE].map(|name| std::fs::read(dir.path().join(name)).unwrap());
        Sample { file, table, payloads }
    })
}

/// A directory, in memory if possible, whose files are replaced by each case.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let made = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
        Self(made.unwrap())
    }

    /// The directory, with these files and no others.
    #[must_use]
    pub fn with(&self, files: &[(&str, &[u8])]) -> PathBuf {
        for entry in std::fs::read_dir(self.0.path()).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, data) in files {
            std::fs::write(self.0.path().join(name), data).unwrap();
        }
        self.0.path().to_path_buf()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
