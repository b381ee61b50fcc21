//! Functions that the system calls around a fork.

/// Registers functions for `fork` to call: in the forking thread right before the fork, and right
/// after it in the parent (even if it failed) and in the child. False if out of memory.
pub fn call_at_fork(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> bool {
    // SAFETY: an extension module is never unloaded, so the functions stay where they are.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 }
}
