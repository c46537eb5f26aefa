"""Reading properties and JSON as Kafka reads them, with the line of every key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.errors import InputError
from mirrorlake.mm2.importer.entries import SourceFile, read_json, read_properties
from mirrorlake.mm2.importer.security import parse_jaas


def properties(text: str) -> list[tuple[int | None, str, str]]:
    return [
        (entry.line, entry.key, entry.value)
        for entry in read_properties(SourceFile("f", text.encode("latin-1")))
    ]


def test_the_rules_of_java() -> None:
    text = "\ufeff".encode().decode("latin-1") + (
        "# comment\n! comment\n\n a = 1 \nb:2\r\nc\t3\nd\n"
        "e = x, \\\n    y\nf\\ g\\=h=\\u0041\\t.\na=again\nk=a\\.b\\\\.c"
    )
    assert properties(text) == [
        (4, "a", "1"),
        (5, "b", "2"),
        (6, "c", "3"),
        (7, "d", ""),
        (8, "e", "x, y"),
        (10, "f g=h", "A\t."),
        (11, "a", "again"),
        (12, "k", "a.b\\.c"),
    ]


def test_a_wrong_escape_names_the_line() -> None:
    with pytest.raises(
        InputError, match="f, line 2: .u is not followed by four hexadecimal digits"
    ):
        properties("a=1\nb=\\u12\n")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "# x\n", "\n", "k=v,\\\n  w\n"]),
            st.from_regex(r"[a-z.]{1,8}", fullmatch=True),
        )
    )
)
def test_a_line_number_is_where_the_key_stands(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"{before}{key} = 1\n" for before, key in parts)
    lines = text.split("\n")
    stored = properties(text)
    assert [key for _, key, value in stored if value == "1"] == [key for _, key in parts]
    for line, key, _ in stored:
        assert line is not None and lines[line - 1].split("=")[0].strip() == key


def test_json_in_all_its_shapes() -> None:
    text = '[{"config": {"a": 1,\n"b": true, "name": "\\"a\\": "}, "name": "n"},\n {"a": "x"}]'
    first, second = read_json(SourceFile("f.json", text.encode()))
    assert [(entry.line, entry.key, entry.value) for entry in first] == [
        (1, "a", "1"),
        (2, "b", "true"),
        (2, "name", '"a":'),
        (2, "name", ""),
    ]
    assert [(entry.line, entry.key, entry.value) for entry in second] == [(3, "a", "x")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1,}', "f.json is not valid JSON in line 1"),
        ('{"a": 1, "a": 2}', "key a is given twice"),
        ('{"a": {"b": 1}}', "f.json, line 1: a must be a string, a number, true or false"),
        ('{"a": null}', "f.json, line 1: a must be a string"),
        ('{"config": []}', "config must be an object"),
        ("[1]", "f.json holds no connector"),
    ],
)
def test_json_that_is_no_connector(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_json(SourceFile("f.json", text.encode()))


def test_no_value_shows_in_a_repr() -> None:
    file = SourceFile("f", b"sasl.jaas.config = hunter2")
    assert (
        "hunter2"
        not in f"{file} {read_properties(file)} {parse_jaas('x.Y required password=hunter2;')}"
    )


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z_]{1,8}", fullmatch=True), TEXTS, max_size=4),
    st.booleans(),
)
def test_a_jaas_line_reads_back(options: dict[str, str], ends: bool) -> None:
    quoted = [
        (name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in options.items()
    ]
    line = (
        "org.x.Module required "
        + " ".join(f'{name} = "{value}"' for name, value in quoted)
        + (";" if ends else "")
    )
    login = parse_jaas(line)
    assert (login.module, login.options) == ("Module", options)


@pytest.mark.parametrize(
    "line",
    ["", "hunter2", "x.Y maybe a=hunter2;", "x.Y required hunter2;", 'x.Y required a="hunter2;',
     "x.Y required a==hunter2", "x.Y required a=hunter2; x.Z required;"],
)  # fmt: skip
def test_what_is_no_jaas_line(line: str) -> None:
    with pytest.raises(ValueError, match="JAAS|more than one") as caught:
        parse_jaas(line)
    assert "hunter2" not in str(caught.value)
