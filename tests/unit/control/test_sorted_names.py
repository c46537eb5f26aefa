"""Names by what they begin with, as a look at each of them says it."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.control.sorted_names import Prefixes, SortedNames

TEXTS = st.text("ab.\U0001f600\uffff", max_size=4)


@given(st.sets(TEXTS), TEXTS)
def test_names_below_a_prefix(names: set[str], prefix: str) -> None:
    assert SortedNames(names).below(prefix) == sorted(n for n in names if n.startswith(prefix))


@given(st.sets(TEXTS), TEXTS)
def test_prefixes_of_a_name(prefixes: set[str], name: str) -> None:
    assert sorted(Prefixes(prefixes).of(name)) == sorted(p for p in prefixes if name.startswith(p))
