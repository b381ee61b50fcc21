//! The text being parsed: characters, lines and the scalars in them.

use super::scalar::{self, Scalar};
use crate::error::{Result, WireError};

/// A position in a text.
pub struct Source<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

/// The context of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum YamlStyle {
    /// In block style, on its own lines.
    Block,
    /// In flow style, within brackets.
    Flow,
}

impl<'a> Source<'a> {
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0 }
    }

    /// A string, quoted or plain.
    pub fn scalar(&mut self, style: YamlStyle) -> Result<Scalar<'a>> {
        match self.peek() {
            Some(b'"') => self.double_quoted(),
            Some(b'\'') => self.single_quoted(),
            Some(b'&' | b'*') => {
                Err(self.unexpected("a value: anchors and aliases are not supported"))
            }
            Some(b'@' | b'`' | b'%' | b',' | b'[' | b']' | b'{' | b'}' | b'|' | b'>' | b'!') => {
                Err(self.unexpected("a value"))
            }
            _ => Ok(self.plain(style)),
        }
    }

    fn plain(&mut self, style: YamlStyle) -> Scalar<'a> {
        let start = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            let next = self.text.get(self.at + 1);
            let ends = match byte {
                b'\n' | b'\r' => true,
                b':' => ends_name(next, style),
                b',' | b'[' | b']' | b'{' | b'}' => style == YamlStyle::Flow,
                b'#' => self.at == start || self.text[self.at - 1].is_ascii_whitespace(),
                _ => false,
            };
            if ends {
                break;
            }
            self.at += 1;
        }
        // Cut at ASCII bytes, so it is still UTF-8.
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        Scalar::Plain(text.trim_end_matches([' ', '\t']))
    }

    fn single_quoted(&mut self) -> Result<Scalar<'a>> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return Err(self.unexpected("a closing quote")),
                Some(b'\'') if self.text.get(self.at + 1) == Some(&b'\'') => {
                    text.push(b'\'');
                    self.at += 2;
                }
                Some(b'\'') => break self.at += 1,
                Some(b'\n') => self.fold(&mut text),
                Some(byte) => {
                    text.push(*byte);
                    self.at += 1;
                }
            }
        }
        Ok(Scalar::quoted(text))
    }

    fn double_quoted(&mut self) -> Result<Scalar<'a>> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return Err(self.unexpected("a closing quote")),
                Some(b'"') => break self.at += 1,
                Some(b'\\') => {
                    let taken = scalar::put_escaped(&mut text, &self.text[self.at + 1..])
                        .ok_or_else(|| self.unexpected("an escape"))?;
                    self.at += 1 + taken;
                }
                Some(b'\n') => self.fold(&mut text),
                Some(byte) => {
                    text.push(*byte);
                    self.at += 1;
                }
            }
        }
        Ok(Scalar::quoted(text))
    }

    /// Folds a line break in a quoted string: into a space, or one newline per empty line.
    fn fold(&mut self, text: &mut Vec<u8>) {
        while text.last().is_some_and(|last| matches!(last, b' ' | b'\t' | b'\r')) {
            text.pop();
        }
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let lines = lines_in(&self.text[start..self.at]);
        text.extend(std::iter::repeat_n(b'\n', lines - 1));
        if lines == 1 {
            text.push(b' ');
        }
    }

    /// A block scalar, after `|` or `>`.
    pub fn lines(&mut self, least: usize, mark: u8) -> Result<Scalar<'a>> {
        self.at += 1;
        let end = match self.peek() {
            Some(end @ (b'-' | b'+')) => {
                self.at += 1;
                Some(end)
            }
            _ => None,
        };
        self.skip_spaces();
        if !self.is_line_over() {
            return Err(self.unexpected("the end of the line"));
        }
        self.skip_line();
        let (mut text, mut margin, mut gap) = (Vec::new(), None, 0);
        while self.at < self.text.len() {
            let line = self.text[self.at..].split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let column = line.iter().take_while(|byte| **byte == b' ').count();
            if column == line.len() {
                gap += 1;
            } else if column < least {
                break;
            } else {
                let margin = *margin.get_or_insert(column);
                if !text.is_empty() || gap > 0 {
                    let folds = mark == b'>' && gap == 0 && !text.is_empty();
                    let lines = gap + usize::from(mark == b'|' && !text.is_empty());
                    text.extend(std::iter::repeat_n(b'\n', lines));
                    if folds {
                        text.push(b' ');
                    }
                }
                gap = 0;
                text.extend_from_slice(&line[margin.min(column)..]);
            }
            self.skip_line();
        }
        let lines = match end {
            Some(b'-') => 0,
            Some(_) => gap + 1,
            None => 1,
        };
        if !text.is_empty() {
            text.extend(std::iter::repeat_n(b'\n', lines));
        }
        // The line break was consumed; the one of the value is already there.
        self.at -= usize::from(self.at > 0 && self.text[self.at - 1] == b'\n');
        Ok(Scalar::quoted(text))
    }

    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Consumes this byte if it is next.
    pub fn takes(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    /// Consumes the colon after a name.
    pub fn takes_colon(&mut self, style: YamlStyle) -> bool {
        self.skip_spaces();
        let is = self.peek() == Some(b':') && ends_name(self.text.get(self.at + 1), style);
        self.at += usize::from(is);
        is
    }

    fn is_mark(&self, mark: u8) -> bool {
        self.peek() == Some(mark) && self.text.get(self.at + 1).is_none_or(u8::is_ascii_whitespace)
    }

    /// Whether a list item starts here.
    #[must_use]
    pub fn is_item(&self) -> bool {
        self.is_mark(b'-')
    }

    /// Whether a complex key (`?`) starts here.
    #[must_use]
    pub fn is_key_mark(&self) -> bool {
        self.is_mark(b'?')
    }

    /// Moves to the next line with content; returns whether it starts at this column.
    pub fn is_at(&mut self, indent: usize) -> bool {
        self.skip_lines();
        self.at < self.text.len() && self.column() == indent
    }

    /// The column, from 0.
    #[must_use]
    pub fn column(&self) -> usize {
        let line = self.text[..self.at].iter().rposition(|byte| *byte == b'\n');
        self.at - line.map_or(0, |at| at + 1)
    }

    /// Whether the rest of the line is empty or a comment.
    #[must_use]
    pub fn is_line_over(&self) -> bool {
        matches!(self.peek(), None | Some(b'\n' | b'\r' | b'#'))
    }

    /// Skips spaces on the line.
    pub fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Moves to the next line.
    pub fn skip_line(&mut self) {
        let length = self.rest().iter().position(|byte| *byte == b'\n');
        self.at = length.map_or(self.text.len(), |length| self.at + length + 1);
    }

    /// Skips spaces, empty lines and comments.
    pub fn skip_lines(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                _ => return,
            }
        }
    }

    /// Skips whitespace that may separate a tag from its value.
    pub fn skip_between(&mut self, style: YamlStyle) {
        match style {
            YamlStyle::Block => self.skip_spaces(),
            YamlStyle::Flow => self.skip_lines(),
        }
    }

    /// Fails unless the line ends here.
    pub fn end_of_line(&mut self) -> Result<()> {
        // A block scalar ends at the start of the next line.
        self.skip_spaces();
        if self.is_line_over() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    /// Fails unless the text ends here.
    pub fn end(&mut self) -> Result<()> {
        self.skip_lines();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.unexpected("the end of the text"))
        }
    }

    /// An error that states what was expected and found here.
    #[cold]
    #[must_use]
    pub fn unexpected(&self, expected: &str) -> WireError {
        let rest = String::from_utf8_lossy(&self.rest()[..self.rest().len().min(20)]);
        let found = rest.lines().next().unwrap_or("").to_owned();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        WireError::new("cannot read the text").with("expected", expected).with("found", found)
    }

    /// Adds the line and column to an error.
    #[cold]
    #[must_use]
    pub fn placed(&self, fault: WireError) -> WireError {
        let line = lines_in(&self.text[..self.at]) + 1;
        fault.with("line", line).with("column", self.column() + 1)
    }
}

/// Counts line breaks.
fn lines_in(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count() - 1
}

/// Whether a colon followed by this byte ends a name.
fn ends_name(next: Option<&u8>, style: YamlStyle) -> bool {
    match next {
        None => true,
        Some(b',' | b'[' | b']' | b'{' | b'}') => style == YamlStyle::Flow,
        Some(byte) => byte.is_ascii_whitespace(),
    }
}
