"""Direct preference optimization: chosen and rejected, with the starting model as reference.

The reference is the model's own folder, loaded a second time; with an adapter, the model without it.
"""

from __future__ import annotations

from trl import DPOConfig, DPOTrainer

from memsweep.trainers.recipe import Recipe

RECIPE = Recipe(config_class=DPOConfig, trainer_class=DPOTrainer)
