"""Delta and Spark: the session, the tables, landing, and everything that is read from or appended to the lake."""
