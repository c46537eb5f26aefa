"""Whether a name in a catalog is the lake's table, by what catalogs say of names."""

from collections.abc import Mapping, Sequence

import pytest

from mirrorlake.errors import InputError, LakeError
from mirrorlake.lake.catalog_names import CatalogNames
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.registration import register_tables, same_place

ROOT = "/lakes/it's"


class Catalog:
    """Answers statements as a catalog does that has one table, `records`, and refuses one."""

    def __init__(self, detail: Mapping[str, str], refuses: str = "never") -> None:
        self.said: list[str] = []
        self._detail = detail
        self._refuses = refuses

    def run(self, text: str) -> Sequence[Mapping[str, str]]:
        self.said.append(text)
        if self._refuses in text:
            raise InputError("PERMISSION_DENIED: no")
        if text.startswith("SHOW TABLES"):
            return [{"tableName": "records"}]
        if not text.startswith("DESCRIBE"):
            return []
        columns = [("Type", "a column"), ("", ""), ("# Detailed Table Information", "")]
        rows = [*columns, *self._detail.items()]
        return [{"col_name": name, "data_type": value} for name, value in rows]


def registered(catalog: Catalog) -> dict[str, str]:
    return register_tables(CatalogNames(catalog.run, "`main`.`r`"), ROOT)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:/lakes/a b/records", "/lakes/a b/records", True),
        ("file:///lakes/records/", "/lakes/records", True),
        ("dbfs:/Volumes/main/records", "/Volumes/main/records", True),
        ("s3a://bucket/lake/records", "s3://bucket/lake/records", True),
        ("abfss://c@a.dfs.core.windows.net/l", "abfs://c@a.dfs.core.windows.net/l/", True),
        ("gs://bucket/lake/records", "gs://bucket/lake2/records", False),
        ("s3://bucket/lake", "gs://bucket/lake", False),
    ],
)
def test_places(one: str, other: str, same: bool) -> None:
    assert same_place(one, other) is same


def test_what_is_there_is_left_alone() -> None:
    catalog = Catalog({"Type": "EXTERNAL", "Location": f"file:{ROOT}/records"})
    done = registered(catalog)
    assert done.pop("records") == "kept" and set(done.values()) == {"created"}
    made = [text for text in catalog.said if text.startswith("CREATE")]
    assert len(made) == len(TABLES) - 1
    assert made[0] == (
        "CREATE TABLE IF NOT EXISTS `main`.`r`.offset_map USING DELTA LOCATION "
        "'/lakes/it\\'s/offset_map'"
    )


@pytest.mark.parametrize(
    ("detail", "what"),
    [
        ({"Type": "EXTERNAL", "Location": "s3://b/records"}, "it lies at s3://b/records;"),
        ({"Type": "EXTERNAL"}, "it lies at a place that is not shown;"),
        ({"Type": "MANAGED", "Location": "/x"}, "it is a table of the catalog itself;"),
        ({"Type": "VIEW"}, "it is a view;"),
    ],
)
def test_another_one_of_the_name(detail: Mapping[str, str], what: str) -> None:
    catalog = Catalog(detail)
    with pytest.raises(LakeError) as raised:
        registered(catalog)
    told = f"the name records of main.r is not that of the lake at {ROOT}: {what}"
    assert str(raised.value).startswith(told) and raised.value.exit_code == 2
    assert not [text for text in catalog.said if text.startswith("CREATE")]


@pytest.mark.parametrize(
    ("refused", "what"),
    [
        ("SHOW VIEWS", "the schema main.r cannot be looked into (PERMISSION_DENIED: no)"),
        ("DESCRIBE", "what it is cannot be seen (PERMISSION_DENIED: no)"),
        ("CREATE", "cannot be registered in main.r at /lakes/it's/offset_map (PERMISSION_DENIED"),
    ],
)
def test_what_is_not_allowed(refused: str, what: str) -> None:
    with pytest.raises(LakeError) as raised:
        registered(Catalog({"Type": "EXTERNAL", "Location": f"{ROOT}/records"}, refused))
    assert what in str(raised.value)
