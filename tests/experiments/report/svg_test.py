"""SVG files of others: what only draws is let through, all else is refused."""

import numpy as np
import pytest

from experiments.report import figures, svg
from experiments.report.figures.pictures import pictures

_HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink"'


def test_every_figure_of_ours_only_draws(row):
    clients = [row._replace(client=client, n=client + 5) for client in range(2500)]
    swept = [row._replace(point=f"h={point}") for point in range(2)]
    losses = [row._replace(setting=f"round_{t}", metric="test_loss") for t in range(3)]
    rows = [*clients, *swept, *losses]
    drawn = [
        *figures.all_figures(rows).values(),
        pictures({"a": np.ones((2, 4, 4, 1))}),
    ]
    assert len(drawn) == 5
    for figure in drawn:
        assert svg.wrong(figures.svg(figure)) == ""


@pytest.mark.parametrize(
    "inner",
    [
        "<title>a</title><desc>b</desc>",
        '<defs><style>*{stroke-linecap: butt}</style></defs><g id="a"/>',
        '<use href="#a"/><use x:href="#a"/><g style="fill: url(#a)" clip-path="url(#b)"/>',
        '<image x:href="data:image/png;base64,AAAA"/>',
    ],
    ids=["words", "style", "parts", "pixels"],
)
def test_shapes_words_and_pixels_may_be(inner):
    assert svg.wrong(f"{_HEAD}>{inner}</svg>".encode()) == ""


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("<script>x()</script>", "the element 'script'"),
        ('<script xmlns="http://www.w3.org/1999/xhtml"/>', "the element 'script'"),
        ("<foreignObject/>", "the element 'foreignObject'"),
        ('<a href="#b"/>', "the element 'a'"),
        ('<animate attributeName="href"/>', "the element 'animate'"),
        ('<set attributeName="onclick"/>', "the element 'set'"),
        ('<g onclick="x()"/>', "the handler 'onclick'"),
        ('<g OnLoad="x()"/>', "the handler 'onload'"),
        ('<use href="http://a.b/c.svg#d"/>', "refers to something else"),
        ('<use x:href="//a.b/c"/>', "refers to something else"),
        ('<image href="data:image/svg+xml;base64,AAAA"/>', "refers to something else"),
        ('<image x:href="javascript:x()"/>', "refers to something else"),
        ('<g style="fill: url( http://a.b )"/>', "refers to something else"),
        ("<g fill=\"url('http://a.b')\"/>", "refers to something else"),
        ("<style>@import 'http://a.b';</style>", "refers to something else"),
        ("<style>* { fill: u\\72l(http://a.b) }</style>", "refers to something else"),
        ("<style>* { fill: ur</style><style>l(//a.b) }</style>", "something else"),
        ("<?xml-stylesheet href='http://a.b'?>", "declarations or instructions"),
        ("<g>", "no XML"),
        ("&a;", "no XML"),
    ],
)
def test_whatever_does_more_is_refused(inner, message):
    assert message in svg.wrong(f"{_HEAD}>{inner}</svg>".encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins otherwise"),
        (b"\x89PNG\r\n\x1a\n", "begins otherwise"),
        (b"<html><script/></html>", "begins otherwise"),
        (b"<svg />", "the element 'svg'"),
        (
            b"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "b">]>
            <svg xmlns="http://www.w3.org/2000/svg">&a;</svg>""",
            "declarations or instructions",
        ),
        (b'<?xml version="1.0" encoding="utf-7"?><svg/>', "no UTF-8 text"),
        (b"<svg a='\xff'/>", "no XML"),
    ],
    ids=["empty", "png", "page", "no namespace", "entity", "encoding", "bytes"],
)
def test_other_files_are_refused(content, message):
    assert message in svg.wrong(content)
