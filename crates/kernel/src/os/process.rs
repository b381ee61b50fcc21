//! This process and others: pid, fork, user, liveness.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::probe::fault;

static PID: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// This process's pid, cached: the system call costs as much as an append.
#[must_use]
pub fn pid() -> u32 {
    match PID.load(Ordering::Relaxed) {
        0 => {
            let pid = std::process::id();
            PID.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

/// The number of forks between this process and the one that loaded the kernel. A handle with
/// another generation belongs to a parent process.
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Call in the child right after a fork.
pub fn after_fork_in_child() {
    PID.store(0, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The effective user id.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A number that identifies the calling thread; never 0.
#[must_use]
pub fn thread_id() -> u64 {
    use std::sync::atomic::AtomicU64;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static ID: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    ID.with(|id| *id)
}

/// Whether the calling thread is the process's first one, which runs its signal handlers.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_first_thread() -> bool {
    system_thread_id() == pid()
}

/// The system's id of the calling thread, as Java uses it; for the first thread it is the pid.
#[cfg(target_os = "linux")]
#[must_use]
pub fn system_thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The pid, on systems whose thread ids are not visible to other processes.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn system_thread_id() -> u32 {
    pid()
}

/// Unknown on this system; assumed.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub const fn is_first_thread() -> bool {
    true
}

/// A random number, distinct between threads, processes and containers.
#[must_use]
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The state of the process named in a lock word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It does not exist, or cannot be the holder of the lock.
    Dead,
    /// It exists, as far as this process can determine.
    Alive,
}

/// Checks a process by its pid in this process's namespace. A zombie counts as dead, and so does a
/// process that does not map the file with this name and inode number: its pid was reused.
#[must_use]
pub fn liveness(pid: u32, file_name: &str, inode: u64) -> Liveness {
    if pid == 0 {
        return Liveness::Dead; // not a holder: to kill(2), 0 means this process group
    }
    if cfg!(target_os = "linux") && Path::new("/proc/self/stat").exists() {
        liveness_from_proc(pid, file_name, inode)
    } else {
        liveness_from_signal(pid)
    }
}

fn liveness_from_proc(pid: u32, file_name: &str, inode: u64) -> Liveness {
    let stat = fault::call!("holder.stat.read", std::fs::read(format!("/proc/{pid}/stat")));
    let stat = match stat {
        Ok(stat) => String::from_utf8_lossy(&stat).into_owned(),
        // Other users' processes may be hidden in /proc; a signal still detects them.
        Err(error) if is_missing(&error) => return liveness_from_signal(pid),
        // Errors such as too many open files say nothing about the holder.
        Err(_) => return Liveness::Alive,
    };
    // "pid (name) state ...": the name may contain anything, so search for the last parenthesis.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    if matches!(state, Some('Z' | 'X')) {
        return Liveness::Dead;
    }
    let Ok(maps) =
        fault::call!("holder.maps.read", std::fs::read_to_string(format!("/proc/{pid}/maps")))
    else {
        return Liveness::Alive;
    };
    if maps_file(&maps, file_name, inode) || maps.is_empty() {
        Liveness::Alive
    } else {
        Liveness::Dead
    }
}

/// Whether a process maps the file with this name and inode number, by its `maps`.
fn maps_file(maps: &str, file_name: &str, inode: u64) -> bool {
    let inode = inode.to_string();
    maps.lines().any(|line| {
        line.contains(file_name) && line.split_ascii_whitespace().nth(4) == Some(&inode)
    })
}

/// The pid, in this namespace, of a process that is `pid` in a nested pid namespace and maps the
/// file with this name and inode number. Only nested namespaces are visible, such as those of
/// containers from their host.
#[must_use]
pub fn elsewhere(pid: u32, file_name: &str, inode: u64) -> Option<u32> {
    let all = fault::call!("holder.processes.list", std::fs::read_dir("/proc")).ok()?;
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.into_iter().find(|number: &u32| {
        let read = |name| std::fs::read_to_string(format!("/proc/{number}/{name}"));
        // "NSpid:", the pid here, then the pid in each nested namespace.
        let is_it = read("status").is_ok_and(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let pids = line.unwrap_or_default().split_ascii_whitespace().skip(1);
            pids.last().and_then(|last| last.parse().ok()) == Some(pid)
        });
        is_it && read("maps").is_ok_and(|maps| maps_file(&maps, file_name, inode))
    })
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

fn liveness_from_signal(pid: u32) -> Liveness {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Liveness::Dead };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => Liveness::Dead,
        _ => Liveness::Alive,
    }
}
