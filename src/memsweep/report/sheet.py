"""What every part of the page knows: the findings, the views that a reader may pick, the reasons.

The page shows one view at a time.  What belongs to some views only carries their numbers in `data-views`,
and is hidden until one of them is picked; page.js does the picking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from memsweep.findings.find import Findings
from memsweep.findings.views import View, first_view, views
from memsweep.findings.words import reason_text
from memsweep.record.trial import TrialResult

COLORS = 6
"""How many colours there are for groups of changes; page.css names them `--group-0` and so on."""


def color_of(group: int) -> int:
    """Return the number of a group's colour.

    The first, what trains exactly the same, has one to itself.  The others share the rest; each round begins
    one further, so that marker and colour together are new.
    """
    if group == 0:
        return 0
    rest, index = COLORS - 1, group - 1
    return 1 + (index + index // rest) % rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a page is made from.

    Attributes:
        findings: What the study found.
        shown: Every view, the smallest first.
        first: Number of the view that is shown unasked.
        reasons: Trial number to why it is not on offer; empty where it is.
    """

    findings: Findings
    shown: tuple[View, ...]
    first: int
    reasons: Mapping[int, str]

    @classmethod
    def of(cls, findings: Findings) -> Sheet:
        """Return the sheet of a study."""
        shown = views(findings)
        return cls(
            findings=findings,
            shown=shown,
            first=shown.index(first_view(shown)),
            reasons={result.number: reason_text(result, findings.study) for result in findings.results},
        )

    def where(self, holds: Callable[[View], bool]) -> list[int]:
        """Return the numbers of the views that something holds for."""
        return [number for number, view in enumerate(self.shown) if holds(view)]

    def only_in(self, numbers: Iterable[int]) -> str:
        """Return the attributes of an element that belongs to some views only; none where it is in all."""
        found = sorted(set(numbers))
        if len(found) == len(self.shown):
            return ""
        hidden = "" if self.first in found else " hidden"
        return f' data-views="{" ".join(map(str, found))}"{hidden}'

    def by_view(self, texts: Mapping[int, str], tag: str = "small", style: str = "") -> str:
        """Return texts of single views as elements, each text once; empty texts are left out.

        Args:
            texts: View number to text.
            tag: The element.
            style: Its class.
        """
        numbers: dict[str, list[int]] = {}
        opening = f'<{tag} class="{style}"' if style else f"<{tag}"
        for number, text in texts.items():
            if text:
                numbers.setdefault(text, []).append(number)
        return "".join(
            f"{opening}{self.only_in(found)}>{escape(text)}</{tag}>" for text, found in numbers.items()
        )


def chips(words: Iterable[str]) -> str:
    """Return words as chips."""
    return "".join(f'<span class="chip">{escape(word)}</span>' for word in words)


def choice(result: TrialResult) -> str:
    """Return a trial's choice, one chip a word."""
    return chips(result.label.split(" "))


def command(text: str) -> str:
    """Return a command with a button that copies it."""
    button = '<button type="button" class="copy">copy</button>'
    return f'<div class="command"><code>{escape(text)}</code>{button}</div>'


def trial_link(number: int, text: str = "") -> str:
    """Return a link to a trial's row."""
    return f'<a href="#trial-{number}">{escape(text) or number}</a>'


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return names and texts as a definition list; empty texts are left out."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    return f"<dl>{rows}</dl>" if rows else ""
