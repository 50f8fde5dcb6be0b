"""The explorer's start: algebras and weights, and mistakes on the command line."""

import re
import socket
import sys

import httpx
import pytest

from exactformer.api import construct
from exactformer.domains.catalog import CATALOG, boolean
from exactformer.explorer import answers
from exactformer.explorer.certifier import certificate_of
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import STATIC
from tests.algebras import ALGEBRAS
from tests.explorer import SECONDS, serving
from tests.test_cli_model import exactformer


def test_weights_given_on_the_command_line(tmp_path):
    construct(boolean(), "table").save(tmp_path / "mine.safetensors")
    with (
        serving("--weights", str(tmp_path / "mine.safetensors")) as address,
        httpx.Client(base_url=address, timeout=SECONDS) as client,
    ):
        given = {"algebra": "boolean", "weights": "file/mine.safetensors"}
        assert client.get("/api/models").json()["first"] == given
        answer = client.post("/api/trace", json=given | {"expression": "(1&0)"})
        assert answer.json()["value"] == "0"
        proof = client.get("/api/weights", params=given).json()["certificate"]
        assert proof["verdict"] == "exact"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--weights", "9999"], "expected a file, or shipped weights such as boolean/7520"),
        (["listops", "--weights", "boolean/7520"], "holds weights for 'boolean'"),
        (["bolean"], "found 'bolean'"),
        (["--port", "99999"], "--port"),
        (["--host", "256.0.0.1"], "cannot listen on 256.0.0.1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes_on_the_command_line(arguments, words):
    assert words in start_in_vain(*arguments)


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "--port 0 takes any free one" in start_in_vain("--port", port)


def test_without_the_servers_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in ("server", "connections"):
        monkeypatch.delitem(sys.modules, f"exactformer.explorer.{name}", raising=False)
    assert "uvicorn: pip install 'exactformer[explore]'" in start_in_vain()


def start_in_vain(*arguments: str) -> str:
    status, printed, errors = exactformer("explore", "--no-browser", *arguments)
    assert (status, printed) == (2, "")
    return errors


@pytest.mark.parametrize("weights", ["7520", "fitted", "boolean/7520", "random/12"])
def test_every_name_that_other_commands_take(weights):
    choices = Choices(boolean(), weights)
    subject = choices.subject(*choices.first)
    assert subject.file.algebra == boolean()
    assert subject.weights_name in (weights, f"file/{weights.split('/')[-1]}")


def test_an_algebra_of_ones_own():
    own = next(
        algebra for algebra in ALGEBRAS if not algebra.ordered and algebra.name not in CATALOG
    )
    choices = Choices(own)
    assert choices.first == (own.name, "constructed")
    subject = choices.subject(own.name, "constructed")
    example = answers.models(choices)["algebras"][-1]["examples"]["expression"]
    answer = answers.trace(subject, example)
    assert answer["value"] == answer["expected"]
    assert choices.weights(own.name)[-1] == "random/0"


def test_a_certificate_is_computed_once():
    choices = Choices()
    subject = choices.subject("boolean", "7520")
    assert choices.subject("boolean", "7520") is subject
    assert subject.certificate(certificate_of) is subject.certificate(certificate_of)


def test_the_files_hold_nothing_from_elsewhere():
    """The page names no address but the name of the SVG format."""
    for path in STATIC.iterdir():
        addresses = set(re.findall(r"https?://[^\"'\s>)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}
