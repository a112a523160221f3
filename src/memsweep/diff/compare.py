"""Two sides, from what was named to the review: what is composed, and which presets face each other."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from memsweep.diff.cells import size_text
from memsweep.diff.difference import Item, Section, difference
from memsweep.diff.entry import Entry
from memsweep.diff.recorded import entry_of_file, entry_of_trial
from memsweep.diff.repository import Project
from memsweep.diff.review import DEFAULT, NewPreset, Review, by_thing, changed_options, grouped, unsearched
from memsweep.diff.side import File, Side, Tree, Trial
from memsweep.diff.snapshot import Composing, Job, Snapshot, composing, machine_text, snapshot
from memsweep.errors import ConfigError
from memsweep.secret import masked_override, masked_text
from memsweep.technique.catalogue import Catalogue, read_catalogue

OnProgress = Callable[[int, int], None]
"""Called with how many presets are composed, and of how many."""

_TRAINS = ("data", "measure", "model", "readback", "trainers", "trial")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How two sides are compared.

    Attributes:
        overrides: What is typed for every preset.
        experiments: Patterns of the presets that are compared; empty for all.
        ignore: Patterns of the paths that do not count.
        resolve: Whether values are shown that others or the environment hold.
        use_cache: Whether a side may be kept from the last time.
        runs_code: Whether each side is composed by its own code; else by the code that runs here.
    """

    overrides: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    resolve: bool = False
    use_cache: bool = True
    runs_code: bool = True

    def is_ignored(self, path: str) -> bool:
        """Tell whether a path does not count."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.ignore)


_Jobs = tuple[dict[str, Job], dict[str, Job]]
"""What is composed for each side, by the name of the preset: equal names face each other."""


def review(
    sides: tuple[Side, Side],
    project: Project | None,
    wishes: Wishes,
    on_progress: OnProgress = lambda *_: None,
) -> Review:
    """Return what is different between two sides.

    Args:
        sides: As `side.sides` gives them.
        project: Where trees are composed from; None where neither is one.
        wishes: How to compare.
        on_progress: Called as presets are composed.

    Raises:
        ConfigError: If a side cannot be read at all, or no preset takes the overrides.
    """
    jobs = _paired(sides, project, wishes)
    snapshots = _snapshots(sides, project, jobs, wishes, on_progress)
    names = (sides[0].label, sides[1].label)
    old, new = (one.entries for one in snapshots)
    both = [name for name in old if name in new]
    errors = [entry.error for entry in (*old.values(), *new.values())]
    if wishes.overrides and all(errors):
        raise ConfigError("with these overrides nothing composes:\n" + "\n".join(dict.fromkeys(errors)))
    found: dict[str, Sequence[Item]] = {}
    notes: dict[str, Sequence[str]] = {}
    for name in both:
        found[name], notes[name] = difference(old[name], new[name], names, wishes.is_ignored)
    trees = [side for side in sides if isinstance(side, Tree)]
    is_whole = len(trees) == 2 and not any(tree.preset is not None or tree.is_baseline for tree in trees)
    return Review(
        names=names,
        presets=tuple(dict.fromkeys((*old, *new))),
        blocks=grouped(found),
        new=tuple(_new(name, new, wishes) for name in new if name not in old),
        gone=tuple(name for name in old if name not in new),
        options=() if len(trees) < 2 else changed_options(*snapshots, only_used=not is_whole),
        notes=(*((names, text) for text, names in by_thing(notes).items()), *_code_notes(trees, project)),
        machine=machine_text() if trees else "",
        overrides=tuple(map(masked_override, wishes.overrides)),
        broken=tuple(name for name in both if new[name].error and not old[name].error),
        unsearched=unsearched(*snapshots),
    )


def _paired(sides: tuple[Side, Side], project: Project | None, wishes: Wishes) -> _Jobs:
    jobs: _Jobs = ({}, {})
    for own, side, other in zip(jobs, sides, sides[::-1], strict=True):
        if not isinstance(side, Tree):
            continue
        assert project is not None
        if isinstance(other, Tree):
            own.update(_of_tree(side, project, wishes))
            continue
        typed: list[str] = [side.preset] if side.preset else []
        if isinstance(other, Trial) and side.preset is None:
            typed = [text for text in other.overrides() if not text.startswith("hydra.")]
        own[other.label] = Job(
            name=other.label, overrides=(*typed, *wishes.overrides), is_baseline=side.is_baseline
        )
    if wishes.experiments and not any(jobs):
        raise ConfigError(f"no preset is called {' or '.join(wishes.experiments)} on either side")
    if [len(own) for own in jobs] == [1, 1]:
        # One preset of each side: they face each other, whatever they are called.
        (first,), (second,) = jobs[0].values(), jobs[1].values()
        name = first.name if first.name == second.name else f"{first.name} -> {second.name}"
        return {name: replace(first, name=name)}, {name: replace(second, name=name)}
    return jobs


def _of_tree(tree: Tree, project: Project, wishes: Wishes) -> dict[str, Job]:
    """Return the presets of a tree: all, or the one that it or what was typed is about."""
    folder = f"{project.conf}/experiment/"
    presets = {DEFAULT: ()} | {
        path.removeprefix(folder).removesuffix(".yaml"): (f"experiment={path.removeprefix(folder)[:-5]}",)
        for path in sorted(project.files(tree.commit))
        if path.startswith(folder)
    }
    typed = next((text for text in wishes.overrides if text.startswith("experiment=")), None)
    if tree.preset is not None:
        name = tree.preset.removeprefix("experiment=") or DEFAULT
        presets = {name: (tree.preset,) if tree.preset else ()}
    elif typed is not None:
        presets = {typed.removeprefix("experiment="): ()}
    elif wishes.experiments:
        presets = {
            name: value
            for name, value in presets.items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in wishes.experiments)
        }
    return {
        name: Job(name=name, overrides=(*preset, *wishes.overrides), is_baseline=tree.is_baseline)
        for name, preset in presets.items()
    }


def _snapshots(
    sides: tuple[Side, Side], project: Project | None, jobs: _Jobs, wishes: Wishes, on_progress: OnProgress
) -> tuple[Snapshot, Snapshot]:
    is_recorded = any(not isinstance(side, Tree) for side in sides)
    total, done = sum(map(len, jobs)), [0, 0]
    lock = threading.Lock()

    def on_done(index: int) -> Callable[[int], None]:
        def told(n_done: int) -> None:
            with lock:
                done[index] = n_done
                on_progress(sum(done), total)

        return told

    found: list[Snapshot | None] = [None, None]
    with ExitStack() as stack:
        running: dict[int, Composing] = {}
        for index, side in enumerate(sides):
            if not isinstance(side, Tree):
                found[index] = _recorded(side, sides[1 - index], project)
                continue
            running[index] = stack.enter_context(
                composing(
                    project,
                    side.commit,
                    list(jobs[index].values()),
                    resolve=wishes.resolve or is_recorded,
                    use_cache=wishes.use_cache,
                    runs_code=wishes.runs_code,
                    on_done=on_done(index),
                )
            )
        for index, raw in _awaited(running).items():
            found[index] = snapshot(raw, list(jobs[index].values()), shows_resolved=wishes.resolve)
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1]


def _awaited(running: Mapping[int, Composing]) -> dict[int, Mapping[str, object]]:
    """Return the answer of each side; they compose side by side.

    Raises:
        ConfigError: If a side gave none.
    """
    found: dict[int, Mapping[str, object]] = {}
    failures: list[Exception] = []

    def wait(index: int, side: Composing) -> None:
        try:
            found[index] = side.raw()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=wait, args=pair, daemon=True) for pair in running.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return found


def _recorded(side: Side, other: Side, project: Project | None) -> Snapshot:
    """Return a trial or a file as a snapshot of one preset, called as the jobs of the other side are."""
    catalogue = _catalogue(project)
    if isinstance(side, Trial):
        entry = entry_of_trial(side.folder, catalogue)
    else:
        assert isinstance(side, File)
        entry = entry_of_file(side.path, catalogue)
    name = side.label if isinstance(other, Tree) else "the trial" if isinstance(side, Trial) else "the config"
    if not isinstance(other, Tree) and type(other) is not type(side):
        name = "the config"
    return Snapshot(entries={name: entry}, options={}, facts={})


def _catalogue(project: Project | None) -> Catalogue | None:
    if project is None:
        return None
    try:
        return read_catalogue(project.root / Path(project.conf))
    except ConfigError:
        return None


def _new(name: str, entries: Mapping[str, Entry], wishes: Wishes) -> NewPreset:
    """Return a preset of the second side only: what it makes different from the default there."""
    entry, default = entries[name], entries.get(DEFAULT)
    size = "" if entry.space is None else size_text(entry.space)
    if entry.error:
        return NewPreset(
            name=name,
            items=(Item(section=Section.COMPOSES, text=f"does not compose: {masked_text(entry.error)}"),),
        )
    if default is None or default.error:
        return NewPreset(name=name, items=(), size=size)
    items, _ = difference(default, entry, is_ignored=wishes.is_ignored)
    kept = [item for item in items if item.section in (Section.SWITCH, Section.CONFIG)]
    return NewPreset(name=name, items=tuple(kept), size=size)


def _code_notes(trees: Sequence[Tree], project: Project | None) -> list[tuple[tuple[str, ...], str]]:
    """Return a note where code that trains or measures differs: what code does is not compared."""
    if len(trees) < 2 or project is None or trees[0].commit == trees[1].commit:
        return []
    before, after = (project.files(tree.commit) for tree in trees)
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    packages = sorted(
        {path.split("/")[2] for path in changed if path.startswith("src/memsweep/")} & {*_TRAINS}
    )
    if not packages:
        return []
    return [((), f"src/memsweep/{{{','.join(packages)}}} differs too; what that code does is not compared")]
