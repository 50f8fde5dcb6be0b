"""The picture of a half adder in docs/circuits.md shows the run of that program."""

import re
from pathlib import Path
from xml.etree import ElementTree

import exactformer as ef
from exactformer.trace import ProgramTrace
from tests.programs import HALF_ADDER

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "half-adder.svg"
SVG = "{http://www.w3.org/2000/svg}"


def shown() -> ElementTree.Element:
    return ElementTree.fromstring(PICTURE.read_text())


def traced() -> ProgramTrace:
    return ef.load("boolean/7520").trace_program(HALF_ADDER)


def place(group: ElementTree.Element) -> tuple[float, float]:
    """From where to where the box of a statement reaches."""
    box = group.find(f"{SVG}rect")
    assert box is not None
    return float(box.attrib["x"]), float(box.attrib["x"]) + float(box.attrib["width"])


def test_statements_with_their_values_end_in_the_columns_of_their_iterations():
    picture, trace = shown(), traced()
    columns = {t.text: float(t.attrib["x"]) for t in picture.iter() if t.get("class") == "column"}
    assert list(columns) == ["start", *(f"iteration {i + 1}" for i in range(trace.iterations))]
    groups = {group.attrib["data-name"]: group for group in picture.iter(f"{SVG}g")}
    assert set(groups) == {statement.name for statement in trace.statements}
    for statement in trace.statements:
        texts = {
            text.attrib["class"]: text.text for text in groups[statement.name].iter(f"{SVG}text")
        }
        wanted = {"name": statement.name, "value": statement.value, "text": statement.text}
        assert {name: texts[name] for name in wanted} == wanted
        left, right = place(groups[statement.name])
        within = [i for i, middle in enumerate(columns.values()) if left < middle < right]
        first = min(statement.start + 1, statement.end)
        assert within == [*range(first, statement.end + 1)]


def test_wires_lead_from_each_name_to_its_uses():
    picture, trace = shown(), traced()
    names = [statement.name for statement in trace.statements]
    groups = {group.attrib["data-name"]: group for group in picture.iter(f"{SVG}g")}
    drawn = [path.attrib for path in picture.iter(f"{SVG}path")]
    wires = {(wire["data-from"], wire["data-to"]) for wire in drawn}
    assert wires == {(names[a], names[b]) for a, b in trace.wires}
    for wire in drawn:
        numbers = [float(number) for number in re.findall(r"[\d.]+", wire["d"])]
        assert numbers[0] == place(groups[wire["data-from"]])[1]
        assert numbers[-2] == place(groups[wire["data-to"]])[0]
