"""The step of the pipeline beside this file that is easier said in Python than in SQL."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

WINDY_MPH = 20
FOGGY_MILES = 5
YEARS_A_CLASS = 5


def with_weather_and_planes(
    departures: DataFrame, weather: DataFrame, planes: DataFrame
) -> DataFrame:
    """Add what the weather was at the airport in that hour, and how old the plane was."""
    skies = weather.select("origin", f.col("time_hour").alias("at"), sky().alias("sky"))
    built = planes.select("tailnum", f.col("year").alias("built"))
    age = f.year("scheduled") - f.col("built")
    return (
        departures.withColumn("at", f.date_trunc("hour", "scheduled"))
        .join(f.broadcast(skies), ["origin", "at"], "left")
        .join(f.broadcast(built), ["tailnum"], "left")
        .withColumn("sky", f.coalesce("sky", f.lit("unknown")))
        .withColumn("age", (f.floor(age / YEARS_A_CLASS) * YEARS_A_CLASS).cast("int"))
        .drop("at", "built")
    )


def sky() -> Column:
    """Return the weather in a word: the worst thing about it."""
    return (
        f.when(f.col("precip") > 0, "rain or snow")
        .when(f.col("visib") < FOGGY_MILES, "fog")
        .when(f.col("wind_speed") >= WINDY_MPH, "wind")
        .otherwise("calm")
    )
