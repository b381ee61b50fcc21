import pytest

from quire.errors import QuireError
from quire.pipeline.failures import reason

WORKER = """\
[PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 4207, in invoke_udf
    func, profiler, deserializer, serializer = read_udfs(
                                               ^^^^^^^^^^
  File "steps.py", line 3, in fails
    raise ValueError(f'no good: n={n}')
ValueError: no good: n=2
 SQLSTATE: 38000
"""
ANALYSIS = """\
[UNRESOLVED_COLUMN] A column `m` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;
'Project ['m]
+- SubqueryAlias t
   +- LogicalRDD [n#1L], true
"""
PARSE = """\

[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)

== SQL ==
selec n from t
^^^
"""
NESTED = f"""{WORKER}
	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.lang.RuntimeException: no
	... 3 more
"""


def test_an_error_of_a_function_is_reported_with_its_place() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0

    assert reason(caught.value).startswith("ZeroDivisionError: division by zero (test_pipeline_")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (WORKER, "ValueError: no good: n=2"),
        (NESTED, "ValueError: no good: n=2"),
        (ANALYSIS, "[UNRESOLVED_COLUMN] A column `m` cannot be resolved."),
        (PARSE, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'."),
        ("division by zero", "division by zero"),
    ],
)  # fmt: skip
def test_the_line_of_a_trace_that_gives_the_reason_is_reported(text: str, reported: str) -> None:
    assert reason(QuireError(text)) == reported
