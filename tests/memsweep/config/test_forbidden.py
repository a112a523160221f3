from __future__ import annotations

from typing import Any

import pytest

from memsweep.config.forbidden import argument_problems, leads_to_code, variable_problems
from memsweep.technique.catalogue import conf_folder, read_catalogue


@pytest.mark.parametrize(
    "name",
    [
        *(
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PYTHONHOME",
        ),
        *("PYTHONWARNINGS", "PATH", "HOME", "CC", "CXX", "CUDA_HOME", "TRITON_PTXAS_PATH", "NCCL_NET_PLUGIN"),
        *(
            "TORCHINDUCTOR_CACHE_DIR",
            "TRITON_CACHE_DIR",
            "HF_HOME",
            "TRANSFORMERS_CACHE",
            "OMP_TOOL_LIBRARIES",
        ),
        *("BASH_ENV", "GIT_SSH_COMMAND", "NCCL_CONF_FILE", "HTTPS_PROXY", "https_proxy", "HF_ENDPOINT"),
        *("MEMSWEEP_CONF", "TORCH_LOGS_OUT", "WANDB_BASE_URL", "TMPDIR"),
    ],
)
def test_no_config_sets_what_decides_which_code_is_loaded(name: str) -> None:
    assert leads_to_code(name)
    assert f"{name}=... python train.py" in "".join(variable_problems([name], "launch.environment"))


@pytest.mark.parametrize(
    "name",
    [
        *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NCCL_DEBUG", "NCCL_P2P_DISABLE", "CUDA_VISIBLE_DEVICES"),
        *("CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "MALLOC_ARENA_MAX", "TORCH_NCCL_BLOCKING_WAIT"),
        *("TOKENIZERS_PARALLELISM", "HF_TOKEN", "HF_HUB_OFFLINE", "PYTHONHASHSEED", "MKL_NUM_THREADS", "A"),
        *("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_LOGS", "KINETO_LOG_LEVEL", "CUBLAS_WORKSPACE_CONFIG"),
    ],
)
def test_what_decides_of_speed_and_memory_may_be_set(name: str) -> None:
    assert list(variable_problems([name], "launch.environment")) == []


@pytest.mark.parametrize("name", ["A; touch pwned", "A B", "1A", "A$(x)", "A\n", "é"])
def test_a_name_is_one_that_a_shell_takes(name: str) -> None:
    (said,) = variable_problems([name], "launch.environment")

    assert repr(name) in said


def test_no_technique_sets_a_variable_that_a_config_may_not() -> None:
    catalogue = read_catalogue(conf_folder())
    names = {
        name
        for technique in catalogue.techniques.values()
        for option in technique.options.values()
        for name in option.settings.get("environment", {})
    }

    assert names
    assert [name for name in names if leads_to_code(name)] == []


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"trust_remote_code": True}, "trainer.arguments.trust_remote_code"),
        ({"model_init_kwargs": {"trust_remote_code": True}}, "model_init_kwargs.trust_remote_code"),
        ({"generation_kwargs": {"trust_remote_code": "yes"}}, "generation_kwargs.trust_remote_code"),
        ({"push_to_hub": True}, "push_to_hub"),
        ({"hub_model_id": "me/mine"}, "hub_model_id"),
        ({"report_to": ["wandb"]}, "report_to"),
        ({"resume_from_checkpoint": "elsewhere"}, "resume_from_checkpoint"),
        ({"model_init_kwargs": {"attn_implementation": "someone/kernel"}}, "attn_implementation"),
    ],
)
def test_no_argument_runs_foreign_code_or_sends_something_away(arguments: dict[str, Any], path: str) -> None:
    (said,) = argument_problems(arguments, "trainer.arguments")

    assert path in said


@pytest.mark.parametrize(
    "arguments",
    [
        {"learning_rate": 1e-5, "optim": "adafactor", "max_length": 512},
        {"trust_remote_code": False, "report_to": "none", "push_to_hub": False, "hub_model_id": None},
        {"model_init_kwargs": {"attn_implementation": "sdpa", "dtype": "bfloat16"}},
        {"hub_token": "abc"},
    ],
)
def test_other_arguments_may_be_set(arguments: dict[str, Any]) -> None:
    assert list(argument_problems(arguments, "trainer.arguments")) == []
