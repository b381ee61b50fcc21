//! The Python extension module: converts types and errors and detaches the interpreter.
//!
//! - [`handles`] are queues, appenders, tailers and their documents;
//! - [`quick_queue`] and [`vanilla`] are the same for Quick-Queues, with their fields, and for
//!   Vanilla Chronicles;
//! - [`groups`] are consumer groups and their members;
//! - [`calls`] are method calls as messages, [`values`] the values in a message, [`arrow`] columns
//!   of messages;
//! - [`replication`] are batches of documents for replicas, and [`replica_states`] what each
//!   replica has acknowledged;
//! - [`requests`] are requests from a server's clients;
//! - [`maintenance`] checks and repairs the files of queues;
//! - [`error`] converts errors to exceptions, [`arguments`] checks arguments, [`buffer`] is the
//!   buffer protocol and the only `unsafe`, [`repr`] the text that an interpreter shows;
//! - `macros` generates the methods that several classes share.
// PyO3 passes arguments by value.
#![allow(clippy::needless_pass_by_value)]
// Docstrings come from the stub, and are not in Rust's form.
#![allow(clippy::doc_markdown, clippy::doc_link_with_quotes)]

#[macro_use]
mod macros;

mod arguments;
mod arrow;
mod buffer;
mod calls;
mod cipher;
mod detached;
mod document;
mod encoded;
mod error;
#[cfg(feature = "fault-points")]
mod fault_points;
mod groups;
mod handles;
mod maintenance;
mod quick_queue;
mod replica_states;
mod replication;
mod repr;
mod requests;
mod sealed;
mod spare;
mod values;
mod vanilla;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[doc = stub!("entry_bytes")]
#[pyfunction]
#[pyo3(signature = (name, value, /))]
fn entry_bytes<'py>(
    py: Python<'py>,
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = quire_wire::out::Out::new();
    values::encode::put_entry(&mut out, name, value)?;
    let out = out.written().map_err(values::failure::Failure::from)?;
    buffer::bytes(py, out).map_err(error::to_py)
}

/// The native half of `quire`. Private: import from `quire`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::arrow::decode::{Plan, kind_parts};
    #[pymodule_export]
    use crate::arrow::encode::Encoder;
    #[pymodule_export]
    use crate::arrow::infer::Seen;
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::calls::awaited_document::AwaitedDocument;
    #[pymodule_export]
    use crate::calls::history::MessageHistory;
    #[pymodule_export]
    use crate::calls::method::Method;
    #[pymodule_export]
    use crate::calls::method_reader::MethodReader;
    #[pymodule_export]
    use crate::calls::method_writer::{Call, Chain, MethodWriter};
    #[pymodule_export]
    use crate::cipher::{Cipher, is_encrypted, rewrap_key, wrap_new_key};
    #[pymodule_export]
    use crate::groups::claim::{Claim, ClaimKey};
    #[pymodule_export]
    use crate::groups::group::{
        Group, group_backlog, group_delivered, group_extend, group_forget, group_is_kept,
        group_keep, group_members, group_release, group_snapshot, group_tails, group_take,
    };
    #[pymodule_export]
    use crate::groups::member::{GroupMember, tail_hash};
    #[pymodule_export]
    use crate::handles::appender::Appender;
    #[pymodule_export]
    use crate::handles::clock::ManualClock;
    #[pymodule_export]
    use crate::handles::column::split_payloads;
    #[pymodule_export]
    use crate::handles::dump::Dump;
    #[pymodule_export]
    use crate::handles::excerpt::Excerpt;
    #[pymodule_export]
    use crate::handles::file_events::FileEvents;
    #[pymodule_export]
    use crate::handles::pretoucher::Pretoucher;
    #[pymodule_export]
    use crate::handles::queue::Queue;
    #[pymodule_export]
    use crate::handles::read_document::ReadDocument;
    #[pymodule_export]
    use crate::handles::read_document::wire_in::{RawIn, WireIn};
    #[pymodule_export]
    use crate::handles::render::render_rows;
    #[pymodule_export]
    use crate::handles::render_columns::render_columns;
    #[pymodule_export]
    use crate::handles::ring::Ring;
    #[pymodule_export]
    use crate::handles::roll_cycle::RollCycle;
    #[pymodule_export]
    use crate::handles::tailer::Tailer;
    #[pymodule_export]
    use crate::handles::waits::{EventLoopWaits, Wait};
    #[pymodule_export]
    use crate::handles::write_document::WriteDocument;
    #[pymodule_export]
    use crate::handles::write_document::wire_out::{RawOut, WireOut};
    #[pymodule_export]
    use crate::maintenance::{
        compress_roll_file, count_pruned, first_entries, is_compressed_copy, network_file_system,
        repair_journal, reported_losses, ring_intended, ring_stats, times_file, verify_journal,
    };
    #[pymodule_export]
    use crate::quick_queue::appender::QuickAppender;
    #[pymodule_export]
    use crate::quick_queue::excerpt::QuickExcerpt;
    #[pymodule_export]
    use crate::quick_queue::packer::MessagePacker;
    #[pymodule_export]
    use crate::quick_queue::queue::QuickQueue;
    #[pymodule_export]
    use crate::quick_queue::tailer::QuickTailer;
    #[pymodule_export]
    use crate::quick_queue::unpacker::MessageUnpacker;
    #[pymodule_export]
    use crate::replica_states::{ReplicaStates, boot_id, boot_time_ns};
    #[pymodule_export]
    use crate::replication::{
        BatchReader, BatchWriter, cycle_digest, keep_tailer, whole_cycle_digest,
    };
    #[pymodule_export]
    use crate::requests::{RequestReader, entry_ids};
    #[pymodule_export]
    use crate::sealed::{
        StreamCompressor, StreamDecompressor, encrypted_dictionary, hash_cycle, train_dictionary,
    };
    #[pymodule_export]
    use crate::values::codec::Codec;
    #[pymodule_export]
    use crate::values::schema::Kind;
    #[pymodule_export]
    use crate::values::text::{field_json, parse_json, parse_shown, parse_yaml, to_json, to_yaml};
    #[pymodule_export]
    use crate::vanilla::appender::VanillaAppender;
    #[pymodule_export]
    use crate::vanilla::excerpt::VanillaExcerpt;
    #[pymodule_export]
    use crate::vanilla::excerpt_writer::ExcerptWriter;
    #[pymodule_export]
    use crate::vanilla::indexed_queue::IndexedQueue;
    #[pymodule_export]
    use crate::vanilla::indexed_tailer::IndexedTailer;
    #[pymodule_export]
    use crate::vanilla::queue::VanillaQueue;
    #[pymodule_export]
    use crate::vanilla::tailer::VanillaTailer;

    #[pymodule_export]
    use crate::encoded::{
        document_to_send, map_bytes, message_bytes, received_document, text_bytes,
    };
    #[pymodule_export]
    use crate::entry_bytes;

    use crate::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::error::watch_for_signals();
        quire_kernel::os::fork::watch();
        #[cfg(feature = "fault-points")]
        crate::fault_points::add_to(m)?;
        crate::error::import_exceptions(m.py())?;
        m.add("FINDING_KINDS", crate::maintenance::kinds())?;
        m.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        m.add("BUILD_PROFILE", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
