from __future__ import annotations

import pytest

from memsweep.errors import ConfigError
from memsweep.trainers.adapter import adapter_config, adapter_facts


def test_without_settings_the_whole_model_is_trained() -> None:
    assert adapter_config({}, "CAUSAL_LM") is None


def test_the_type_names_pefts_method() -> None:
    config = adapter_config({"type": "lora", "r": 4, "use_dora": True}, "CAUSAL_LM")

    assert (type(config).__name__, config.r, config.use_dora) == ("LoraConfig", 4, True)
    assert adapter_facts(config)["task_type"] == "CAUSAL_LM"


def test_an_unknown_type_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"type must be one of .*lora.*, got loora"):
        adapter_config({"type": "loora"}, "CAUSAL_LM")


def test_an_unknown_field_names_the_class() -> None:
    with pytest.raises(ConfigError, match=r"LoraConfig has no field rank; .*its own fields: .*lora_alpha"):
        adapter_config({"type": "lora", "rank": 4}, "CAUSAL_LM")
