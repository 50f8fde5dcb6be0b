"""Commands about weights: to make them, and to prove or to verify that they are exact."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Exit, Option

from exactformer.cli.app import (
    Device,
    Domain,
    Json,
    ProgramFile,
    RayAddress,
    WeightsName,
    app,
    read_domain,
)
from exactformer.domains.bounds import MOST_SEEDS, require
from exactformer.domains.domain import Domain as AnyDomain


@app.command()
def sweep(
    domain: Domain,
    seeds: Annotated[str, Option(help="Such as 0-9999, or 8739,7520.")],
    out: Annotated[
        Path, Option(help="Folder for weights and tables; an interrupted sweep goes on.")
    ],
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE,VALUE",
            help="Values of a constant of the recipe (or of method) to train every seed with; with "
            "several of these, every combination.",
        ),
    ] = None,
    device: Device = "cpu",
    workers: Annotated[
        int | None, Option(min=1, help="Processes; one for each core, up to 8 on cuda.")
    ] = None,
    block: Annotated[
        int | None, Option(min=1, help="Seeds trained together; 20, or 125 on cuda.")
    ] = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Train and certify many seeds under many settings: success, steps and margins by setting."""
    if ray is not None and workers is not None:
        raise ValueError("expected --workers or --ray: a cluster has as many as it has CPUs")
    grid = {name: words.split(",") for name, words in _read_constants(settings or []).items()}
    chosen = _read_seeds(seeds)

    from exactformer.sweep import read_rows, write_results
    from exactformer.sweep import sweep as run

    try:
        shards = run(
            domain, chosen, out, settings=grid, device=device, block=block, workers=workers, ray=ray
        )
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        raise Exit(130) from None
    rows = read_rows(out, shards, workers or os.cpu_count() or 1)
    written = write_results(out, rows)
    if find_spec("matplotlib"):  # an extra: the table is there without it
        from exactformer.sweep.plots import plot

        written += plot(out, rows)
    for path in written:
        print(f"written: {path}", file=sys.stderr)
    if as_json:
        print(json.dumps([{"setting": dict(row.setting), "seeds": row.records} for row in rows]))
    else:
        print((out / "sweep.md").read_text())


@app.command()
def construct(
    domain: Domain,
    out: Annotated[Path, Option(help="The safetensors file to write.")],
    weights: WeightsName = "constructed",
    as_json: Json = False,
) -> None:
    """Write weights made by hand (or shipped ones) to a file."""
    from exactformer.api import load

    load(weights, domain).save(out)
    print(json.dumps({"written": str(out)}, ensure_ascii=False) if as_json else out)


@app.command()
def train(
    domain: Domain,
    out: Annotated[Path, Option(help="Folder for the weights; an interrupted run goes on.")],
    seeds: Annotated[
        str | None, Option(help="Such as 8739,7520 or 2000-2099; the paper's ten if not given.")
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help="Of an algebra: staged; sure: the same, slower, meant to succeed at the first "
            "attempt; end-to-end: all together, as in the paper's appendix. Of a machine or of "
            "integers: futures: by asking for short texts. Of a machine: beliefs: by gradients "
            "from a sample of them."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        Option(help="How the gate learns: search, score, straight-through, gumbel; reinmax."),
    ] = None,
    constants: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another constant of the method, such as epochs=100; run.json has all of them.",
        ),
    ] = None,
    attempts: Annotated[
        int | None, Option(min=1, help="Starts that an uncertified seed gets in all.")
    ] = None,
    device: Device = "cpu",
    tensorboard: Annotated[Path | None, Option(help="Folder for TensorBoard's logs.")] = None,
    as_json: Json = False,
) -> None:
    """Train from random weights on depth 1 and 2, or on short texts, and certify every seed."""
    settings = {"estimator": estimator, "attempts": attempts, **_read_constants(constants or [])}
    asked = None if seeds is None else _read_seeds(seeds)

    from rich.console import Console

    from exactformer.training.display import TensorBoard, Terminal
    from exactformer.training.kinds import recipe_by_method
    from exactformer.training.recipe import PAPER_SEEDS
    from exactformer.training.run import summary, train_seeds

    recipe = recipe_by_method(method, domain, settings)
    chosen = PAPER_SEEDS if asked is None else asked
    boards = [TensorBoard(tensorboard, domain, recipe)] if tensorboard else []
    with Terminal(domain, recipe, chosen, Console(stderr=True)) as terminal:
        try:
            results = train_seeds(
                domain, chosen, recipe=recipe, out=out, device=device, observers=[*boards, terminal]
            )
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            raise Exit(130) from None
    print(json.dumps([r.record for r in results]) if as_json else summary(results))
    if not all(result.exact for result in results):
        raise Exit(1)


@app.command()
def certify(
    domain: Domain,
    weights: WeightsName = "constructed",
    program: ProgramFile = None,
    out: Annotated[Path | None, Option(help="Write the proof, or the fault, to a file.")] = None,
    as_json: Json = False,
) -> None:
    """Decide whether weights are exact at every depth and length.

    With --program, also say what that implies for a program, with each condition checked.
    """
    from exactformer.api import load
    from exactformer.certify import certify_program
    from exactformer.evaluation.programs import read_program

    read = None if program is None else read_program(domain, program)
    certificate = load(weights, domain).certify()
    if out is not None:
        certificate.save(out)
    shown = certificate if read is None else certify_program(certificate, read)
    print(json.dumps(shown.to_dict(), ensure_ascii=False) if as_json else shown)
    if not shown.exact:
        raise Exit(1)


@app.command()
def verify(
    proof: Annotated[Path, Argument(metavar="PROOF", help="A file that certify wrote.")],
    weights: Annotated[Path, Argument(metavar="WEIGHTS", help="The weights it is about.")],
    algebra: Annotated[
        AnyDomain | None,
        Option(
            parser=read_domain,
            metavar="DOMAIN",
            help="The algebra that both must be about: a name such as boolean, or the path of a "
            ".toml file. Without it they are about what they say "
            "themselves, which is sure only where that is built in.",
        ),
    ] = None,
    kernel: Annotated[
        bool,
        Option(
            "--kernel",
            help="Ask the checker, too, that is extracted from the machine-checked proof and built "
            "by `make proof`. What it does not cover, such as units, dense vectors and plain "
            "notation, is an error and not a rejection.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Re-check a proof in exact arithmetic, without torch and without the model's code."""
    from exactformer.domains.catalog import domain_sha256, is_built_in
    from exactformer.verify import ProofRejected
    from exactformer.verify import verify as check_proof
    from exactformer.verify.coq import PROOF, NotCovered, check_with_kernel, find_kernel

    try:
        findings = check_proof(proof, weights, algebra)
        answer = check_with_kernel(weights) if kernel else "exact"
        checker = find_kernel() if kernel else None
        if answer != "exact":
            raise ProofRejected(f"{weights}: the extracted checker {checker} says {answer}")
    except NotCovered as reason:
        raise ValueError(
            f"{weights}: not covered by the extracted checker, so neither exact nor inexact by it: "
            f"{reason}; without --kernel the proof is accepted"
        ) from None
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    except ProofRejected as rejection:
        shown = ascii(str(rejection))[1:-1]  # a file could hold what moves the cursor
        said = json.dumps({"accepted": False, "reason": shown})
        print(said if as_json else f"rejected: {shown}")
        raise Exit(1) from None
    kind, name, sha256 = findings.domain.kind, findings.domain.name, domain_sha256(findings.domain)
    origin = "as asked for" if algebra else "not built in"
    if is_built_in(findings.domain):
        origin = "built in"
    reason = f"{findings.rows} {findings.checked}, margin {float(findings.smallest_margin):.6g}"
    reason += ", and exact by the extracted checker" if checker else ""
    if as_json:
        facts = {"algebra": name, "algebra_sha256": sha256, "is": origin}
        facts |= {"checker": str(checker), "checker_proof": PROOF} if checker else {}
        print(json.dumps({"accepted": True, "reason": reason, **facts}))
        return
    print(f"accepted: {reason}\n  {kind:<8} {name} ({origin}), sha256 {sha256}")
    if checker:
        print(f"  checker  {checker}, built from the proof with sha256 {PROOF}")
    if origin == "not built in":
        print("  what that name stands for is the file's own word: --algebra ties it to yours")


def _read_constants(assignments: list[str]) -> dict[str, str]:
    pairs = [assignment.partition("=") for assignment in assignments]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise BadParameter(f"expected NAME=VALUE, found {name + equals + value!r}")
    return {name: value for name, _, value in pairs}


def _read_seeds(text: str) -> tuple[int, ...]:
    """Read seeds: numbers and ranges of numbers, both ends included."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (not dash or last.isdecimal())):
            raise BadParameter(
                f"expected numbers separated by commas, or ranges such as 0-99, found {text!r}"
            )
        require("seeds", int(last or first) - int(first), MOST_SEEDS)
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)
