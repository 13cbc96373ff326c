"""The text of the sticky comment."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.github.comment_sections import Comment, Origin, Revision, Section, marker, section_key
from agenteval.github.comment_update import parse
from agenteval.report.parts import ReportTooLargeError, characters

MARK = marker()
WIDE = 10_000_000

keys = st.builds(section_key, st.sampled_from(["ci", "nightly"]), st.text(max_size=10), st.text(max_size=5))
#: Text with what matters to the grammar, beside anything else.
texts = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            [
                "<!-- agenteval:comment id=default -->",
                "<!-- agenteval:section key=a rev=1.1.1 -->",
                "<!--agenteval:end key=a-->",
                "<!-- AgentEval:more -->",
                "<!-- agenteval:less -->",
                "<!--\nagenteval:running -->",
                "<!--",
                "-->",
                "<details>",
                "| a | b |",
                "",
                " ",
                "text 🙂",
                "\r\n",
                "\r",
                "\u2028",
                "\ud800",
            ]
        ),
        max_size=12,
    ).map("\n".join),
)
numbers = st.integers(0, 10**12)
revisions = st.builds(Revision, numbers, numbers, numbers)
verdicts = st.sampled_from([None, "failed", "error", "unproven", "passed"])
origins = st.one_of(st.none(), st.builds(Origin.of, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5)))
sections = st.builds(Section, keys, texts, st.one_of(st.none(), texts), revisions, texts, verdicts, origins)
comments = st.builds(Comment, st.just(MARK), st.lists(sections, max_size=6).map(tuple))


@given(comments)
def test_a_rendered_comment_is_parsed_back_whatever_its_line_ends(comment: Comment) -> None:
    text = comment.render(WIDE)
    assert parse(text) == parse(" \n" + text.replace("\n", "\r\n") + "\r\n") == comment


@given(comments, st.integers(1_500, 4_000))
def test_the_limit_is_kept_and_every_section_that_stays_is_read_back(comment: Comment, limit: int) -> None:
    own = comment.sections[0].key if comment.sections else ""
    newest = max(comment.sections, key=lambda section: (section.revision, section.key), default=None)
    text = comment.render(limit, own)

    assert characters(text) <= limit
    read = parse(text)
    assert read is not None
    assert {section.key for section in read.sections} <= {section.key for section in comment.sections}
    assert newest is None or read.section(newest.key)
    assert read.render(limit, own) == text


@given(st.lists(sections, max_size=8, unique_by=lambda section: (section.key, section.revision)), st.randoms())
def test_merging_gives_the_same_in_any_order(given_sections: list[Section], chance: random.Random) -> None:
    shuffled = chance.sample(given_sections, len(given_sections))
    half = len(shuffled) // 2
    empty = Comment(MARK)

    merged = empty.merged(given_sections)

    assert empty.merged(shuffled[half:]).merged(empty.merged(shuffled[:half]).sections) == merged
    assert merged.merged(merged.sections) == merged


@given(texts, texts)
def test_no_text_can_forge_a_marker(head: str, detail: str) -> None:
    comment = Comment(MARK, (Section("a-00000000", head, detail), Section("b-00000000", "other")))

    read = parse(comment.render(WIDE))

    assert read is not None
    assert [section.key for section in read.sections] == ["a-00000000", "b-00000000"]
    assert read.section("b-00000000") == Section("b-00000000", "other")


@given(st.lists(sections, min_size=1, max_size=4), st.data())
def test_an_edit_that_loses_lines_loses_only_their_text(given_sections: list[Section], data: st.DataObject) -> None:
    lines = Comment(MARK, tuple(given_sections)).render(WIDE).split("\n")
    lost = data.draw(st.sets(st.integers(1, len(lines) - 1)))

    read = parse("\n".join(line for at, line in enumerate(lines) if at not in lost))

    assert read is not None
    assert {section.key for section in read.sections} <= {section.key for section in given_sections}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        f"text\n{MARK}",
        f"> {MARK}",
        f"{MARK} text",
        "<!-- agenteval:comment -->",
        "<!-- agenteval:section key=a rev=1.1.1 -->\ntext",
    ],
)
def test_only_a_first_line_marks_a_comment(text: str) -> None:
    assert parse(text) is None


def test_the_worst_verdict_leads() -> None:
    order = ["failed", "error", "unproven", None, "passed"]
    given_order = [Section(f"job-{n}", "head", verdict=verdict) for n, verdict in enumerate(reversed(order))]  # type: ignore[arg-type]

    comment = Comment(MARK, tuple(given_order))

    assert [section.verdict for section in comment.sections] == order
    assert parse(comment.render()) == comment


def test_a_verdict_that_somebody_wrote_is_none() -> None:
    text = Comment(MARK, (Section("a", "one", verdict="failed"),)).render().replace("=failed", "=green")

    assert parse(text) == Comment(MARK, (Section("a", "one"),))


def test_of_two_texts_that_are_equally_new_the_one_given_stays() -> None:
    here, there = Section("a", "here"), Section("a", "there")

    assert Comment(MARK, (here,)).merged([there]).sections == (there,)


def test_the_largest_detail_of_another_section_is_omitted_first_with_a_note() -> None:
    own, small, large = (
        Section(section_key("ci", name), f"head {name}", "x" * size)
        for name, size in (("own", 900), ("small", 300), ("large", 600))
    )
    comment = Comment(MARK, (own, small, large))

    text = comment.render(2_000, own.key)

    assert parse(text) == Comment(MARK, (own, small, large.without_detail()))
    assert "Detail left out to stay within GitHub's limit; see the job summary of_ `ci-large`" in text


def test_details_of_the_job_are_omitted_last() -> None:
    own, other = Section("own", "head", "x" * 900), Section("other", "head", "y" * 100)

    read = parse(Comment(MARK, (own, other)).render(800, "own"))

    assert read == Comment(MARK, (own.without_detail(), other.without_detail()))


def test_first_lines_stay_when_there_is_room_for_nothing_else() -> None:
    own, other = (Section(key, f"### <b>{key}</b>\n\n" + "x" * 1_000) for key in ("own", "other"))

    read = parse(Comment(MARK, (own, other)).render(1_600, "own"))

    assert read is not None
    assert read.section("own") == own
    assert read.section("other") == Section("other", "### other")


def test_the_oldest_section_goes_when_not_even_that_fits() -> None:
    many = [Section(f"job-{number}", f"head {number}", revision=Revision(number)) for number in range(10)]
    comment = Comment(MARK, tuple(many))

    read = parse(comment.render(600, "job-0"))

    assert read is not None
    kept = [section.key for section in read.sections]
    assert kept == [f"job-{number}" for number in range(10 - len(kept), 10)]
    assert 2 < len(kept) < 9
    # All jobs agree, or they would push out each other.
    assert parse(comment.render(600, "job-9")) == read


def test_a_limit_below_one_section_is_refused() -> None:
    with pytest.raises(ReportTooLargeError, match="50 characters"):
        Comment(MARK, (Section("a", "head"),)).render(50)


@pytest.mark.parametrize("key", ["", "a b", "a-->", "ä", "a\n", "x" * 101])
def test_a_key_that_is_invalid_in_a_marker_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not the key of a section"):
        Section(key, "head")


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
def test_keys_differ_when_their_origin_does(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    Section(section_key(*one), "head")
    if not any("\0" in part for part in one + other):
        assert (section_key(*one) == section_key(*other)) == (one == other)


@given(st.text())
def test_a_marker_is_one_html_comment_and_found_again(comment_id: str) -> None:
    mark = marker(comment_id)

    assert mark.count("-->") == mark.count("\n") + 1 == 1
    read = parse(mark)
    assert read is not None
    assert read.mark == mark


def test_markers_tell_ids_apart() -> None:
    assert marker("") == marker("  ") == marker("default")
    assert len({marker(text) for text in ("a b", "a-b", "a/b", "a", "x" * 64, "x" * 65, "x" * 66)}) == 7
