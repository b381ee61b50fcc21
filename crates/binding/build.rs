//! Takes the docstrings out of `python/quire/_native.pyi`, one file each, for `stub!("Class.member")`:
//! `help()`, editors and the site then all say what the stub says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::Lines;
use std::{env, fs};

const QUOTES: &str = "\"\"\"";

fn main() {
    // Asked when it runs: worktrees that share a target directory share the compiled script.
    let crate_dir = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let stub = Path::new(&crate_dir).join("../../python/quire/_native.pyi");
    println!("cargo::rerun-if-changed=../../python/quire/_native.pyi");
    let text = fs::read_to_string(&stub).expect("the stub can be read");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("stub");
    fs::create_dir_all(&out).expect("OUT_DIR can be written to");
    for (name, docstring) in docstrings(&text) {
        fs::write(out.join(name), docstring).expect("OUT_DIR can be written to");
    }
}

/// The docstring of each class, function, `Class.method` and `Class.attribute`.
///
/// Relies on the formatter: four spaces for a member, and a docstring on the line after what it
/// belongs to, closed on its first line or on a line of its own.
fn docstrings(stub: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let (mut class, mut name) = ("", None);
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if let Some(first) = code.strip_prefix(QUOTES) {
            if let Some(name) = name.take() {
                let text = docstring(first, indent, &mut lines);
                assert!(
                    !text.contains('\\'),
                    "an escape in the docstring of {name}: not read here"
                );
                found.insert(name, text);
            }
        } else if indent == 0 && !code.is_empty() {
            class = code.strip_prefix("class ").map_or("", identifier);
            let function = code.strip_prefix("def ").map(identifier);
            name = function.or(Some(class)).filter(|it| !it.is_empty()).map(str::to_owned);
        } else if indent == 4 && !class.is_empty() {
            let member = identifier(code.strip_prefix("def ").unwrap_or(code));
            if !member.is_empty() {
                name = Some(format!("{class}.{member}"));
            }
        }
    }
    found
}

fn identifier(code: &str) -> &str {
    let end = code.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(code.len());
    &code[..end]
}

/// The rest of a docstring whose first line goes on with `first`. Where that is empty it stays: a
/// block that is indented below the first line of text would lose its indentation without it.
fn docstring(first: &str, indent: usize, lines: &mut Lines<'_>) -> String {
    if let Some(only) = first.strip_suffix(QUOTES) {
        return only.to_owned();
    }
    let rest = lines.take_while(|line| line.trim() != QUOTES);
    let rest = rest.map(|line| line.get(indent..).unwrap_or_default());
    let text: Vec<_> = [first].into_iter().chain(rest).collect();
    text.join("\n").trim_end().to_owned()
}
