from __future__ import annotations

from sample import sampled

TRAINERS = ("sft", "dpo", "grpo")


def test_every_subject_is_met_once_and_the_trainers_take_turns() -> None:
    cases = [(subject, trainer) for subject in range(6) for trainer in TRAINERS]

    kept = [cases[number] for number in sorted(sampled(cases))]

    assert [subject for subject, _ in kept] == list(range(6))
    assert [trainer for _, trainer in kept] == [*TRAINERS, *TRAINERS]


def test_a_subject_of_one_trainer_is_met_in_it() -> None:
    cases = [
        ("packing", "sft"),
        ("packing", "sft"),
        ("generation", "grpo"),
        ("both", "sft"),
        ("both", "grpo"),
    ]

    assert sampled(cases) == {0, 2, 3}
