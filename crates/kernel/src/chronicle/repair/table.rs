//! Rebuilds a damaged table: entries are recognised one by one by their form, and written to a new
//! file that replaces the table atomically. The old table stays as `.discard`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quire_wire::latin1;

use super::{Action, check_nobody_writes};
use crate::chronicle::format::document::{self, Header};
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::format::store::RollFields;
use crate::chronicle::format::table::{self, FILE_LEN, FILE_NAME, Metadata};
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::table::file;
use crate::finding::Kind;
use crate::os::files;
use crate::os::interrupt::Signals;
use crate::os::locked_file::LockedFile;
use crate::os::replacement;
use crate::probe::fault;
use crate::{Error, Result};

const WIRE_TYPE: &str = "BINARY_LIGHT";
const ROOM: usize = 131_072;
const _: () = assert!(ROOM as u64 == FILE_LEN);

/// Rebuilds the table of a directory. An error while a Quire process may write to the queue.
pub fn build_again(dir: &Path, timeout: Duration, signals: Signals<'_>) -> Result<Action> {
    let path = dir.join(FILE_NAME);
    let gone = || Error::gone("cannot open", &path);
    let old = LockedFile::open_existing(&path)?.ok_or_else(gone)?;
    let _lock = file::key_lock(&old, &path, timeout, signals)?;
    check_nobody_writes(&old, &path)?;
    let mut bytes = vec![0; ROOM];
    let failed = |e| Error::io("cannot read", &path, e);
    let got = fault::call!("repair.table.read", old.read_at(&mut bytes, 0)).map_err(failed)?;
    bytes.truncate(got);
    let metadata = match header(&bytes) {
        Some(metadata) => metadata,
        None => metadata_by_names(dir)?,
    };
    let mut entries = entries(&bytes);
    add_missing(&mut entries);
    let (table, kept) = encode(&metadata, &entries);
    replace(&path, &old, &table)?;
    let done = format!(
        "built again with {kept} keys; the damaged one is kept as {}",
        aside(&path).file_name().unwrap_or_default().to_string_lossy()
    );
    let kind = if header(&bytes).is_some() { Kind::TableEntry } else { Kind::UnreadableTable };
    Ok(Action { kind, file: path, position: None, done })
}

fn header(bytes: &[u8]) -> Option<Metadata> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    let Header::Meta(length) = document::parse(u32::from_le_bytes(*word)) else { return None };
    table::parse(rest.get(..length as usize)?)
}

/// Metadata derived from the file names; the epoch and the source id are lost.
fn metadata_by_names(dir: &Path) -> Result<Metadata> {
    let names = listing::roll_file_names(dir)?;
    let roll = names.iter().find_map(|name| RollCycle::by_file_name(name));
    let roll = roll.ok_or_else(|| Error::NotAQueue {
        why: format!("no readable {FILE_NAME} and no *.cq4 file"),
        path: dir.to_path_buf(),
    })?;
    let fields = RollFields {
        length_ms: roll.length_ms,
        format: roll.pattern.clone().into_owned(),
        epoch_ms: roll.default_epoch_ms,
        ..RollFields::default()
    };
    Ok(Metadata { wire_type: WIRE_TYPE.to_owned(), roll: fields, source_id: 0 })
}

/// The keys and values in a damaged table: every multiple of 4 is tried for the form of an entry.
fn entries(bytes: &[u8]) -> Vec<(Vec<u8>, i64)> {
    let mut found: Vec<(Vec<u8>, i64)> = Vec::new();
    let mut at = 0;
    while let Some((key, value, next)) = next_entry(bytes, &mut at) {
        if !found.iter().any(|(known, _)| latin1::eq_ignore_case(known, &key)) {
            found.push((key, value));
        }
        at = next;
    }
    found
}

/// Adds the keys that the next opener would add, so that a repair that ends here is complete.
fn add_missing(entries: &mut Vec<(Vec<u8>, i64)>) {
    let unlocked = table::UNLOCKED.cast_signed();
    for (key, initial) in [
        (table::HIGHEST_CYCLE, table::NO_HIGHEST),
        (table::LOWEST_CYCLE, table::NO_LOWEST),
        (table::MOD_COUNT, 0),
        (table::WRITE_LOCK, unlocked),
        (table::APPEND_LOCK, unlocked),
        (table::LAST_REPLICATED, table::NO_INDEX),
        (table::LAST_ACKNOWLEDGED, table::NO_INDEX),
        (table::LAST_SYNCED, table::NO_INDEX),
    ] {
        if !entries.iter().any(|(known, _)| latin1::eq_ignore_case(known, key.as_bytes())) {
            entries.push((key.as_bytes().to_vec(), initial));
        }
    }
}

fn next_entry(bytes: &[u8], at: &mut usize) -> Option<(Vec<u8>, i64, usize)> {
    while *at < bytes.len() {
        if let Some(entry) = entry_at(bytes, *at) {
            return Some(entry);
        }
        *at += 4;
    }
    None
}

fn entry_at(bytes: &[u8], at: usize) -> Option<(Vec<u8>, i64, usize)> {
    let (word, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
    let Header::Data(length) = document::parse(u32::from_le_bytes(*word)) else { return None };
    let payload = rest.get(..length as usize)?;
    let (key, offset) = table::parse_entry(payload)?;
    let is_key = !key.is_empty() && key.len() <= table::KEY_LEN_MAX;
    let is_aligned = (at + 4 + offset).is_multiple_of(8);
    let value = i64::from_le_bytes(*payload.get(offset..)?.first_chunk()?);
    let next = at + 4 + length.next_multiple_of(4) as usize;
    (is_key && is_aligned).then(|| (key.to_vec(), value, next))
}

/// The bytes of a table, and how many of the entries fit.
fn encode(metadata: &Metadata, entries: &[(Vec<u8>, i64)]) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(ROOM);
    let payload = table::encode(metadata);
    put(&mut out, &payload, true);
    let mut kept = 0;
    for (key, value) in entries {
        let (payload, _) = table::encode_entry(key, out.len() as u64, *value);
        if out.len() + payload.len() + 8 <= ROOM {
            put(&mut out, &payload, false);
            kept += 1;
        }
    }
    out.resize(ROOM, 0);
    (out, kept)
}

fn put(out: &mut Vec<u8>, payload: &[u8], is_metadata: bool) {
    let length = u32::try_from(payload.len()).unwrap_or(document::LENGTH_MASK);
    out.extend_from_slice(&document::word(length, is_metadata).to_le_bytes());
    out.extend_from_slice(payload);
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-damaged.discard");
    name.into()
}

/// Replaces the old file, which is renamed first, by a complete new one.
fn replace(path: &Path, old: &std::fs::File, bytes: &[u8]) -> Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".repaired");
    let new = PathBuf::from(new);
    let failed = |e| Error::io("cannot write", &new, e);
    remove(&new)?;
    let like = fault::call!("repair.table.stat", old.metadata()).map_err(failed)?;
    let mode = std::os::unix::fs::MetadataExt::mode(&like) & replacement::PERMISSIONS;
    let file = replacement::create(&new, &like)?;
    fault::call!("repair.table.write", file.write_all_at(bytes, 0)).map_err(failed)?;
    fault::call!("repair.table.sync", files::sync(&file)).map_err(failed)?;
    let kept = aside(path);
    remove(&kept)?;
    fault::call!("repair.table.keep", files::copy(path, &kept, mode))
        .map_err(|e| Error::io("cannot copy", &kept, e))?;
    fault::call!("repair.table.rename", files::rename(&new, path))
        .map_err(|e| Error::io("cannot rename", &new, e))
}

fn remove(path: &Path) -> Result<()> {
    match fault::call!("repair.table.remove", std::fs::remove_file(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", path, error))
        }
        _ => Ok(()),
    }
}
