"""The command about circuits: facts about a file, and its outputs for a file of assignments."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from exactformer.cli.app import Device, IterationsBy, Json, WeightsName, app, one_of
from exactformer.domains.formats.blocks import Kept
from exactformer.engine.choice import EngineName


@app.command()
def circuit(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A circuit without latches: AIGER (aig or aag), or BLIF."),
    ],
    inputs: Annotated[
        Path | None,
        Option(
            help="One assignment a line in, as a 0 or 1 for each input; one line of outputs out, "
            "in the order of FILE. - reads standard input. Without it, facts are printed."
        ),
    ] = None,
    weights: WeightsName = "constructed",
    engine: Annotated[
        EngineName,
        Option(
            **one_of(EngineName),
            help="fast: the tables of certified weights, 64 assignments a machine word; model: the "
            "transformer itself; auto: fast if the weights are certified, else model.",
        ),
    ] = "auto",
    iterations: IterationsBy = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Print the outputs of a circuit for each line of a file or pipe of assignments.

    Weights are Boolean ones. Without --inputs: how many inputs, outputs, gates and levels it has.
    """
    from exactformer.domains.formats.netlists import read_netlist

    netlist = read_netlist(file)
    facts: dict[str, Any] = {
        "format": netlist.format,
        "inputs": len(netlist.inputs),
        "outputs": len(netlist.outputs),
        "gates": netlist.gates,
        "levels": netlist.levels,
    }
    if inputs is None:
        if (weights, engine, iterations) != ("constructed", "auto", None):
            raise BadParameter("--weights, --engine and --iterations are for --inputs FILE")
        if as_json:
            names = {"inputs": [*netlist.inputs], "outputs": [*netlist.outputs]}
            print(json.dumps(facts | names, ensure_ascii=False))
        else:
            print("\n".join(f"{name:<12}{value}" for name, value in facts.items()))
        return
    from exactformer.evaluation.circuits import Circuit, write_bits
    from exactformer.evaluation.values import Evaluator

    run = Circuit(
        netlist,
        Evaluator(netlist.program.domain, weights, engine, iterations, device=device),
    )
    with Kept[Any]() as kept:  # until all lines are known to be right
        kept.keep(run.lines(inputs))
        if not as_json:
            for block in kept:
                sys.stdout.write(write_bits(block))
            return
        names = {"inputs": [*netlist.inputs], "outputs": [*netlist.outputs]}
        facts |= names | {"engine": run.runs, "assignments": kept.count}
        if run.runs == "model":
            facts["iterations"] = run.iterations
        print(json.dumps(facts, ensure_ascii=False)[:-1], end=', "values": [')
        separator = ""
        for block in kept:
            lines = write_bits(block).split("\n")[:-1]
            sys.stdout.write(separator + ", ".join(map(json.dumps, lines)))
            separator = ", "
        print("]}")
