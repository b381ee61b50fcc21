//! Chronicle's states of a tailer, and its directions.

/// Which way a tailer reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Toward newer messages.
    #[default]
    Forward,
    /// Toward older messages.
    Backward,
    /// The same message again and again.
    None,
}

/// Chronicle's states of a tailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not started: there was no file yet.
    #[default]
    Uninitialised,
    /// At a header of a file.
    FoundInCycle,
    /// After the last message of a file that is closed.
    EndOfCycle,
    /// At an index beyond the end of its file.
    NotReachedInCycle,
    /// Asked for a cycle that has no file.
    CycleNotFound,
    /// Before the first message.
    BeyondStartOfCycle,
}

impl State {
    /// Chronicle's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uninitialised => "UNINITIALISED",
            Self::FoundInCycle => "FOUND_IN_CYCLE",
            Self::EndOfCycle => "END_OF_CYCLE",
            Self::NotReachedInCycle => "NOT_REACHED_IN_CYCLE",
            Self::CycleNotFound => "CYCLE_NOT_FOUND",
            Self::BeyondStartOfCycle => "BEYOND_START_OF_CYCLE",
        }
    }
}
