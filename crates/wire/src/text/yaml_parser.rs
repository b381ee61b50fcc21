//! Parses the YAML that [`super::yaml`] prints and people write (`docs/format.md` §8.10).
//!
//! No YAML library reads what Java prints: surrogates as two escapes, closing brackets in the first
//! column, `? key: value` on one line. The parser makes one pass, from left to right.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::scalar::{self, Scalar};
use super::source::{Source, YamlStyle};
use crate::error::{Result, WireError};
use crate::out::{Out, room};
use crate::reader;
use crate::writer;
use crate::writer::put_type_prefix;

/// Encodes a YAML document as a message, as Java does: an integer of more than 64 bits becomes a
/// float.
pub fn yaml(text: &str) -> Result<Vec<u8>> {
    parsed(text, false)
}

/// Like [`yaml`], with an error for an integer of more than 64 bits.
pub fn yaml_exact(text: &str) -> Result<Vec<u8>> {
    parsed(text, true)
}

fn parsed(text: &str, is_exact: bool) -> Result<Vec<u8>> {
    if let Some(at) = text.bytes().position(|byte| byte < b' ' && !b"\t\n\r".contains(&byte)) {
        let mut source = Source::new(text);
        source.at = at;
        return Err(
            source.placed(WireError::new("a control character: write it as an escape, in quotes"))
        );
    }
    room(text.len().saturating_mul(2))?; // for the text of a scalar, and as it is stored
    let (from, mut out) = (Source::new(text), Out::new());
    out.reserve(text.len());
    let mut parser = Parser { from, out, is_exact, is_too_large: false };
    match parser.document() {
        Ok(()) => parser.out.finish(),
        Err(fault) => Err(parser.from.placed(fault)),
    }
}

struct Parser<'a> {
    from: Source<'a>,
    out: Out,
    /// Whether integers that do not fit 64 bits are refused.
    is_exact: bool,
    /// Whether one was refused: its error then gets the enclosing names.
    is_too_large: bool,
}

/// How the names of a map are encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// As keys, as in Java's maps, or event names.
    Keys,
    /// As field names, as in Java's objects.
    Fields,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<()> {
        self.from.skip_lines();
        while self.from.rest().starts_with(b"---") {
            self.from.skip_line();
            self.from.skip_lines();
        }
        let indent = self.from.column();
        if self.from.takes(b'{') {
            // The top level: its entries have no block around them.
            self.flow_entries(Names::Keys, 1)?;
            if self.out.is_empty() {
                let block = writer::open_block(&mut self.out);
                writer::close_block(&mut self.out, block);
            }
            return self.from.end();
        }
        if self.from.is_item() {
            self.block(indent, Names::Keys, 0)?;
            return self.from.end();
        }
        if self.from.at == self.from.text.len() {
            return Err(self.from.unexpected("a message"));
        }
        while self.from.at < self.from.text.len() {
            if self.from.column() != indent {
                return Err(self.from.unexpected("the indentation of the lines before"));
            }
            if self.from.rest().starts_with(b"---") {
                return Err(self.from.unexpected("one document"));
            }
            self.entry_or_value(indent)?;
            self.from.skip_lines();
        }
        Ok(())
    }

    /// One entry or value of the top level.
    fn entry_or_value(&mut self, indent: usize) -> Result<()> {
        if self.from.is_key_mark() {
            return self.object_key(indent, YamlStyle::Block, 0);
        }
        if matches!(self.from.peek(), Some(b'!' | b'[' | b'{' | b'|' | b'>')) {
            return self.value_after_indicator(indent, 0);
        }
        let found = self.from.scalar(YamlStyle::Block)?;
        if self.from.takes_colon(YamlStyle::Block) {
            self.put_name(&found, Names::Keys)?;
            let put = self.value_after_indicator(indent + 1, 0);
            return self.named(&found, put);
        }
        self.put(&found)?;
        self.from.end_of_line()
    }

    /// A list or map whose lines start at a column, or a value on its own line.
    fn block(&mut self, indent: usize, names: Names, depth: usize) -> Result<()> {
        let is_list = self.from.is_item();
        if !is_list && !self.from.is_key_mark() {
            if matches!(self.from.peek(), Some(b'!' | b'[' | b'{' | b'|' | b'>')) {
                return self.value_after_indicator(indent, depth);
            }
            let first = self.from.scalar(YamlStyle::Block)?;
            if !self.from.takes_colon(YamlStyle::Block) {
                self.put(&first)?;
                return self.from.end_of_line();
            }
            let depth = reader::deeper(depth, self.from.at)?;
            let block = writer::open_block(&mut self.out);
            self.put_name(&first, names)?;
            let put = self.value_after_indicator(indent + 1, depth);
            self.named(&first, put)?;
            self.entries(indent, names, depth)?;
            writer::close_block(&mut self.out, block);
            return Ok(());
        }
        let depth = reader::deeper(depth, self.from.at)?;
        let block = writer::open_block(&mut self.out);
        if is_list {
            self.items(indent, depth)?;
        } else {
            self.entries(indent, names, depth)?;
        }
        writer::close_block(&mut self.out, block);
        Ok(())
    }

    fn entries(&mut self, indent: usize, names: Names, depth: usize) -> Result<()> {
        while self.from.is_at(indent) && !self.from.is_item() {
            if self.from.is_key_mark() {
                self.object_key(indent, YamlStyle::Block, depth)?;
                continue;
            }
            let name = self.from.scalar(YamlStyle::Block)?;
            if !self.from.takes_colon(YamlStyle::Block) {
                return Err(self.from.unexpected("a colon after a name"));
            }
            self.put_name(&name, names)?;
            let put = self.value_after_indicator(indent + 1, depth);
            self.named(&name, put)?;
        }
        Ok(())
    }

    fn items(&mut self, indent: usize, depth: usize) -> Result<()> {
        while self.from.is_at(indent) && self.from.is_item() {
            self.from.at += 1;
            self.from.skip_spaces();
            if self.from.is_line_over() || self.from.peek() == Some(b'!') {
                self.value_after_indicator(indent + 1, depth)?;
            } else {
                let column = self.from.column();
                self.block(column, Names::Keys, depth)?;
            }
        }
        Ok(())
    }

    /// The value after a name and its colon, or after the dash of an item: on the same line or the
    /// next ones, from column `least` on.
    fn value_after_indicator(&mut self, least: usize, depth: usize) -> Result<()> {
        self.from.skip_spaces();
        let mut names = Names::Keys;
        while self.from.peek() == Some(b'!') {
            if self.tag(YamlStyle::Block, depth)? {
                return self.from.end_of_line();
            }
            names = Names::Fields;
            self.from.skip_spaces();
        }
        let is_unpacked = |comment: &[u8]| self.from.rest().starts_with(comment);
        if is_unpacked(b"# gzip\n") || is_unpacked(b"# lzw\n") {
            // The compressed value follows the comment, in the first column.
            self.from.skip_line();
            let value = self.from.scalar(YamlStyle::Block)?;
            self.put(&value)?;
            return self.from.end_of_line();
        }
        if !self.from.is_line_over() {
            self.value(least, YamlStyle::Block, names, depth)?;
            return self.from.end_of_line();
        }
        self.from.skip_lines();
        let column = self.from.column();
        let is_over = self.from.at >= self.from.text.len();
        if !is_over && (column >= least || column + 1 == least && self.from.is_item()) {
            return self.block(column, names, depth);
        }
        writer::put_null(&mut self.out);
        Ok(())
    }

    /// A value that starts here.
    fn value(&mut self, least: usize, style: YamlStyle, names: Names, depth: usize) -> Result<()> {
        let mut names = names;
        while self.from.peek() == Some(b'!') {
            if self.tag(style, depth)? {
                return Ok(());
            }
            names = Names::Fields;
            self.from.skip_between(style);
        }
        match self.from.peek() {
            Some(bracket @ (b'[' | b'{')) => {
                let depth = reader::deeper(depth, self.from.at)?;
                self.from.at += 1;
                let block = writer::open_block(&mut self.out);
                if bracket == b'[' {
                    self.flow_items(depth)?;
                } else {
                    self.flow_entries(names, depth)?;
                }
                writer::close_block(&mut self.out, block);
                Ok(())
            }
            Some(mark @ (b'|' | b'>')) if style == YamlStyle::Block => {
                self.from.lines(least, mark)?.put(&mut self.out);
                Ok(())
            }
            _ => {
                let value = self.from.scalar(style)?;
                self.put(&value)
            }
        }
    }

    fn flow_items(&mut self, depth: usize) -> Result<()> {
        loop {
            self.from.skip_lines();
            if self.from.takes(b']') {
                return Ok(());
            }
            self.value(0, YamlStyle::Flow, Names::Keys, depth)?;
            self.from.skip_lines();
            if !self.from.takes(b',') && self.from.peek() != Some(b']') {
                return Err(self.from.unexpected("a comma or ]"));
            }
        }
    }

    fn flow_entries(&mut self, names: Names, depth: usize) -> Result<()> {
        loop {
            self.from.skip_lines();
            if self.from.takes(b'}') {
                return Ok(());
            }
            if self.from.is_key_mark() {
                self.object_key(0, YamlStyle::Flow, depth)?;
            } else {
                let name = self.from.scalar(YamlStyle::Flow)?;
                self.from.skip_lines();
                if !self.from.takes(b':') {
                    return Err(self.from.unexpected("a colon after a name"));
                }
                self.put_name(&name, names)?;
                let put = self.flow_value(depth);
                self.named(&name, put)?;
            }
            self.from.skip_lines();
            if !self.from.takes(b',') && self.from.peek() != Some(b'}') {
                return Err(self.from.unexpected("a comma or }"));
            }
        }
    }

    fn flow_value(&mut self, depth: usize) -> Result<()> {
        self.from.skip_lines();
        if matches!(self.from.peek(), Some(b',' | b'}')) {
            writer::put_null(&mut self.out);
            return Ok(());
        }
        self.value(0, YamlStyle::Flow, Names::Keys, depth)
    }

    /// `? key: value`, or the colon on the next line.
    fn object_key(&mut self, indent: usize, style: YamlStyle, depth: usize) -> Result<()> {
        self.from.at += 1;
        self.from.skip_spaces();
        writer::put_object_key(&mut self.out);
        self.value(indent + 1, style, Names::Keys, reader::deeper(depth, self.from.at)?)?;
        self.from.skip_lines();
        if !self.from.takes(b':') {
            return Err(self.from.unexpected("a colon after a key"));
        }
        match style {
            YamlStyle::Block => self.value_after_indicator(indent + 1, depth),
            YamlStyle::Flow => self.flow_value(depth),
        }
    }

    /// Reads a tag. Returns true if the tag is the value or the value was read with it, false if it
    /// was the type name of the value that follows.
    fn tag(&mut self, style: YamlStyle, depth: usize) -> Result<bool> {
        let start = self.from.at + 1;
        let length = self.from.text[start..].iter().position(u8::is_ascii_whitespace);
        self.from.at = length.map_or(self.from.text.len(), |length| start + length);
        let name = &self.from.text[start..self.from.at];
        self.from.skip_between(style);
        match name {
            b"!null" => {
                if matches!(self.from.peek(), Some(b'"' | b'\'')) {
                    self.from.scalar(style)?;
                }
                writer::put_null(&mut self.out);
            }
            b"!binary" => {
                let blob = self.base64(style)?;
                writer::put_blob(&mut self.out, &blob)?;
            }
            b"byte[]" => {
                put_type_prefix(&mut self.out, "byte[]");
                if self.from.peek() == Some(b'!') {
                    return self.tag(style, reader::deeper(depth, self.from.at)?);
                }
                let text = self.from.scalar(style)?;
                writer::put_blob(&mut self.out, &text.latin1()?)?;
            }
            b"type" => {
                let name = self.from.scalar(style)?;
                writer::put_type_literal(&mut self.out, &name.text()?);
            }
            b"byte" | b"short" | b"int" | b"long" | b"float" | b"double" | b"UUID" => {
                if matches!(self.from.peek(), Some(b'[' | b'{')) {
                    put_type_prefix(&mut self.out, &String::from_utf8_lossy(name));
                    return Ok(false);
                }
                let value = self.from.scalar(style)?;
                scalar::put_typed(&mut self.out, name, &value)?;
            }
            b"" => return Err(self.from.unexpected("a type name")),
            name if name.starts_with(b"<") => {
                return Err(self.from.unexpected("a plain type name"));
            }
            name => {
                put_type_prefix(&mut self.out, &String::from_utf8_lossy(name));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn base64(&mut self, style: YamlStyle) -> Result<Vec<u8>> {
        if matches!(self.from.peek(), Some(b'|' | b'>')) {
            return Err(self.from.unexpected("Base64 on one line"));
        }
        let text = self.from.scalar(style)?.text()?.into_owned();
        BASE64.decode(&text).map_err(|error| WireError::new("not Base64").with("error", error))
    }

    fn put(&mut self, value: &Scalar<'_>) -> Result<()> {
        if self.is_exact
            && let Some(digits) = value.large_integer()
        {
            self.is_too_large = true;
            return Err(scalar::too_large(digits));
        }
        value.put(&mut self.out);
        Ok(())
    }

    fn named(&self, name: &Scalar<'_>, put: Result<()>) -> Result<()> {
        match (put, name.name()) {
            (Err(fault), Ok(name)) if self.is_too_large => Err(fault.inside(name)),
            (put, _) => put,
        }
    }

    fn put_name(&mut self, name: &Scalar<'_>, names: Names) -> Result<()> {
        let name = name.name()?;
        scalar::put_name(&mut self.out, &name, names == Names::Fields)
    }
}
