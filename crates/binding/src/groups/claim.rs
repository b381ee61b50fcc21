use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use quire_kernel::groups::protocol::claims::{self, ClaimKey as Kernel};

#[doc = stub!("ClaimKey")]
#[pyclass(module = "quire._native", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimKey(pub Kernel);

#[pymethods]
impl ClaimKey {
    #[doc = stub!("ClaimKey.slot")]
    #[getter]
    const fn slot(&self) -> u32 {
        self.0.slot
    }

    #[doc = stub!("ClaimKey.generation")]
    #[getter]
    const fn generation(&self) -> u32 {
        self.0.generation
    }

    #[doc = stub!("ClaimKey.first")]
    #[getter]
    const fn first(&self) -> u64 {
        self.0.first
    }

    fn __repr__(&self) -> String {
        let Kernel { slot, generation, first } = self.0;
        format!("ClaimKey(slot={slot}, generation={generation}, first={first:#x})")
    }
}

// Python keeps its own state of a claim here; access is serialised by the interpreter.
#[doc = stub!("Claim")]
#[pyclass(module = "quire._native")]
pub struct Claim {
    kernel: claims::Claim,
    counted: u32,
    #[doc = stub!("Claim.refused")]
    #[pyo3(get, set)]
    refused: u32,
    #[doc = stub!("Claim.available_ms")]
    #[pyo3(get, set)]
    available_ms: u64,
    #[doc = stub!("Claim.is_new")]
    #[pyo3(get, set)]
    is_new: bool,
}

impl Claim {
    pub const fn new(kernel: claims::Claim, is_new: bool) -> Self {
        let counted = if kernel.is_counted { kernel.pending } else { 0 };
        Self { kernel, counted, refused: 0, available_ms: 0, is_new }
    }

    pub const fn refused(&self) -> u32 {
        self.refused
    }

    pub const fn available_ms(&self) -> u64 {
        self.available_ms
    }

    pub const fn kernel(&self) -> &claims::Claim {
        &self.kernel
    }

    /// The messages among these whose delivery has not been counted.
    pub const fn uncounted(&self, messages: u32) -> u32 {
        messages & !self.counted
    }

    /// Counts messages as delivered, as the side file does, unless they already are.
    pub fn count(&mut self, messages: u32) {
        let uncounted = self.uncounted(messages);
        for (place, count) in (0..).zip(&mut self.kernel.counts) {
            if uncounted >> place & 1 == 1 {
                *count = count.saturating_add(1);
            }
        }
        self.counted |= messages;
    }

    /// Removes messages from the pending ones.
    pub const fn settle(&mut self, messages: u32) {
        self.kernel.pending &= !messages;
        self.refused &= !messages;
    }
}

#[pymethods]
impl Claim {
    #[doc = stub!("Claim.key")]
    #[getter]
    const fn key(&self) -> ClaimKey {
        ClaimKey(self.kernel.key)
    }

    #[doc = stub!("Claim.first")]
    #[getter]
    const fn first(&self) -> u64 {
        self.kernel.key.first
    }

    #[doc = stub!("Claim.pending")]
    #[getter]
    const fn pending(&self) -> u32 {
        self.kernel.pending
    }

    #[doc = stub!("Claim.counted")]
    #[getter]
    const fn counted(&self) -> u32 {
        self.counted
    }

    #[doc = stub!("Claim.singly")]
    #[getter]
    const fn singly(&self) -> bool {
        self.kernel.singly
    }

    #[doc = stub!("Claim.hash")]
    #[getter]
    const fn hash(&self) -> u64 {
        self.kernel.hash
    }

    #[doc = stub!("Claim.cause")]
    #[getter]
    const fn cause(&self) -> Option<&'static str> {
        self.kernel.cause.name()
    }

    #[doc = stub!("Claim.count_of")]
    #[pyo3(signature = (message, /))]
    fn count_of(&self, message: u32) -> PyResult<u8> {
        let place = usize::try_from(message.trailing_zeros()).unwrap_or(usize::MAX);
        let count = self.kernel.counts.get(place).copied();
        count.ok_or_else(|| PyIndexError::new_err("no bit of a message"))
    }
}
