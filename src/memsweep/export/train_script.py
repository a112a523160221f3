"""The text of train.py: a plain script for what TRL's own command cannot say.

It reads the same config.yaml, with TRL's own parser, so that every field can be given on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import trl

from memsweep.export.examples import Examples
from memsweep.export.scores import OWN_FUNCTION, OWN_MODULE, Scores
from memsweep.export.weights import Weights
from memsweep.trainers.fields import resolved
from memsweep.trainers.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What train.py is made from.

    Attributes:
        title: The trial, in a few words.
        recipe: The trainer.
        weights: The model.
        examples: The data.
        adapter: PEFT's config; None when the whole model is trained.
        adapter_settings: What was asked of it.
        quantization: Settings of `BitsAndBytesConfig`; empty when nothing is quantized.
        scores: How completions are scored; None when there are none.
    """

    title: str
    recipe: Recipe
    weights: Weights
    examples: Examples
    adapter: Any | None = None
    adapter_settings: Mapping[str, Any] = field(default_factory=dict)
    quantization: Mapping[str, Any] = field(default_factory=dict)
    scores: Scores | None = None

    def text(self) -> str:
        """Return the script."""
        config, trainer = self.recipe.config_class.__name__, self.recipe.trainer_class.__name__
        keywords = [f"        {name}={value}," for name, value in self._keywords().items()]
        columns = self.examples.columns
        lines = [
            f'"""{_in_docstring(self.title)}',
            "",
            "    python train.py                   trains on all the data, one epoch",
            f"    python train.py --max_steps 20    stops after 20 steps; any field of {config} goes there",
            "",
            'config.yaml holds the other arguments; README.md says what was measured."""',
            "",
            "import sys",
            "",
            *self._imports(),
            "",
            f"MODEL = {self.weights.name!r}",
            "",
            "",
            "def main():",
            f"    parser = TrlParser(({config},))",
            '    (arguments,) = parser.parse_args_and_config(["--config", "config.yaml", *sys.argv[1:]])',
            *self._late_quantization(),
            f"    data = {self._loading()}",
            *([f"    data = data.select_columns({columns!r})"] if columns else []),
            f"    trainer = {trainer}(",
            *keywords,
            "    )",
            "    trainer.train()",
            "    trainer.save_model(arguments.output_dir)",
            "",
            "",
            'if __name__ == "__main__":',
            "    main()",
            "",
        ]
        return "\n".join(lines)

    def _imports(self) -> list[str]:
        config, trainer = self.recipe.config_class, self.recipe.trainer_class
        of_transformers = [
            self.weights.tokenizer_class,
            *(["BitsAndBytesConfig"] if self.quantization else []),
        ]
        lines = ["from datasets import load_dataset"]
        if self.adapter is not None:
            lines.append(f"from peft import {type(self.adapter).__name__}")
        if self.scores is not None and self.scores.module is not None:
            lines.append(f"from {OWN_MODULE} import {OWN_FUNCTION}")
        lines.append(f"from transformers import {', '.join(sorted(of_transformers))}")
        own = [config.__name__, trainer.__name__]
        if all(hasattr(trl, name) for name in own):
            lines.append(f"from trl import {', '.join([*own, 'TrlParser'])}")
        else:
            lines.append("from trl import TrlParser")
            lines.append(f"from {trainer.__module__.rpartition('.')[0]} import {', '.join(own)}")
        return lines

    def _keywords(self) -> dict[str, str]:
        revision = "" if self.weights.revision is None else f", revision={self.weights.revision!r}"
        found = {
            "model": "MODEL",
            "args": "arguments",
            "train_dataset": "data",
            "processing_class": f"{self.weights.tokenizer_class}.from_pretrained(MODEL{revision})",
        }
        if self.scores is not None:
            found["reward_funcs"] = OWN_FUNCTION if self.scores.model is None else repr(self.scores.model)
        if self.adapter is not None:
            kind = type(self.adapter)
            asked = {name: value for name, value in self.adapter_settings.items() if name != "type"}
            values = {**resolved(asked, kind), "task_type": self.recipe.task_type}
            found["peft_config"] = _call(kind.__name__, values)
        if self.quantization and self.recipe.quantization_keyword:
            found["quantization_config"] = _call("BitsAndBytesConfig", self.quantization)
        return found

    def _late_quantization(self) -> list[str]:
        """Return the lines for a trainer that takes quantization among the model's own keywords."""
        if not self.quantization or self.recipe.quantization_keyword:
            return []
        made = _call("BitsAndBytesConfig", self.quantization)
        return [
            f"    quantization = {made}",
            "    keywords = arguments.model_init_kwargs or {}",
            '    arguments.model_init_kwargs = {**keywords, "quantization_config": quantization}',
        ]

    def _loading(self) -> str:
        files = self.examples.data_files
        where = "" if files is None else f", data_files={files!r}"
        return f"load_dataset({self.examples.path!r}{where}, split={self.examples.split!r})"


def _in_docstring(text: str) -> str:
    """Return text that a docstring shows as it is, and that cannot end it."""
    return text.replace("\\", "\\\\").replace('"', "'")


def _call(name: str, values: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in values.items())})"
