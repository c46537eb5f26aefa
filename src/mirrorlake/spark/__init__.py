"""The Spark session with its Java and its jars, and the files that a streaming query leaves."""
