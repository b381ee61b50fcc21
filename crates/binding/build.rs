//! Has Python take the docstrings out of `python/quire/_native.pyi`, one file each, for
//! `stub!("Class.member")`: `help()`, editors and the site then all say what the stub says.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SCRIPT: &str = "docstrings.py";
const STUB: &str = "../../python/quire/_native.pyi";

fn main() {
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed={STUB}");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = Path::new(&out).join("stub");
    let _ = fs::remove_dir_all(&out); // with the docstrings that the stub no longer has
    fs::create_dir_all(&out).expect("OUT_DIR can be written to");
    // As PyO3 does, which needs an interpreter as well. Cargo runs this in the crate's directory.
    let python = env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
    let status = Command::new(&python).args([SCRIPT, STUB]).arg(out).status();
    assert!(
        status.is_ok_and(|it| it.success()),
        "{} {SCRIPT} failed: PYO3_PYTHON names the interpreter, 3.11 or newer",
        python.display()
    );
}
