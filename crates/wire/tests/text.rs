//! Text parsed and printed again.

use quire_wire::text::json;
use quire_wire::text::yaml as shown;
use quire_wire::text::yaml_parser::yaml;

fn shown_again(text: &str) -> String {
    let message = yaml(text).unwrap_or_else(|fault| panic!("{fault} in {text}"));
    let mut out = String::new();
    shown::put(&mut out, &message, true).unwrap_or_else(|fault| panic!("{fault} in {text}"));
    out
}

#[test]
fn what_is_shown_is_read_and_shown_the_same() {
    for text in [
        "say: hello\n",
        "to: x\ndeliver: \"a\\nb \\uD83D\\uDE00 \\uD83D\"\n",
        "a: 1\nb: !byte -1\nc: !short 300\nd: 0x1f\ne: 1.5\nf: 10000E6\n",
        "n: !!null \"\"\nt: true\nf: NaN\nd: 2024-02-29\nz: \"2024-02-29T12:34:56Z[X]\"\n",
        "b: !!binary AQID/w==\nc: !byte[] \"\\t\\xFF\"\nt: !type a.b.C\n",
        "u: !UUID 00000000-0000-0001-0000-000000000002\n",
        "dto: !Trade {\n  name: bob,\n  tags: [\n    x,\n    yy\n  ],\n  none: [ ]\n}\n",
        "m: {\n  ? 2.5: 1,\n  ? !Side BUY: {\n    a: { b: [ 1, 2 ] }\n  }\n}\n",
        "[\n  1,\n  [ ]\n]\n",
        "hello world\n",
        "\"\"\n",
        "1\n2\nx\n",
        "\"7\": id7\n\"caf\\xE9\": 1\n",
        "s: !!oset [\n  a\n]\n",
        "? key: value\n? !A !B key: value\n? !byte[] x: value\n",
        "a: x'y\nb: 'x\"y'\nc: x\"y'z\n",
    ] {
        assert_eq!(shown_again(text), text);
    }
}

#[test]
fn what_people_write_is_read() {
    for (text, same) in [
        ("---\n# a comment\na: 1 # more\n\nb: 2", "a: 1\nb: 2\n"),
        (
            "a:\n  b: 1\n  c:\n    - x\n    - y: 1\n      z: 2\n  d: e\n",
            "a: {\n  b: 1,\n  c: [\n    x,\n    { y: 1, z: 2 }\n  ],\n  d: e\n}\n",
        ),
        (
            "a:\n- 1\n- - 2\n  - 3\n-\n  k: v\nb: 1\n",
            "a: [\n  1,\n  [\n    2,\n    3\n  ],\n  {\n    k: v\n  }\n]\nb: 1\n",
        ),
        ("- 1\n- two\n", "[\n  1,\n  two\n]\n"),
        ("{\"a\": [1, 2,], 'it''s': {}}", "a: [\n  1,\n  2\n]\nit's: []\n"),
        ("t: !Trade\n  7: x\n  px: 1_000\n", "t: !Trade {\n  \"7\": x,\n  px: 1000\n}\n"),
        ("!Trade\na: 1\n", "!Trade {\n  a: 1\n}\n"),
        (
            "l:\n  - !Trade\n    a: 1\n  - !Other {b: 2}\n",
            "l: [\n  !Trade {\n    a: 1\n  },\n  !Other {\n    b: 2\n  }\n]\n",
        ),
        ("u: http://x/y#z, and so on\n", "u: \"http://x/y#z, and so on\"\n"),
        (
            "a: |\n  one\n   two\n\n  three\nb: >-\n  x\n  y\n",
            "a: \"one\\n two\\n\\nthree\\n\"\nb: x y\n",
        ),
        ("a: \"x\n   y\"\nb: \"x\\\n  y\"\n", "a: x y\nb: xy\n"),
        ("a:\nb: ''\n", "a: !!null \"\"\nb: \"\"\n"),
        (
            "a: !int 5\nb: !long 0x10\nc: !double 2\nd: !float 1.5\n",
            "a: 5\nb: 16\nc: 2.0\nd: 1.5\n",
        ),
        ("a: !byte[] !!binary AQ==\n", "a: !byte[] \"\\x01\"\n"),
        ("? [1, 2]\n: x\n", "? [ 1, 2 ]: x\n"),
        (
            "a: 9223372036854775808\nb: 24-01-15\nc: 12:34\n",
            "a: 9.223372036854776E18\nb: \"24-01-15\"\nc: 12:34\n",
        ),
        ("\"caf\\uFFE9\": \u{1F600}\n", "\"caf\\xE9\": \"\\uD83D\\uDE00\"\n"),
    ] {
        assert_eq!(shown_again(text), same, "{text}");
    }
}

#[test]
fn invalid_text_is_reported_with_its_position() {
    for (text, what) in [
        ("", "expected=a message found=the end line=1 column=1"),
        ("a: [1\n", "expected=a comma or ]"),
        ("a: x\u{1}\n", "a control character: write it as an escape, in quotes: line=1 column=5"),
        ("a: &x 1\n", "anchors and aliases are not supported"),
        ("a: *x\n", "anchors and aliases are not supported"),
        ("a: b: c\n", "expected=the end of the line found=\": c\" line=1 column=5"),
        ("a: 1\n---\nb: 2\n", "expected=one document"),
        ("a:\n   b: 1\n  c: 2\n", "expected=the indentation"),
        ("a: \"x\n", "expected=a closing quote"),
        ("a: \"\\q\"\n", "expected=an escape"),
        ("a: !byte 200\n", "invalid value for the type: type=byte found=\"200\""),
        ("a: !!binary x\n", "not Base64"),
        ("a: !byte[] \"\\u20AC\"\n", "bytes are characters up to U+00FF"),
        ("!T {\"\\u20AC\": 1}", "a name must consist of Latin-1 characters"),
        ("a: @x\n", "expected=a value found=\"@x\" line=1 column=4"),
        ("a: !<tag:x> 1\n", "expected=a plain type name"),
    ] {
        let fault = yaml(text).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault} for {text}");
    }
}

#[test]
fn nesting_has_a_bound() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("? ", ""), ("- ", ""), ("!x ", "")] {
        let text = format!("k: {}1{}", open.repeat(5000), close.repeat(5000));
        let _ = yaml(&text);
        let _ = yaml(&text[3..]);
    }
    let deep = |count| yaml(&format!("k: {}1{}", "[".repeat(count), "]".repeat(count)));
    assert!(deep(64).is_ok());
    assert!(deep(65).unwrap_err().to_string().contains("nested too deep"));
}

#[test]
fn json_is_read_and_shown_the_same() {
    for text in [
        r#"{"say":"hello"}"#,
        r#"{"to":"x","to":"y","n":null,"t":true,"i":-5,"f":1.5,"l":[1,[],{"a":"b\"\n\u0001"}]}"#,
        r#"{"dto":{"@Trade":{"7":1,"name":"\u00e9"}},"b":{"@!binary":"AQID/w=="}}"#,
        r#"{"b":{"@byte[]":"AQ=="},"c":{"@type":"a.B"},"s":{"@!oset":[1]}}"#,
        r#"{"@Trade":{"a":{"@UUID":"00000000-0000-0001-0000-000000000002"}}}"#,
        r#""text""#,
        "[1,2]",
        "1e300",
        "null",
    ] {
        let mut out = String::new();
        json::put(&mut out, &json::parse(text).unwrap()).unwrap();
        assert_eq!(out, text.replace("\\u00e9", "\u{e9}"));
    }
}

#[test]
fn what_json_has_no_name_for_is_text() {
    for (text, json) in [
        ("a: NaN\nb: -Infinity\n", r#"{"a":"NaN","b":"-Infinity"}"#),
        ("m:\n  ? 2.5: 1\n  ? true: 2\n  ? !Side BUY: 3\n", r#"{"m":{"2.5":1,"true":2,"BUY":3}}"#),
        ("a: 2024-02-29\nb: !short 300\nc: 0x10\n", r#"{"a":"2024-02-29","b":300,"c":16}"#),
        ("1\n2\n", "[1,2]"),
        ("say:\n", r#"{"say":null}"#),
    ] {
        let mut out = String::new();
        json::put(&mut out, &yaml(text).unwrap()).unwrap();
        assert_eq!(out, json);
    }
}

#[test]
fn invalid_json_is_reported() {
    for (text, what) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{\"a\":}", "expected value at line 1 column 6"),
        ("1 2", "trailing characters"),
        ("{\"@A\":1,\"b\":2}", "a type must be the only key"),
        ("{\"@!binary\":\"x\"}", "Invalid"),
        ("{\"@T\":{\"\u{20ac}\":1}}", "Latin-1"),
    ] {
        let fault = json::parse(text).unwrap_err().to_string();
        assert!(fault.contains("cannot read the JSON") && fault.contains(what), "{fault}");
    }
    let deep = |count| json::parse(&format!("{}1{}", "[".repeat(count), "]".repeat(count)));
    assert!(deep(64).is_ok());
    assert!(deep(65).unwrap_err().to_string().contains("nested too deep"));
    assert!(deep(100_000).is_err());
}
