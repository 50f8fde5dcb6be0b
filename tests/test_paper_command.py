"""The paper's own command, and TensorBoard's logs."""

import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs import (
    ARGUMENTS,
    ROOT,
    exactformer,
    refused,
    weights,
)


def paper_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, ROOT / "run_transformer_enumerated.py", *arguments],
        **{"capture_output": True, "text": True, "cwd": cwd, "timeout": 300},
    )


APPENDIX = shlex.split(
    "--model_type boolean --seeds 8739 7520 --min_train_depth 1 --max_train_depth 2 "
    "--n_epochs 1000 --learning_rate 0.01 --wdecay 0.0 --device cpu --learnable_pe "
    "--learnable_attn --learnable_mlp --optimizer adamw --train_batch_size 500 --balanced "
    "--loss bce"
)


def test_the_papers_command_trains_end_to_end_and_its_flags_are_in_the_record(tmp_path):
    arguments = list(APPENDIX)
    arguments[arguments.index("1000")] = "20"  # epochs; too few to learn anything
    result = paper_command(*arguments, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert "certified 0 of 2" in result.stdout
    run = json.loads((tmp_path / "runs" / "boolean" / "run.json").read_text())
    assert run["seeds"] == [8739, 7520]
    flags = {"epochs": 20, "rate": 0.01, "weight_decay": 0.0, "optimizer": "adamw", "batch": 500}
    assert flags.items() <= run["recipe"].items()
    assert run["recipe"]["balanced"] is True
    assert len(weights(tmp_path / "runs" / "boolean")) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--max_train_depth": "0"}, "found 1 and 0"),
        ({"--min_train_depth": "2"}, "found 2 and 2"),
        ({"--model_type": "bolean"}, "bolean"),
        ({"--learnable_mlp": None}, "expected --learnable_mlp"),
        ({"--loss": "mse"}, "mse"),
    ],
)
def test_mistakes_in_the_papers_command(tmp_path, monkeypatch, capsys, change, words):
    arguments = list(APPENDIX)
    for flag, value in change.items():
        place = arguments.index(flag)
        if value is None:
            del arguments[place]
        else:
            arguments[place + 1] = value
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["run_transformer_enumerated.py", *arguments])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(ROOT / "run_transformer_enumerated.py"), run_name="__main__")
    assert stopped.value.code == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert words in errors
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_without_its_package(tmp_path):
    without = "import sys; sys.modules['tensorboard'] = None"
    logs, out = tmp_path / "logs", tmp_path / "out"
    message = refused(*ARGUMENTS, out, "--tensorboard", logs, before=without)
    assert "pip install 'exactformer[tensorboard]'" in message
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_writes_events(tmp_path):
    logs, out = tmp_path / "logs", tmp_path / "out"
    result = exactformer(*ARGUMENTS, out, "--seeds", "7520", "--tensorboard", logs)
    assert result.returncode == 0, result.stderr
    assert any(os.path.getsize(path) > 100 for path in logs.glob("events*"))
