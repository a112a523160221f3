"""What W&B is told, without what must not leave this machine: secrets, the host's name, the user's folders.

Everything on its way to W&B passes through here: configs and figures, and the files of an artifact.  A secret
that was met once is known from then on, wherever it turns up again: in a command, in what a crash printed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memsweep.record.folder import StudyFolder
from memsweep.secret import MASK, is_secret_variable, masked, masked_text

HOST = "(host)"

_SETTING = re.compile(r"""([\w.]+)(["']?(?:=|\s*:\s*))("[^"\n]*"|'[^'\n]*'|[^\s,{}\[\]"']+)""")
"""A setting in a text: of a command (`a=b`), of YAML, JSON or Hydra's braces (`a: b`)."""

_LEAST_SECRET = 8
"""Characters of the shortest secret that is looked for in other texts."""

_ORDINARY_HOST = re.compile(r"localhost|[a-z]{1,6}")
"""Names that say nothing of a machine, and are words of our own: `main`, `small`, `train`."""


class Harmless:
    """Makes things harmless.

    Args:
        folders: Folder to what is said instead of it, beside the user's home.
        environment: Where secrets may be that others print.
    """

    def __init__(self, folders: Mapping[Path, str], environment: Mapping[str, str] = os.environ) -> None:
        self._secrets: set[str] = set()
        for name, value in environment.items():
            if is_secret_variable(name):
                self._learn(value)
        places = {str(folder): text for folder, text in folders.items()}
        homes = {str(Path.home()), str(Path.home().resolve()), environment.get("HOME", "")}
        places |= {home.rstrip("/"): "~" for home in homes}
        longest_first = sorted(filter(None, places), key=len, reverse=True)
        self._places = {place: places[place] for place in longest_first}
        alternatives = "|".join(map(re.escape, longest_first))
        self._place = re.compile(rf"(?<![\w.-])(?:{alternatives})(?![\w-]|\.\w)") if alternatives else None
        hosts = {os.uname().nodename, environment.get("HOSTNAME", "")}
        telling = [re.escape(host) for host in hosts if host and not _ORDINARY_HOST.fullmatch(host)]
        self._host = re.compile(rf"(?<![\w-])(?:{'|'.join(telling)})(?![\w-])") if telling else None

    @classmethod
    def of(cls, folder: StudyFolder) -> Harmless:
        """Return what makes things of a study harmless: its folder goes by the last two of its names."""
        here = folder.path.resolve()
        return cls({here: f"{here.parent.name}/{here.name}"})

    def __call__(self, value: Any, name: str = "") -> Any:
        """Return plain data without what must stay here.

        Args:
            value: The data; keys become text.
            name: What it is the value of.
        """
        if isinstance(value, Mapping):
            return {self.text(str(key)): self(item, str(key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self(item, name) for item in value]
        if not isinstance(value, str):
            return value
        if masked(value, name) == MASK:
            self._learn(value)
            return MASK
        return self.text(value)

    def text(self, text: str) -> str:
        """Return a text without what must stay here: settings in it count by their names."""
        return self.known(_SETTING.sub(self._setting, text))

    def known(self, text: str) -> str:
        """Return a text of any language without what is known to be a secret, a home or the host."""
        text = masked_text(text)
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        if self._place is not None:
            text = self._place.sub(lambda found: self._places[found[0]], text)
        return text if self._host is None else self._host.sub(HOST, text)

    def lines(self, lines: Iterable[str]) -> str:
        """Return lines of JSON without what must stay here."""
        found = (self(json.loads(line)) for line in lines if line.strip())
        return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in found)

    def _setting(self, found: re.Match[str]) -> str:
        name, between, value = found.groups()
        bare = value.strip("\"'")
        is_prose = ":" in between and len(bare) < _LEAST_SECRET  # where colons are too
        if is_prose or masked(bare, name) != MASK:
            return found[0]
        self._learn(bare)
        return f"{name}{between}{value.replace(bare, MASK)}"

    def _learn(self, secret: str) -> None:
        """Look for a secret elsewhere too, if it can be told from ordinary words."""
        has_both = re.search(r"\d", secret) and re.search(r"[A-Za-z]", secret)
        if len(secret) >= _LEAST_SECRET and has_both:
            self._secrets.add(secret)
