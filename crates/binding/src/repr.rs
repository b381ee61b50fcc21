//! The reprs of handles: `Name(path, key=value, state)`. They never raise and never wait.

use std::fmt::Write;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::handle_state::HandleState;
use quire_kernel::chronicle::read::tailer::{Direction, Tailer};

/// The repr of a handle of this class.
pub fn handle(class: &Bound<'_, PyType>, parts: &[String]) -> String {
    let name = class.name().map_or_else(|_| "Handle".to_owned(), |name| name.to_string());
    format!("{name}({})", parts.join(", "))
}

/// The repr of a handle whose messages are raw bytes.
pub fn raw_handle(
    slf: &Bound<'_, PyAny>,
    place: &Path,
    details: impl IntoIterator<Item = String>,
    is_closed: bool,
) -> String {
    let mut parts = vec![path(slf.py(), place)];
    parts.extend(details);
    if is_closed {
        parts.push("closed".to_owned());
    }
    handle(&slf.get_type(), &parts)
}

/// A string without quotes, unless it contains terminal control characters.
fn plain(py: Python<'_>, text: &str) -> String {
    let printable = PyString::new(py, text).call_method0("isprintable");
    if printable.and_then(|it| it.is_truthy()).unwrap_or(false) {
        return text.to_owned();
    }
    quoted(py, text)
}

fn quoted(py: Python<'_>, text: &str) -> String {
    let repr = PyString::new(py, text).repr();
    repr.map_or_else(|_| format!("{text:?}"), |repr| repr.to_string())
}

/// A line of a log, with terminal control characters escaped.
pub fn line(py: Python<'_>, text: &str) -> String {
    let shown = plain(py, text);
    if shown == text { shown } else { shown[1..shown.len() - 1].to_owned() }
}

pub fn path(py: Python<'_>, path: &Path) -> String {
    plain(py, &path.to_string_lossy())
}

/// Longer messages are shown by their repr alone.
const HTML_MAX_BYTES: usize = 64 * 1024;
const HTML_MAX_CHARS: usize = 4_000;

/// A message in a notebook: its repr, then its text unless it is long. Markup and terminal control
/// characters are escaped.
pub fn html(
    py: Python<'_>,
    repr: &str,
    bytes: &[u8],
    text: impl FnOnce(&[u8]) -> Option<String>,
) -> String {
    let title = format!("<code>{}</code>", escaped(&line(py, repr)));
    let text = if bytes.len() > HTML_MAX_BYTES { None } else { text(bytes) };
    let Some(text) = text else { return title };
    let end = text.char_indices().nth(HTML_MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let lines: Vec<_> = text[..end].lines().map(|it| escaped(&line(py, it))).collect();
    let rest = if end < text.len() { "\n…" } else { "" };
    format!("{title}<pre>{}{rest}</pre>", lines.join("\n"))
}

/// Bytes of unknown meaning, as text if printable, otherwise in hexadecimal.
pub fn raw(bytes: &[u8]) -> String {
    let hex = |_| {
        bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    };
    str::from_utf8(bytes).map_or_else(hex, str::to_owned)
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#x27;")
}

/// Adds that a handle is closed, or belongs to the parent of this process.
pub fn add_end(parts: &mut Vec<String>, queue: &Queue, is_closed: bool) {
    if queue.check_generation().is_err() {
        parts.push("forked".to_owned());
    }
    if is_closed {
        parts.push("closed".to_owned());
    }
}

fn position(state: HandleState, name: &str, nowhere: &str) -> Option<String> {
    match state {
        HandleState::Forked => None,
        HandleState::Busy => Some("busy".to_owned()),
        HandleState::At(Some(index)) => Some(format!("{name}={index:#x}")),
        HandleState::At(None) => Some(nowhere.to_owned()),
    }
}

/// Path, name, position and state of a tailer.
pub fn tailer(py: Python<'_>, tailer: &Tailer) -> Vec<String> {
    let mut parts = vec![path(py, tailer.queue().path())];
    parts.extend(tailer.name().map(|name| format!("name={}", quoted(py, name))));
    let (state, direction) = tailer.handle_state();
    parts.extend(position(state, "index", "not started"));
    parts.extend(match direction {
        Some(Direction::Backward) => Some("direction=backward".to_owned()),
        Some(Direction::None) => Some("direction=none".to_owned()),
        _ => None,
    });
    add_end(&mut parts, tailer.queue(), tailer.is_closed());
    parts
}

/// Path, position and state of an appender.
pub fn appender(py: Python<'_>, appender: &Appender) -> Vec<String> {
    let mut parts = vec![path(py, appender.queue().path())];
    parts.extend(position(appender.handle_state(), "last_index_appended", "nothing appended"));
    add_end(&mut parts, appender.queue(), appender.is_closed());
    parts
}
