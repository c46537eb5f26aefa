"""Whether a predicate always picks the same records. Pure.

A replay continued after a kill evaluates it again, and knows sent records by offset: a different
answer would write a record twice, or leave one out. So what may change it is refused, by name.
"""

import re
from collections.abc import Callable, Iterator

from sqlglot import exp, parse
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from mirrorlake.errors import InputError, first_line

#: Functions of Spark whose result depends on more than their arguments.
CHANGING = frozenset(
    """
    rand random randn randstr uniform uuid shuffle now current_timestamp current_date curdate
    current_time localtimestamp getdate current_timezone monotonically_increasing_id
    spark_partition_id _metadata input_file_name input_file_block_start input_file_block_length
    current_user user session_user current_catalog current_database current_schema version
    java_method reflect try_reflect is_account_group_member is_member secret try_secret
    """.split()
)
#: The parts of a SELECT with a condition, by sqlglot's names.
_PARTS = frozenset({"expressions", "from_", "from", "where", "kind"})
#: Functions that depend on the current time only if called without an argument.
_OF_NOW = frozenset({"unix_timestamp"})
#: Words for the current time in literals such as DATE 'today'.
_WORDS_OF_NOW = frozenset({"now", "today", "tomorrow", "yesterday"})
_LITERALS = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})


def check_predicate(where: str, is_known: Callable[[str], bool]) -> None:
    """Raise InputError for a predicate that may change its answer, or is invalid.

    Args:
        where: in Spark's SQL, about the columns of `records`.
        is_known: whether a function, by its name in lower case, is one of the engine's own.
    """
    tree = _parsed(where)
    if changing := next(_changing(where), None):
        raise InputError(
            f"the predicate: {changing} does not give the same answer each time; name the value "
            "instead"
        )
    kinds = {exp.Query: "a query", exp.AggFunc: "an aggregate", exp.Window: "a window"}
    for kind, what in kinds.items():
        if (node := tree.find(kind)) is not None:
            raise InputError(
                f"the predicate: {_text(node)} is {what}; it may only look at the columns of one "
                "record"
            )
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower().startswith("ai_") or not is_known(call.name.lower()):
            raise InputError(
                f"the predicate: {call.name} is no function of Spark's own, or asks another "
                "service, so whether it gives the same answer each time is not known"
            )


def _parsed(where: str) -> exp.Expr:
    try:
        statements = parse(f"SELECT 1 FROM records WHERE {where}", dialect=Databricks)
    except (ParseError, TokenError) as error:
        reason = re.sub(r" for <class '.*?'>", "", first_line(error))  # sqlglot's name of a part
        raise InputError(f"the predicate cannot be read: {reason}") from error
    tree = statements[0] if len(statements) == 1 else None
    others = [] if tree is None else [key for key, value in tree.args.items() if value]
    if not isinstance(tree, exp.Select) or set(others) - _PARTS:
        raise InputError(
            "the predicate: give a condition as it stands behind WHERE, and nothing more"
        )
    predicate: exp.Expr = tree.args["where"].this
    return predicate


def _changing(where: str) -> Iterator[str]:
    """What may change its answer. Compares words: however a function is called, its name is one."""
    tokens = [
        token for token in Databricks().tokenize(where) if token.token_type is not TokenType.BREAK
    ]
    for at, token in enumerate(tokens):
        word, following = token.text.lower(), [other.text for other in tokens[at + 1 : at + 3]]
        if token.token_type is TokenType.STRING:
            before = tokens[at - 1].text.lower() if at else ""
            if before in _LITERALS and word.strip() in _WORDS_OF_NOW:
                yield f"{before.upper()} '{token.text}'"
        elif word in CHANGING and not (at and tokens[at - 1].text == "."):  # no field of a struct
            yield word
        elif word in _OF_NOW and following == ["(", ")"]:
            yield f"{word}()"


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="databricks")[:80]
