//! Dates and times: Java's text for them, and Python's objects (`docs/format.md` §8.1).

use std::ops::RangeInclusive;

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use quire_wire::WireError;
use quire_wire::codes::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};
use quire_wire::temporal::{self, Date, Stamp, Time, Zone};

use super::classes;
use super::classes::type_name;
use super::failure::{Failure, Result};

/// The range of years in Python.
const YEARS: RangeInclusive<i32> = 1..=9999;

/// The object for a text and its code. None if Python has none: it counts microseconds, and
/// its years have four digits.
///
/// None also if the text is no date or time, like pandas' `NaT` that older releases wrote.
pub fn object<'py>(py: Python<'py>, code: u8, text: &str) -> Result<Option<Bound<'py, PyAny>>> {
    let Some(stamp) = temporal::parse(text) else { return Ok(None) };
    if stamp.time.is_some_and(|time| time.nanos % 1000 != 0) || !is_known(&stamp) {
        return Ok(None);
    }
    if stamp.code() != code {
        let expected = quire_wire::codes::name(code);
        return Err(WireError::new("not the kind of date or time that its code says")
            .with("found", format_args!("{text:?}"))
            .with("expected", expected)
            .into());
    }
    of_stamp(py, &stamp).map(Some).map_err(Into::into)
}

/// Whether Python supports the year.
pub fn is_known(stamp: &Stamp<'_>) -> bool {
    stamp.date.is_none_or(|date| YEARS.contains(&date.year))
}

/// The object for a date, a time, or both.
pub fn of_stamp<'py>(py: Python<'py>, stamp: &Stamp<'_>) -> PyResult<Bound<'py, PyAny>> {
    match (stamp.date, stamp.time) {
        (Some(Date { year, month, day }), None) => classes::date(py)?.call1((year, month, day)),
        (None, Some(Time { hour, minute, second, nanos })) => {
            classes::time(py)?.call1((hour, minute, second, nanos / 1000))
        }
        (Some(Date { year, month, day }), Some(Time { hour, minute, second, nanos })) => {
            let moment = |zone: Option<Bound<'py, PyAny>>| {
                let parts = (year, month, day, hour, minute, second, nanos / 1000, zone);
                classes::datetime(py)?.call1(parts)
            };
            match &stamp.zone {
                Some(zone) => match in_region(py, zone, moment)? {
                    Some(found) => Ok(found),
                    None => moment(Some(offset_object(py, zone.offset_s)?)),
                },
                None => moment(None),
            }
        }
        (None, None) => Ok(py.None().into_bound(py)),
    }
}

/// A moment in the zone of this name, if Python has the zone and it has this offset at one of the
/// two times with this local clock reading.
fn in_region<'py>(
    py: Python<'py>,
    zone: &Zone<'_>,
    moment: impl Fn(Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(name) = zone.name else { return Ok(None) };
    let Ok(region) = classes::zone_info(py)?.call1((name,)) else { return Ok(None) };
    let first = moment(Some(region))?;
    let fold = PyDict::new(py);
    fold.set_item(intern!(py, "fold"), 1)?;
    let second = first.call_method(intern!(py, "replace"), (), Some(&fold))?;
    for found in [first, second] {
        let offset = found.call_method0(intern!(py, "utcoffset"))?;
        let seconds: f64 = offset.call_method0(intern!(py, "total_seconds"))?.extract()?;
        #[allow(clippy::float_cmp)] // whole seconds
        if seconds == f64::from(zone.offset_s) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The zone of an offset.
fn offset_object(py: Python<'_>, offset_s: i32) -> PyResult<Bound<'_, PyAny>> {
    if offset_s == 0 {
        return classes::timezone(py)?.getattr(intern!(py, "utc"));
    }
    let offset = classes::timedelta(py)?.call1((0, offset_s))?;
    classes::timezone(py)?.call1((offset,))
}

/// Java's text and its code for a date, a time, or both.
///
/// # Errors
///
/// Values that neither Java nor Quire could read back: pandas' `NaT`, offsets of more than 18
/// hours, years beyond 9999.
pub fn text(value: &Bound<'_, PyAny>) -> Result<Option<(u8, String)>> {
    let found = iso_text(value)?;
    match &found {
        Some((code, text)) if !is_java(*code, text) => Err(no_time(value, text)),
        _ => Ok(found),
    }
}

/// Whether a text is one of Java's for its code, and of a year that Python knows.
pub fn is_java(code: u8, text: &str) -> bool {
    temporal::parse(text).is_some_and(|stamp| stamp.code() == code && is_known(&stamp))
}

#[cold]
fn no_time(value: &Bound<'_, PyAny>, text: &str) -> Failure {
    let why = if text.contains("NaT") {
        "a missing date or time: write None instead"
    } else {
        "no date or time that Java knows: years are 1 to 9999, offsets at most 18 hours"
    };
    WireError::new(why).with("found", text).with("type", type_name(value)).into()
}

fn iso_text(value: &Bound<'_, PyAny>) -> Result<Option<(u8, String)>> {
    let py = value.py();
    let is_datetime = value.is_instance(classes::datetime(py)?)?;
    if !is_datetime && value.is_instance(classes::date(py)?)? {
        return Ok(Some((DATE, iso(value)?)));
    }
    if !is_datetime && !value.is_instance(classes::time(py)?)? {
        return Ok(None);
    }
    let iso = iso(value)?;
    if !is_datetime {
        if !value.getattr(intern!(py, "tzinfo"))?.is_none() {
            return Err(WireError::new("a time of day has no zone in Java")
                .with("value", iso)
                .into());
        }
        return Ok(Some((TIME, temporal::java_time(&iso))));
    }
    let Some((date, time)) = iso.split_once('T') else { return Ok(Some((DATE, iso))) };
    let zone = value.getattr(intern!(py, "tzinfo"))?;
    if zone.is_none() {
        return Ok(Some((DATE_TIME, format!("{date}T{}", temporal::java_time(time)))));
    }
    let (time, offset) = temporal::split_offset(time);
    if offset.contains('.') {
        return Err(WireError::new("an offset of parts of seconds").with("value", iso).into());
    }
    let mut text = format!("{date}T{}{}", temporal::java_time(time), temporal::java_offset(offset));
    if let Ok(key) = zone.getattr(intern!(py, "key"))
        && !key.is_none()
    {
        text = format!("{text}[{key}]");
    }
    Ok(Some((ZONED_DATE_TIME, text)))
}

/// Java's text for an instant; None for a value without a zone.
pub fn instant_text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = value.py();
    let is_moment = value.is_instance(classes::datetime(py)?)?
        && !value.getattr(intern!(py, "tzinfo"))?.is_none();
    if !is_moment {
        return Ok(None);
    }
    let utc = classes::timezone(py)?.getattr(intern!(py, "utc"))?;
    let iso = iso(&value.call_method1(intern!(py, "astimezone"), (utc,))?)?;
    let (date, time) = iso.split_once('T').unwrap_or((&iso, ""));
    let (time, _) = temporal::split_offset(time);
    let seconds = if time.ends_with(":00") { time.to_owned() } else { temporal::java_time(time) };
    Ok(Some(format!("{date}T{seconds}Z")).filter(|text| is_java(ZONED_DATE_TIME, text)))
}

fn iso(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.call_method0(intern!(value.py(), "isoformat"))?.extract()
}

/// Java's text for a duration, as `PT1M30.5S`.
pub fn duration_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let part = |name| value.getattr(name)?.extract::<i64>();
    let seconds = part(intern!(py, "days"))? * 86_400 + part(intern!(py, "seconds"))?;
    let micros = part(intern!(py, "microseconds"))?;
    let nanos = match value.getattr_opt(intern!(py, "nanoseconds"))? {
        Some(nanos) => nanos.extract::<i64>()?, // of pandas
        None => 0,
    };
    let micros = i128::from(seconds) * 1_000_000 + i128::from(micros);
    Ok(temporal::java_duration(micros * 1_000 + i128::from(nanos)))
}

/// The duration in Java's text; None if it is invalid.
pub fn duration<'py>(py: Python<'py>, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(micros) = temporal::parse_duration(text) else { return Ok(None) };
    match classes::timedelta(py)?.call1((0, 0, micros)) {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(None),
        found => found.map(Some),
    }
}
