"""The libraries of the package alone."""

#: Libraries of the package alone, by the module that is imported.
BASE = {
    **{
        name: name
        for name in (
            "deltalake",
            "duckdb",
            "numpy",
            "pyarrow",
            "pydantic",
            "rich",
            "sqlglot",
            "typer",
        )
    },
    "confluent_kafka": "confluent-kafka",
    "yaml": "PyYAML",
}
#: What of these a task of Spark's imports, and modules that run in one, or beside the driver for a
#: stream.
OF_A_TASK = {"confluent_kafka", "numpy", "pyarrow"}
