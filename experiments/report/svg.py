"""SVG files of others: refused where they do more than draw.

In a report they are images, in which nothing runs; but a report's folder holds them as
files, too, and a browser that opens one runs its scripts and follows its references.
"""

from xml.parsers import expat

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_ELEMENTS = {
    f"{_SVG} {name}"
    for name in (
        "svg", "title", "desc", "defs", "style", "g", "path", "use", "clipPath", "rect",
        "image", "pattern", "circle", "ellipse", "line", "polyline", "polygon",
        "linearGradient", "radialGradient", "stop",
    )
}  # fmt: skip
_REFERENCES = ("href", f"{_LINK} href")
_KNOWN = ("#", "data:image/png;base64,")  # a part of the file itself, or pixels in it
_STARTS = (b"<?xml ", b"<svg ")


class _Refused(Exception):
    pass


def wrong(content: bytes) -> str:
    """Why a file is not one that only draws; empty if it is one.

    It may have the elements that shapes and pixels need, refer to its own parts, and
    nothing else: no scripts, handlers, entities, styles from elsewhere or links.
    """
    if not content.startswith(_STARTS):
        return "it begins otherwise"
    parser = expat.ParserCreate("utf-8", " ")
    styles: list[str] = []
    inside: list[str] = []

    def start(name, attributes):
        if name not in _ELEMENTS:
            raise _Refused(f"it has the element {name.rpartition(' ')[2]!r:.40}")
        for key, value in attributes.items():
            _check(key, value)
        inside.append(name)

    def end(name):
        del name
        inside.pop()

    def text(data):
        if inside and inside[-1] == f"{_SVG} style":
            styles.append(data)

    def refuse(*_):
        raise _Refused("it has declarations or instructions")

    def declared(version, encoding, alone):
        del version, alone
        if encoding is not None and encoding.lower() != "utf-8":
            raise _Refused("it is no UTF-8 text")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = parser.ProcessingInstructionHandler = refuse
    parser.XmlDeclHandler = declared
    try:
        parser.Parse(content, True)
        _check("style", "".join(styles))
    except expat.ExpatError as error:
        return f"line {error.lineno} is no XML"
    except _Refused as error:
        return str(error)
    return ""


def _check(key: str, value: str) -> None:
    name = key.rpartition(" ")[2].lower()
    if name.startswith("on"):
        raise _Refused(f"it has the handler {name!r:.40}")
    if (key in _REFERENCES or name == "href") and not value.startswith(_KNOWN):
        raise _Refused("it refers to something else")
    plain = "".join(value.split()).lower()
    outside = plain.replace("url(#", "")
    if any(sign in outside for sign in ("url(", "@", "\\", "image(", "image-set(")):
        raise _Refused("it refers to something else")
