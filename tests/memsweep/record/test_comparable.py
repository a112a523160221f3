"""What must be alike for figures to be compared is named where it is not."""

from __future__ import annotations

from memsweep.record.comparable import differences


def test_equal_conditions_do_not_differ() -> None:
    assert differences({"data": "a", "machine": "b"}, {"machine": "b", "data": "a"}, "trial 0") == ()


def test_every_difference_is_named_with_both_values() -> None:
    found = differences({"data": "jsonl", "machine": "b"}, {"data": "embedded", "machine": "c"}, "trial 0")

    assert found == (
        "other data than trial 0: jsonl, not embedded",
        "other machine than trial 0: b, not c",
    )


def test_what_only_one_of_them_records_is_a_difference() -> None:
    assert differences({"torch": "2.13.0", "trl": "1.16.0"}, {"torch": "2.13.0"}, "trial 3") == (
        "other trl than trial 3: 1.16.0, not none recorded",
    )


def test_apps_that_record_nothing_are_alike() -> None:
    assert differences({}, {"data": "a"}, "trial 0") == differences({"data": "a"}, {}, "trial 0") == ()
