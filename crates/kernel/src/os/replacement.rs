//! A new file in the place of another one, for the same users: a repair by root, or by another member
//! of the group, would lock the others out.

use std::fs::{File, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use super::files;
use crate::probe::fault;
use crate::{Error, Result};

/// The bits of a mode that say who may use a file.
pub const PERMISSIONS: u32 = 0o777;
const GROUP: u32 = 0o070;

/// Makes a file exclusively, with the owner, the group and the permissions of another one, as far as
/// this user may give them. A group that cannot be given gets what everybody has.
pub fn create(path: &Path, like: &Metadata) -> Result<File> {
    let file = files::create_new(path, 0o600)?.ok_or_else(|| Error::gone("cannot make", path))?;
    let (owner, group) = (Some(like.uid()), Some(like.gid()));
    let _ = fchown(&file, owner, group).or_else(|_| fchown(&file, None, group));
    let failed = |e| Error::io("cannot set the mode of", path, e);
    let found = fault::call!("file.stat", file.metadata()).map_err(failed)?;
    let has_group = found.gid() == like.gid();
    let mode = like.mode() & PERMISSIONS;
    let mode = if has_group { mode } else { mode & !GROUP | (mode & 0o007) << 3 };
    file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    Ok(file)
}
