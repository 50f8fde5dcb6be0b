"""The table of all that can be asked, with the layers in which it cannot be had, and why not.

It is the only place that refuses anything because of a notation or a way to iterate: whoever cannot
do a thing in each layer asks `require_capability` first. `docs/capabilities.md` is made from it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from exactformer.domains.belonging import no_algebra
from exactformer.domains.domain import Domain

IN_WORDS = {  # by layer
    "depth": "",
    "log": " by the logarithm",
    "plain": " in plain notation",
    "polish": " in Polish notation",
}


OF_OTHERS = frozenset(
    {"machine", "span-machine", "integers"}
)  # layers of domains that are no algebras


class Refusal(NamedTuple):
    why: str
    instead: str


class Capability(NamedTuple):
    """A capability of models or of algebras.

    what      what it is: the beginning of a message.
    reached   commands and functions that do it.
    refused   the layers in which it cannot be had.
    others    the layers of domains that are no algebras in which it can be had.
    """

    what: str
    reached: str
    refused: Mapping[str, Refusal] = {}
    others: Collection[str] = ()


_GRADIENT = Refusal(
    "values are composed by look-up, which has no gradient",
    "use iterations by the depth, in infix or prefix notation",
)
_BY_DEPTH = Refusal(
    "an algebra is learned from expressions of depth 1 and 2", "use --method staged"
)
_NEEDED = Refusal("all its parentheses are needed", "leave the share out")
_IN_PREFIX = Refusal(
    "weights are learned from spans with their parentheses",
    "train the same operators in prefix or infix notation, whose weights serve this one",
)

CAPABILITIES: dict[str, Capability] = {
    "values": Capability("values by the transformer", "`eval --engine model`", others=OF_OTHERS),
    "programs": Capability("programs of named wires", "`--program`, `model.run_program`"),
    "trace": Capability("traces", "`trace`, `model.trace`", others=OF_OTHERS),
    "page": Capability("the page", "`explore`, `trace --html`"),
    "taps": Capability(
        "intermediates, read and replaced", "`model.run`, `model.module`", others=OF_OTHERS
    ),
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
        },
    ),
    "gradients": Capability(
        "gradients through thresholds",
        "`straight_through=True`",
        dict.fromkeys(("log", "plain", "polish"), _GRADIENT),
    ),
    "causes": Capability(
        "causal graphs and interventions", "`ef.causal_graph`, `intervene`, `ef.score_circuit`"
    ),
    "activation patching": Capability("activation patching", "`interp.methods`"),
    "edge attribution": Capability(
        "edge attribution",
        "`interp.methods`",
        dict.fromkeys(("log", "plain", "polish"), _GRADIENT),
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
        },
    ),
    "certificates": Capability("certificates", "`certify`, `verify`", others=OF_OTHERS),
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
        },
    ),
    "samples": Capability("random texts and their scores", "`sample`, `score`", others=OF_OTHERS),
    "engine": Capability("the fast engine", "`eval --engine fast`, `score`"),
    "gpu": Capability(
        "the fast engine on a GPU",
        "`--device cuda`",
        {
            "polish": Refusal(
                "the kernels find spans by the parentheses in the text",
                "the engine on the CPU reads it, and so does the transformer on the GPU",
            )
        },
    ),
    "stages": Capability(
        "training in stages", "`train`, `--method sure`, `sweep`", {"polish": _IN_PREFIX}
    ),
    "end to end": Capability(
        "training end to end",
        "`train --method end-to-end`",
        {
            "plain": Refusal(_GRADIENT.why, "the methods staged and sure learn levels, too"),
            "polish": _IN_PREFIX,
        },
    ),
    "short texts": Capability(
        "training on short texts",
        "`train --method futures`, `--method beliefs`, over texts alone",
        {
            **dict.fromkeys(("depth", "log", "plain"), _BY_DEPTH),
            "polish": _IN_PREFIX,
            "span-machine": Refusal("its spans are no texts", "construct it instead"),
        },
        others=("machine",),
    ),
    "problems": Capability(
        "problems by depth",
        "`sample`, `export dataset`, `export lm-eval`, reasoning-gym, `score --predictions`",
    ),
    "parentheses": Capability(
        "a share of parentheses that are not needed",
        "`sample --parentheses`",
        {
            "depth": _NEEDED,
            "log": _NEEDED,
            "polish": Refusal("it has no parentheses", _NEEDED.instead),
        },
    ),
    "protocol": Capability("other networks under the paper's protocol", "`exactformer.protocol`"),
    "huggingface": Capability("a folder for Hugging Face", "`export huggingface`"),
    "graph": Capability(
        "a graph for other runtimes",
        "`export onnx`, `export torch`",
        {
            "polish": Refusal(
                "no graph of its layer is written yet",
                "export the same weights for prefix notation",
            )
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
        },
    ),
}


def refusal(name: str, domain: Domain, iterations: str = "depth") -> str | None:
    """Why something cannot be had for a domain with these iterations; None if it can."""
    capability, layer = CAPABILITIES[name], domain.layer(iterations)
    if layer not in capability.refused:
        return no_algebra(domain) if layer in OF_OTHERS.difference(capability.others) else None
    why, instead = capability.refused[layer]
    there = IN_WORDS.get(layer, f" in the layer {layer!r}")
    return f"{capability.what}: not for {domain.name!r}{there}, since {why}; {instead}"


def require_capability(
    name: str, domain: Domain, iterations: str = "depth", error: type[ValueError] = ValueError
) -> None:
    """Raise an error if something cannot be had for a domain with these iterations."""
    if (reason := refusal(name, domain, iterations)) is not None:
        raise error(reason)
