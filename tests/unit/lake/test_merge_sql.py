"""The statement that merges rows of the map carries every column over, so that a new one is not
lost with the rows."""

import re

from mirrorlake.lake.definitions import sql_text


def test_every_column_of_the_map_is_carried_over() -> None:
    table = sql_text("tables", "offset_map").split("CREATE TABLE", 1)[1]
    columns = set(re.findall(r"^  (\w+) [A-Z]", table.split(") USING")[0], re.MULTILINE))
    inserted = re.search(r"THEN INSERT \(([^)]*)\)", sql_text("queries", "merge_map"))
    assert inserted is not None
    assert {name.strip() for name in inserted[1].split(",")} == columns
