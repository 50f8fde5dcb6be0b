"""The table of all that can be asked, with the layers in which it cannot be had, and why not.

It is the only place that refuses anything because of a notation or a way to iterate: whoever cannot
do a thing in each layer asks `require_capability` first. `docs/capabilities.md` is made from it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from exactformer.domains.domain import Domain

OF_OTHERS = {  # layers of domains that are no algebras, in words
    "machine": "machines over texts",
    "span-machine": "machines over spans",
    "integers": "integers",
    "little-endian": "numbers with their lowest digit first",
    "square-root": "square roots",
    "rearrange": "rearrangements",
}
IN_WORDS = {  # by layer
    "depth": "",
    "log": " by the logarithm",
    "plain": " in plain notation",
    "polish": " in Polish notation",
    **{layer: f" ({words})" for layer, words in OF_OTHERS.items()},
}


class Refusal(NamedTuple):
    why: str
    instead: str


class Capability(NamedTuple):
    """A capability of models or of algebras.

    what      what it is: the beginning of a message.
    reached   commands and functions that do it.
    refused   the layers in which it cannot be had.
    """

    what: str
    reached: str
    refused: Mapping[str, Refusal] = {}


_GRADIENT = Refusal(
    "values are composed by look-up, which has no gradient",
    "use iterations by the depth, in infix or prefix notation",
)
_BY_DEPTH = Refusal(
    "an algebra is learned from expressions of depth 1 and 2", "use --method staged"
)
_WRITTEN_DOWN = Refusal("its weights are written down", "construct it instead")
_NEEDED = Refusal("all its parentheses are needed", "leave the share out")
_IN_PREFIX = Refusal(
    "weights are learned from spans with their parentheses",
    "train the same operators in prefix or infix notation, whose weights serve this one",
)
_NO_GRAPH = Refusal(
    "no graph of its layer is written yet", "export the same weights for prefix notation"
)


def _of_others(why: str, instead: str) -> dict[str, Refusal]:
    """One reason for every domain that is no algebra."""
    return dict.fromkeys(OF_OTHERS, Refusal(why, instead))


_FOLDER = "export huggingface has the weights with their proof"
_STEPS = "model.run shows and replaces the states that arrive"
_BOTH_WAYS = _of_others("a state is looked up and handed on by a scan, without a gradient", _STEPS)
_TREE = {
    "machine": Refusal("its states follow one another, and no span has a value", _STEPS),
    "span-machine": Refusal(
        "the effect of a symbol is a change of states, and graphs are of operators' tables", _STEPS
    ),
    **dict.fromkeys(
        ("integers", "little-endian", "square-root"),
        Refusal("a value has many digits, and a node is a single token", _STEPS),
    ),
    "rearrange": Refusal("its symbols are moved, and no span has a value", _STEPS),
}
_NO_TABLES = _of_others("its tables are those of an algebra's operators", "use --engine model")
_STAGED = {
    "machine": Refusal(
        "it learns tables of operators from depth 1 and 2",
        "use --method futures or beliefs, over short texts",
    ),
    "integers": Refusal(
        "it learns tables of operators from depth 1 and 2",
        "use --method futures, over short spans",
    ),
    **dict.fromkeys(
        ("span-machine", "little-endian", "square-root", "rearrange"),
        Refusal("it learns tables of operators from depth 1 and 2", "construct it instead"),
    ),
}

_NO_THEOREM = dict.fromkeys(
    OF_OTHERS.keys() - {"machine"},
    Refusal(
        "the theorems in Coq are about algebras and machines over texts",
        "verify checks the proof without torch",
    ),
)

CAPABILITIES: dict[str, Capability] = {
    "values": Capability("values by the transformer", "`eval --engine model`"),
    "programs": Capability(
        "programs of named wires",
        "`--program`, `model.run_program`",
        {
            "machine": Refusal("its symbols are read, and none is an operand", "use eval --file"),
            "span-machine": Refusal(
                "programs are read by the grammar of operators and operands", "use eval --file"
            ),
            **dict.fromkeys(
                ("integers", "little-endian", "square-root"),
                Refusal(
                    "a name stands for one token, and a number has many digits", "use eval --file"
                ),
            ),
            "rearrange": Refusal(
                "its symbols are moved, and none is an operand", "use eval --file"
            ),
        },
    ),
    "trace": Capability("traces", "`trace`, `model.trace`"),
    "page": Capability("the page", "`explore`, `trace --html`"),
    "taps": Capability("intermediates, read and replaced", "`model.run`, `model.module`"),
    "pattern": Capability(
        "the attention pattern",
        "`pattern=True`",
        {
            "plain": Refusal(
                "each kind of step is tried once, and the others are looked up",
                "use the same operators in infix notation",
            ),
            "polish": Refusal(
                "each kind of span is tried once, and the others are looked up",
                "use the same operators in prefix notation",
            ),
            **_of_others("a state reaches a token by a scan, not by attention", _STEPS),
        },
    ),
    "gradients": Capability(
        "gradients through thresholds",
        "`straight_through=True`",
        {**dict.fromkeys(("log", "plain", "polish"), _GRADIENT), **_BOTH_WAYS},
    ),
    "causes": Capability(
        "causal graphs and interventions",
        "`ef.causal_graph`, `intervene`, `ef.score_circuit`",
        _TREE,
    ),
    "activation patching": Capability("activation patching", "`interp.methods`", _TREE),
    "edge attribution": Capability(
        "edge attribution",
        "`interp.methods`",
        {**dict.fromkeys(("log", "plain", "polish"), _GRADIENT), **_BOTH_WAYS},
    ),
    "linear probe": Capability(
        "linear probes",
        "`interp.methods`",
        {
            "log": Refusal("the bag of a span holds values that were composed", _GRADIENT.instead),
            **dict.fromkeys(
                ("plain", "polish"),
                Refusal("no bag is brought to a position", _GRADIENT.instead),
            ),
            **_of_others("its bags hold what was read, and no value to look for", _STEPS),
        },
    ),
    "certificates": Capability("certificates", "`certify`, `verify`"),
    "kernel": Capability(
        "the extracted checker",
        "`verify --kernel`",
        {
            "plain": Refusal(
                "the theorems in Coq are about infix and prefix notation",
                "weights for the same operators in infix notation are covered",
            ),
            "polish": Refusal(
                "the theorems in Coq are about infix and prefix notation",
                "weights for the same operators in prefix notation are covered",
            ),
            **_NO_THEOREM,
        },
    ),
    "samples": Capability("random texts and their scores", "`sample`, `score`"),
    "engine": Capability("the fast engine", "`eval --engine fast`, `score`", _NO_TABLES),
    "gpu": Capability(
        "the fast engine on a GPU",
        "`--device cuda`",
        {
            "polish": Refusal(
                "the kernels find spans by the parentheses in the text",
                "the engine on the CPU reads it, and so does the transformer on the GPU",
            ),
            **_NO_TABLES,
        },
    ),
    "stages": Capability(
        "training in stages",
        "`train`, `--method sure`, `sweep`",
        {"polish": _IN_PREFIX, **_STAGED},
    ),
    "end to end": Capability(
        "training end to end",
        "`train --method end-to-end`",
        {
            "plain": Refusal(_GRADIENT.why, "the methods staged and sure learn levels, too"),
            "polish": _IN_PREFIX,
            **_STAGED,
        },
    ),
    "short texts": Capability(
        "training on short texts",
        "`train --method futures`; of machines over texts, also `--method beliefs`",
        {
            **dict.fromkeys(("depth", "log", "plain"), _BY_DEPTH),
            "polish": _IN_PREFIX,
            "span-machine": Refusal("its spans are no texts", "construct it instead"),
            "little-endian": Refusal("its weights are those of integers", "train integers instead"),
            **dict.fromkeys(("square-root", "rearrange"), _WRITTEN_DOWN),
        },
    ),
    "problems": Capability(
        "problems by depth",
        "`sample`, `export dataset`, `export lm-eval`, reasoning-gym, `score --predictions`",
        dict.fromkeys(
            ("machine", "little-endian", "square-root", "rearrange"),
            Refusal("its texts have a length and no depth", "use sample --length and score"),
        ),
    ),
    "parentheses": Capability(
        "a share of parentheses that are not needed",
        "`sample --parentheses`",
        {
            "depth": _NEEDED,
            "log": _NEEDED,
            "polish": Refusal("it has no parentheses", _NEEDED.instead),
            **dict.fromkeys(
                ("machine", "little-endian", "square-root", "rearrange"),
                Refusal("its texts have no parentheses", "leave the share out"),
            ),
            **dict.fromkeys(("span-machine", "integers"), _NEEDED),
        },
    ),
    "protocol": Capability(
        "other networks under the paper's protocol",
        "`exactformer.protocol`",
        _of_others("its problems are an algebra's, by depth", "use score on files of your own"),
    ),
    "huggingface": Capability("a folder for Hugging Face", "`export huggingface`"),
    "graph": Capability(
        "an iteration as a graph for other runtimes",
        "`export torch`",
        {
            "polish": _NO_GRAPH,
            **dict.fromkeys(
                ("integers", "little-endian", "square-root"),
                Refusal("there is no graph of its two readings yet", _FOLDER),
            ),
            "rearrange": Refusal("there is no graph of its keys yet", _FOLDER),
        },
    ),
    "whole graph": Capability(
        "the whole model as a graph for other runtimes",
        "`export onnx`",
        {
            "polish": _NO_GRAPH,
            **_of_others("such a graph gives a place among an algebra's values", _FOLDER),
        },
    ),
    "bench": Capability(
        "measurements beside other programs",
        "`bench`",
        {
            "plain": Refusal(
                "the others group by parentheses", "benchmarks/plain.py has the engine"
            ),
            "polish": Refusal(
                "the others group by parentheses", "bench the same operators in infix notation"
            ),
            **_of_others(
                "the others evaluate an algebra's expressions",
                "benchmarks/machines.py and benchmarks/integers.py have others beside those",
            ),
        },
    ),
}


def refusal(name: str, domain: Domain, iterations: str = "depth") -> str | None:
    """Why something cannot be had for a domain with these iterations; None if it can."""
    capability, layer = CAPABILITIES[name], domain.layer(iterations)
    if layer not in capability.refused:
        return None
    why, instead = capability.refused[layer]
    there = IN_WORDS.get(layer, f" in the layer {layer!r}")
    return f"{capability.what}: not for {domain.name!r}{there}, since {why}; {instead}"


def require_capability(
    name: str, domain: Domain, iterations: str = "depth", error: type[ValueError] = ValueError
) -> None:
    """Raise an error if something cannot be had for a domain with these iterations."""
    if (reason := refusal(name, domain, iterations)) is not None:
        raise error(reason)
