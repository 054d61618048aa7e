from itertools import pairwise

from gpt.data.source.wording import causes, innermost, kinds_of, listed, one_line


def raised(*errors: Exception) -> Exception:
    """The first, raised from the second, and so on."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_one_line():
    assert one_line("\n  a \t b\nc") == "a b"
    assert one_line("x" * 500) == "x" * 199 + "…"


def test_the_innermost_cause_in_the_systems_words():
    assert innermost(raised(ConnectionError("outer"), ValueError("mid"), OSError(111, "Refused"))) == "Refused"
    assert innermost(raised(ConnectionError("outer"), ValueError(""))) == "outer"
    assert innermost(ConnectionError("[Errno -2] Name unknown")) == "Name unknown"
    assert innermost(ValueError()) == "ValueError"


def test_causes_end_where_the_context_is_suppressed_and_in_a_ring():
    error, context = ValueError("a"), KeyError("b")
    error.__context__ = context
    assert causes(error) == [error, context]
    context.__context__ = error
    assert causes(error) == [error, context]
    error.__suppress_context__ = True
    assert causes(error) == [error]


def test_kinds_are_the_names_of_all_classes():
    assert {"ConnectionRefusedError", "ConnectionError", "OSError"} <= kinds_of(ConnectionRefusedError())


def test_a_long_list_is_cut():
    assert listed([1, 2]) == "1, 2"
    assert listed(range(2000), most=3) == "0, 1, 2 and 1,997 more"
    assert listed(range(20)).endswith("18, 19")
