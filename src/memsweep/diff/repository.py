"""The project at a commit or as it stands, read through git without a worktree and without writing to it."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memsweep.errors import ConfigError

CODE, PLUGINS = "src", "sweeper"
_WITHOUT_GIT = "without git only the working tree, trial folders and config files can be compared"


@dataclass(frozen=True, slots=True)
class Project:
    """A folder that holds conf/ and, in a checkout, the code that reads it.

    Attributes:
        root: The folder.
        conf: Of its configuration, as a path within it.
    """

    root: Path
    conf: str = "conf"

    @property
    def kinds(self) -> Mapping[str, str]:
        """What decides of a composed config: folder to the suffix of the files that do."""
        return {self.conf: ".yaml", f"{CODE}/memsweep": ".py", f"{PLUGINS}/hydra_plugins": ".py"}

    def matters(self, path: str) -> bool:
        """Tell whether a file, named as within the project, decides of a composed config."""
        return any(
            path.startswith(f"{folder}/") and path.endswith(kind) for folder, kind in self.kinds.items()
        )

    def commit(self, ref: str) -> str | None:
        """Return the commit that a git ref means; None if there is none.

        Raises:
            ConfigError: If git cannot be asked.
        """
        asked = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return asked.stdout.decode().strip() if asked.returncode == 0 else None

    def is_in_git(self) -> bool:
        """Tell whether git knows the project."""
        try:
            return _git(self.root, "rev-parse", "--git-dir").returncode == 0
        except ConfigError:
            return False

    def refs(self) -> list[str]:
        """Return the names of branches and tags."""
        asked = _git(
            self.root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags"
        )
        return asked.stdout.decode().split()

    def files(self, commit: str | None) -> dict[str, str]:
        """Return path to hash of each file that decides of a composed config.

        Args:
            commit: At that commit; None: as they are in the working tree, known to git or not.

        Raises:
            ConfigError: If there is no configuration.
        """
        found = self._files_now() if commit is None else self._files_at(commit)
        if f"{self.conf}/config.yaml" not in found:
            where = str(self.root) if commit is None else f"commit {commit[:12]}"
            raise ConfigError(
                f"{where} has no {self.conf}/config.yaml: run this in a checkout of the project, or set "
                "MEMSWEEP_CONF to its conf folder"
            )
        return found

    def _files_now(self) -> dict[str, str]:
        return {
            name: _blob(file.read_bytes())
            for folder, kind in self.kinds.items()
            for file in sorted((self.root / folder).rglob(f"*{kind}"))
            if self.matters(name := file.relative_to(self.root).as_posix()) and self._is_own(file)
        }

    def _is_own(self, file: Path) -> bool:
        """Tell whether a file lies in the project.

        Raises:
            ConfigError: If it is a link out of it: what is elsewhere would be read, and told as a config.
        """
        if file.resolve().is_relative_to(self.root.resolve()):
            return True
        raise ConfigError(f"{file} is a link to {file.resolve()}, out of {self.root}: remove it")

    def _files_at(self, commit: str) -> dict[str, str]:
        listed = _git(self.root, "ls-tree", "-r", "-z", commit, check=True).stdout.decode()
        pairs = (line.split("\t", 1) for line in listed.split("\0") if line)
        return {path: facts.split()[2] for facts, path in pairs if self.matters(path)}

    def _may_be(self, name: str) -> bool:
        return self.matters(name) and ".." not in name.split("/")

    def export(self, commit: str, to: Path) -> None:
        """Write the files that decide of a composed config, as they are at a commit, below a folder.

        Raises:
            ConfigError: If git cannot.
        """
        parts = sorted({path.split("/")[0] for path in self.files(commit)})
        archive = _git(self.root, "archive", "--format=tar", commit, "--", *parts, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                if member.isfile() and self._may_be(member.name) and (source := tar.extractfile(member)):
                    file = to / member.name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(source.read())


def find_project(start: Path) -> Project:
    """Return the project that a folder belongs to: the nearest above it with a configuration.

    Args:
        start: Where the command was typed.

    Raises:
        ConfigError: If there is none.
    """
    start = start.resolve()
    asked = os.environ.get("MEMSWEEP_CONF")
    if asked:
        conf = Path(asked).resolve()
        if not (conf / "config.yaml").is_file():
            raise ConfigError(f"MEMSWEEP_CONF={asked} holds no config.yaml")
        top = _git(conf, "rev-parse", "--show-toplevel").stdout.decode().strip()
        root = Path(top) if top and conf.is_relative_to(top) else conf.parent
        return Project(root, conf.relative_to(root).as_posix())
    for folder in (start, *start.parents):
        if (folder / "conf" / "config.yaml").is_file():
            return Project(folder)
    raise ConfigError(
        f"no conf/config.yaml in {start} or above it: run this in a checkout of the project, or set "
        "MEMSWEEP_CONF to its conf folder"
    )


def _blob(content: bytes) -> str:
    """Return the name that git gives a file of that content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _git(folder: Path, *words: str, check: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, so that it neither writes nor asks.

    Raises:
        ConfigError: If there is no git, it refuses the repository, or (with `check`) it fails.
    """
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, env=environment, check=False
        )
    except FileNotFoundError as error:
        raise ConfigError(f"git is not installed; {_WITHOUT_GIT}") from error
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode and (check or "dubious ownership" in said):
        raise ConfigError(f"git {words[0]}: {said or f'exit code {done.returncode}'}")
    return done
