//! Line breaks, spaces and commas as in Java's text wire (`docs/format.md` §8.9). The separator of
//! two values depends on the second, so each value leaves one pending for the next.

/// The separator between the last value and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Nothing,
    /// A comment ended its line: only the indentation follows.
    AfterComment,
    Space,
    NewLine,
    CommaSpace,
    CommaNewLine,
}

impl Separator {
    const fn text(self) -> &'static str {
        match self {
            Self::Nothing | Self::AfterComment => "",
            Self::Space => " ",
            Self::NewLine => "\n",
            Self::CommaSpace => ", ",
            Self::CommaNewLine => ",\n",
        }
    }

    const fn has_comma(self) -> bool {
        matches!(self, Self::CommaSpace | Self::CommaNewLine)
    }
}

/// A text document being written.
pub struct Layout<'a> {
    pub out: &'a mut String,
    /// The offset in `out` where the document begins.
    start: usize,
    separator: Separator,
    /// The separator before each enclosing block.
    outer: Vec<Separator>,
    /// Values go on one line.
    on_one_line: bool,
}

/// An open list.
pub struct List {
    on_one_line: bool,
    at: usize,
}

/// An open map.
pub struct Map {
    was_on_one_line: bool,
    /// None if the map is the whole document and has no brackets.
    on_one_line: Option<bool>,
}

impl<'a> Layout<'a> {
    /// Starts a document after the existing content of `out`.
    pub fn new(out: &'a mut String) -> Self {
        let start = out.len();
        Self { out, start, separator: Separator::Nothing, outer: Vec::new(), on_one_line: false }
    }

    /// Appends the separator before a value or a name.
    #[inline]
    pub fn separate(&mut self) {
        let separator = std::mem::replace(&mut self.separator, Separator::Nothing);
        if separator != Separator::Nothing {
            self.out.push_str(separator.text());
        }
        self.tidy();
        if self.ends_line() || separator == Separator::AfterComment {
            self.indent();
        }
    }

    /// Records the end of a value.
    #[inline]
    pub fn end_value(&mut self) {
        self.separator = match (self.outer.is_empty(), self.on_one_line) {
            (_, true) => Separator::CommaSpace,
            (false, false) => Separator::CommaNewLine,
            (true, false) => {
                self.out.push('\n');
                Separator::Nothing
            }
        };
        self.tidy();
    }

    /// Appends the separator between a name and its value.
    pub fn end_name(&mut self) {
        self.out.push_str(": ");
    }

    /// Appends the type name of the next value.
    pub fn put_type(&mut self, name: &str) {
        self.separate();
        self.out.push('!');
        self.out.push_str(name);
        self.out.push(' ');
    }

    pub fn put_comment(&mut self, text: &str) {
        self.separate();
        self.out.push_str("# ");
        self.out.push_str(text);
        self.out.push('\n');
        self.separator = Separator::AfterComment;
    }

    /// Starts a complex key; pass the result to [`Layout::end_key`].
    pub fn start_key(&mut self) -> bool {
        self.separate();
        self.out.push_str("? ");
        self.set_on_one_line(true)
    }

    /// Ends a complex key.
    pub fn end_key(&mut self, was_on_one_line: bool) {
        self.set_on_one_line(was_on_one_line);
        if self.text().last().is_some_and(|last| *last <= b' ') {
            self.out.pop();
        }
        self.end_name();
        self.separator = Separator::Nothing;
    }

    /// Switches one-line layout on or off; returns the previous setting.
    pub fn set_on_one_line(&mut self, is: bool) -> bool {
        let was = std::mem::replace(&mut self.on_one_line, is);
        if was && !is && self.separator.has_comma() {
            self.end_value();
        }
        was
    }

    pub fn open_list(&mut self) -> List {
        self.open('[');
        if self.on_one_line {
            self.out.push(' ');
        } else {
            self.separator = Separator::NewLine;
        }
        List { on_one_line: self.on_one_line, at: self.out.len() }
    }

    pub fn close_list(&mut self, list: &List) {
        let end = if list.on_one_line { ' ' } else { '\n' };
        let has_values = self.out.len() > list.at + 1;
        if !list.on_one_line && has_values {
            self.out.push(end);
        }
        self.pop();
        self.on_one_line = list.on_one_line;
        if !list.on_one_line {
            self.indent();
        } else if has_values {
            self.out.push(end);
        }
        self.close(']');
    }

    /// Opens a map. Nested maps may be on one line.
    pub fn open_map(&mut self, may_be_on_one_line: bool) -> Map {
        let was_on_one_line = self.on_one_line;
        self.on_one_line |= may_be_on_one_line && self.outer.len() > 1;
        if self.out.len() == self.start {
            return Map { was_on_one_line, on_one_line: None };
        }
        let on_one_line = self.on_one_line;
        self.open('{');
        self.separator = if on_one_line { Separator::Space } else { Separator::NewLine };
        Map { was_on_one_line, on_one_line: Some(on_one_line) }
    }

    pub fn close_map(&mut self, map: &Map) {
        let Some(on_one_line) = map.on_one_line else {
            if self.out.len() == self.start {
                self.out.push_str("{}");
            }
            return;
        };
        if on_one_line && matches!(self.separator, Separator::Space | Separator::CommaSpace) {
            self.out.push(' ');
        }
        self.tidy();
        self.pop();
        if !on_one_line {
            self.separator = Separator::NewLine;
        }
        self.separate();
        self.on_one_line = map.was_on_one_line;
        self.close('}');
    }

    fn open(&mut self, bracket: char) {
        if !self.separator.text().is_empty() {
            self.out.push_str(self.separator.text());
            self.tidy();
            self.indent();
            self.separator = Separator::Nothing;
        }
        self.outer.push(self.separator);
        self.separator = Separator::Nothing;
        self.out.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.tidy();
        self.out.push(bracket);
        self.end_value();
    }

    fn pop(&mut self) {
        self.separator = self.outer.pop().unwrap_or(Separator::Nothing);
        self.on_one_line = false;
    }

    fn indent(&mut self) {
        self.tidy();
        for _ in 0..self.outer.len() {
            self.out.push_str("  ");
        }
    }

    fn text(&self) -> &[u8] {
        &self.out.as_bytes()[self.start..]
    }

    fn ends_line(&self) -> bool {
        self.text().last() == Some(&b'\n')
    }

    /// Removes empty lines, trailing spaces, and the second of two spaces after a word.
    #[inline]
    fn tidy(&mut self) {
        match self.text() {
            [.., last] if *last > b' ' => {}
            [.., b'\n', b'\n'] => self.out.truncate(self.out.len() - 1),
            [.., b' ', b'\n'] => {
                self.out.truncate(self.out.len() - 2);
                self.out.push('\n');
            }
            [.., before, b' ', b' '] if *before > b' ' => self.out.truncate(self.out.len() - 1),
            _ => {}
        }
    }

    /// Ends the document like Java's dump.
    pub fn finish(mut self) {
        self.tidy();
    }
}
