//! Methods that several classes share. PyO3 has neither generic classes nor inherited methods, so
//! macros generate them for each class, with the docstrings of its own stub.

/// The docstring of a class or member in the stub; `build.rs` puts each into a file.
macro_rules! stub {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/stub/", $name))
    };
    ($class:ident.$member:ident) => {
        include_str!(concat!(
            env!("OUT_DIR"),
            "/stub/",
            stringify!($class),
            ".",
            stringify!($member)
        ))
    };
}

/// `__enter__` and `__exit__` of a class; `$leave` gets whether the block raised.
macro_rules! context_manager {
    ($class:ty, $leave:expr) => {
        #[pymethods]
        impl $class {
            fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            #[pyo3(signature = (exc_type, exc, traceback, /))]
            fn __exit__(
                &self,
                py: Python<'_>,
                exc_type: Option<Bound<'_, PyAny>>,
                exc: Option<Bound<'_, PyAny>>,
                traceback: Option<Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                let _ = (exc, traceback);
                let leave: fn(&Self, Python<'_>, bool) -> PyResult<()> = $leave;
                leave(self, py, exc_type.is_some())
            }
        }
    };
    ($class:ty) => {
        context_manager!($class, |handle, py, _| {
            handle.close(py);
            Ok(())
        });
    };
}

/// `path` and `closed` of a handle.
macro_rules! path_and_closed {
    ($class:ident, $path:expr, $is_closed:expr) => {
        #[pymethods]
        impl $class {
            #[doc = stub!($class.path)]
            #[getter]
            fn path(&self) -> std::ffi::OsString {
                let path: fn(&Self) -> &std::path::Path = $path;
                path(self).as_os_str().to_owned()
            }

            #[doc = stub!($class.closed)]
            #[getter]
            fn closed(&self) -> bool {
                let is_closed: fn(&Self) -> bool = $is_closed;
                is_closed(self)
            }
        }
    };
}

/// `ask`, which calls the kernel's queue if it is open, and properties that ask one question each.
macro_rules! questions {
    (impl $class:ident { $(fn $question:ident() -> $answer:ty;)+ }) => {
        impl $class {
            fn ask<T: Send>(
                &self,
                py: Python<'_>,
                question: impl FnOnce(&Kernel) -> quire_kernel::Result<T> + Send,
            ) -> PyResult<T> {
                let kernel = &self.kernel;
                $crate::error::or_raise(
                    py,
                    py.detach(|| kernel.check_open("queue").and_then(|()| question(kernel))),
                )
            }
        }

        #[pymethods]
        impl $class {$(
            #[doc = stub!($class.$question)]
            #[getter]
            fn $question(&self, py: Python<'_>) -> PyResult<$answer> {
                self.ask(py, Kernel::$question)
            }
        )+}
    };
}

/// The index of a tailer, and the methods that move it.
macro_rules! tailer_moves {
    ($class:ident, $index:ty) => {
        #[pymethods]
        impl $class {
            #[doc = stub!($class.index)]
            #[getter]
            fn index(&self, py: Python<'_>) -> PyResult<$index> {
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.index(may_wait)),
                )
            }

            #[doc = stub!($class.move_to_index)]
            #[pyo3(signature = (index, /))]
            fn move_to_index(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<bool> {
                let index = $crate::arguments::integer("index", index)?;
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| {
                        self.0.move_to_index(may_wait, index)
                    }),
                )
            }

            #[doc = stub!($class.to_start)]
            fn to_start(&self, py: Python<'_>) -> PyResult<()> {
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.to_start(may_wait)),
                )
            }

            #[doc = stub!($class.to_end)]
            fn to_end(&self, py: Python<'_>) -> PyResult<()> {
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.to_end(may_wait)),
                )
            }
        }
    };
}

/// Adds `_sleep` and `_begin_wait`, for a class whose field is a tailer.
macro_rules! tailer_waits {
    ($class:ident) => {
        #[pyo3::pymethods]
        impl $class {
            #[doc = stub!($class._sleep)]
            #[pyo3(name = "_sleep", signature = (timeout_s = None))]
            fn sleep(
                &self,
                py: pyo3::Python<'_>,
                timeout_s: Option<&pyo3::Bound<'_, pyo3::PyAny>>,
            ) -> pyo3::PyResult<bool> {
                let tailer = std::sync::Arc::clone(&self.0);
                $crate::handles::waits::sleep(py, tailer, timeout_s)
            }

            #[doc = stub!($class._begin_wait)]
            #[pyo3(name = "_begin_wait", signature = (waits, number, /))]
            fn begin_wait(
                &self,
                py: pyo3::Python<'_>,
                waits: &$crate::handles::waits::EventLoopWaits,
                number: u64,
            ) -> pyo3::PyResult<$crate::handles::waits::Wait> {
                let tailer = std::sync::Arc::clone(&self.0);
                $crate::handles::waits::begin(py, tailer, waits, number)
            }
        }
    };
}

/// The direction of a tailer that can read backward, and the index that it read last.
macro_rules! tailer_direction {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            #[doc = stub!($class.direction)]
            #[getter]
            fn direction(&self, py: Python<'_>) -> PyResult<&'static str> {
                let direction = $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.direction(may_wait)),
                )?;
                Ok($crate::handles::direction::name(direction))
            }

            #[setter]
            fn set_direction(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
                let direction = $crate::handles::direction::named(value)?;
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| {
                        self.0.set_direction(may_wait, direction)
                    }),
                )
            }

            #[doc = stub!($class.last_read_index)]
            #[getter]
            fn last_read_index(&self, py: Python<'_>) -> PyResult<Option<i64>> {
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.last_read_index(may_wait)),
                )
            }
        }
    };
}

/// Methods that each read the next field of a message, as one type.
macro_rules! field_reads {
    (impl $class:ident { $(fn $method:ident() -> $type:ty = $take:expr;)+ }) => {
        #[pymethods]
        impl $class {$(
            #[doc = stub!($class.$method)]
            fn $method(&self, py: Python<'_>) -> PyResult<$type> {
                self.take(py, $take)
            }
        )+}
    };
}
