"""Machines, over texts and over spans: the layer, and what the certificate says of others' weights.

    python -m attacks.machines [--count N] [--seed S] [--only NUMBER]

A random machine is changed, or not, and one of its states is split in two. The weights written down
for that are run, and held against the first machine by the certificate. Whether the two machines
answer alike is decided here by itself, on the machines and not on the weights. In some weights a
number is changed besides. What breaks the claim: an answer other than that of reading one symbol
after the other; "exact" for weights that differ anywhere; another verdict than "exact" for weights
of a machine that answers alike; a counterexample that is none.
"""

import argparse
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

import exactformer as ef
from attacks.report import Report, numbered, run_alone
from exactformer.domains.machine_sampling import draw_spans
from exactformer.domains.machines import NO_STATE, Machine, ReadByMachine
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.span_machines import SpanMachine
from exactformer.model.feedforward import MLP
from tests.machines import mutated, random_machine, random_span_machine, random_texts, split

CLAIM = "What the certificate of machines calls exact is right, and what is right it calls exact."
TEXTS = 30  # random ones for each machine
SHORT = 7  # tokens up to which every text is tried, if not more than EVERY of a length
EVERY = 300


def attack(count: int, seed: int, only: int | None = None) -> Report:
    """Attack with `count` machines, or with the machine number `only`."""
    report = Report(CLAIM)
    for number in numbered(count) if only is None else [only]:
        rng = np.random.default_rng([seed, number])
        fault = _fault(rng, report)
        if fault is not None:
            report.found.append(f"machine {number} of seed {seed}: {fault}")
    return report


def _fault(rng: np.random.Generator, report: Report) -> str | None:
    first, other, made = _pair(rng)
    kind = str(rng.choice(["closed", "table"]))
    model = ef.construct(other, kind)
    texts = _texts(other, rng)
    report.count(_sort(other))
    report.count("texts", len(texts))
    if model.predict(texts) != [*map(evaluate, texts)]:
        return "an answer is not that of reading one symbol after the other"
    changed = rng.random() < 0.3
    weights = with_a_changed_number(model.weights, rng) if changed else model.weights
    held = ef.Model(first, weights)
    certificate = held.certify()
    example = certificate.counterexample
    of = f"{made}, and a number is changed" if changed else made
    report.count(f"mutants, {of}: {certificate.verdict}")
    if example is not None and held.predict([example.expression]) != [example.found]:
        return f"{example.expression} is not answered {example.found}"
    if example is not None and evaluate(example.expression) == example.found:
        return f"the counterexample {example.expression} is none"
    if changed:
        texts = [*_texts(first, rng), *_short(first)]
        if certificate.exact and held.predict(texts) != [*map(evaluate, texts)]:
            return "called exact, and wrong"
        return None
    if certificate.exact != answer_alike(first, other):
        return f"called {certificate.verdict}"
    if not certificate.exact and example is None:
        return "no counterexample"
    return None


def _pair(rng: np.random.Generator) -> tuple[ReadByMachine, ReadByMachine, str]:
    """A random machine, one with the same vocabulary that is split, or mutated and split, and which
    of the two it is, in words.
    """
    while True:
        over_spans = rng.random() < 0.5
        machine = random_span_machine(rng).machine if over_spans else random_machine(rng)
        mutant = mutated(machine, rng)
        made = "split" if mutant == machine else "mutated and split"
        other = split(mutant, rng)
        if other is not None and not over_spans:
            return machine, other, made
        if other is not None and {*other.outputs} == {*machine.outputs}:  # else other values
            return SpanMachine(machine), SpanMachine(other), made


def _sort(domain: ReadByMachine) -> str:
    if isinstance(domain, SpanMachine):
        return "machines over spans, on random trees"
    if domain.end is None:
        return "transducers: machines over texts that answer at each position"
    return "machines over texts that answer at the end"


def _texts(domain: ReadByMachine, rng: np.random.Generator) -> list[ef.Expression]:
    if isinstance(domain, Machine):
        return random_texts(domain, rng, TEXTS)
    assert isinstance(domain, SpanMachine)
    try:
        return [text for depth in range(4) for text in draw_spans(domain, depth, TEXTS // 4, rng)]
    except ValueError:  # no span holds another one
        return draw_spans(domain, 1, TEXTS, rng)


def _short(domain: ReadByMachine) -> list[ef.Expression]:
    lengths = range(1, SHORT + 1)
    return [text for n in lengths for text in islice(enumerate_length(domain, n), EVERY)]


def with_a_changed_number(weights: Any, rng: np.random.Generator) -> Any:
    """The weights with one number of the feedforward changed."""
    f = weights.f
    if isinstance(f, MLP):
        W_2 = f.W_2.clone()
        place = int(rng.integers(W_2.numel()))
        W_2.view(-1)[place] += float(rng.choice([-1, -0.4, 0.4, 1]))
        return replace(weights, f=replace(f, W_2=W_2))
    outputs = f.outputs.clone()
    place = int(rng.integers(outputs.numel()))
    outputs.view(-1)[place] = 1 - outputs.view(-1)[place]
    return replace(weights, f=replace(f, outputs=outputs.to(torch.int8)))


def answer_alike(first: ReadByMachine, other: ReadByMachine) -> bool:
    """Whether the other machine answers every text that the first one allows as that does, by going
    through all pairs of states.
    """
    ends = [_can_end(first, state) for state in range(len(first.states))]
    waiting, seen = [(first.start, other.start, True)], set()
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        p, q, empty = pair
        answer = -1 if first.end is None or empty else int(first.output_ids[p, first.end])
        if answer >= 0 and answer != other.output_ids[q, first.end]:
            return False
        for token, following in enumerate(first.next_states[p].tolist()):
            if following == NO_STATE or not ends[following]:
                continue
            if first.end is None and first.output_ids[p, token] != other.output_ids[q, token]:
                return False
            reached = int(other.next_states[q, token])
            if reached != NO_STATE:
                waiting.append((following, reached, False))
            elif first.end is not None or (first.next_states[following] != NO_STATE).any():
                return False
    return True


def _can_end(machine: ReadByMachine, state: int) -> bool:
    """Whether some text goes on from this state to its end."""
    seen, waiting = {state}, [state]
    while waiting:
        at = waiting.pop()
        if machine.end is None or machine.output_ids[at, machine.end] >= 0:
            return True
        following = {*machine.next_states[at].tolist()} - seen - {NO_STATE}
        seen |= following
        waiting += following
    return False


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--only", type=int, help="repeat this machine")
    run_alone(attack, count=40_000, parser=options)
