"""`memsweep report STUDY --wandb`: the same findings as a report in Weights & Biases."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from memsweep.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memsweep.record.folder import StudyFolder
    from memsweep.record.study import Study
    from memsweep.record.trial import TrialResult


def add_wandb(parser: argparse.ArgumentParser) -> None:
    """Let a subcommand make a report in W&B."""
    group = parser.add_argument_group("Weights & Biases")
    group.add_argument("--wandb", action="store_true", help="make a report there too, on the study's runs")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="with --wandb: write what would be sent to STUDY/wandb/report.json",
    )
    group.add_argument("--entity", help="whose report it is to be (the study's tracking.entity)")
    group.add_argument("--project", help="where its runs are (the study's tracking.project)")


def wandb_places(
    arguments: argparse.Namespace, folder: StudyFolder, study: Study, results: Sequence[TrialResult]
) -> list[tuple[str, Path | str]]:
    """Make the report if it was asked for, and return where it is, for whoever prints places.

    Raises:
        ConfigError: If the study has no runs in W&B, or no report can be made of them there.
    """
    if not arguments.wandb:
        given = {"--dry-run": arguments.dry_run, "--entity": arguments.entity, "--project": arguments.project}
        stray = [name for name, value in given.items() if value]
        if stray:
            raise ConfigError(f"{', '.join(stray)} belongs to --wandb, which was not given: type both")
        return []
    from memsweep.findings.find import find
    from memsweep.tracking.harmless import Harmless
    from memsweep.tracking.log import sync_command
    from memsweep.tracking.logged import Logged, logged_file
    from memsweep.tracking.wandb_report import WandbReport

    try:
        logged = Logged.read(folder)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{study.name} has no runs in W&B: it was run with tracking=none, or W&B failed. "
            "Run it with tracking=wandb, or with tracking=wandb_offline and `wandb sync` afterwards"
        ) from error
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    report = WandbReport(
        find(results, study),
        logged,
        Harmless.of(folder),
        project=arguments.project or logged.project,
        entity=arguments.entity or logged.entity or ("" if arguments.dry_run else None),
    )
    places: list[tuple[str, Path | str]] = []
    if arguments.dry_run:
        file = logged_file(folder).with_name("report.json")
        file.write_text(json.dumps(report.spec, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        places.append(("what W&B would be sent", file))
    else:
        places.append(("W&B report", report.save()))
    uploaded = {file.with_suffix("") for file in folder.wandb.glob("*run-*/*.wandb.synced")}
    if set(folder.wandb.glob("offline-run-*/*.wandb")) - uploaded:
        places.append(("its panels are empty until the runs are uploaded", sync_command(folder)))
    return places
