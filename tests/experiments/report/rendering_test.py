"""Both file formats: what is escaped, what is embedded, and that they parse."""

import base64
import hashlib
import html
import html.parser
import re

import pytest

from experiments.report import markdown, page, rendering, tables
from experiments.report.cards import card
from experiments.report.rendering import Picture
from experiments.report.tables import Mark

_EVIL = '<script>alert("1")</script> & [a](http://x.y) | `b` *c* ![d](e) $f$ \\'
_VOID = {"meta", "img"}  # tags without an end


@pytest.fixture
def content(rows):
    """A report with a text that means something to each format in every place."""
    made = page.content([card("run", rows(80.0), {}, None)])
    shown = tables.table(
        "caption <u>", ["a", "b", "c"], [["x", "", Mark(_EVIL, "good")]]
    )
    (section,) = made["cards"]
    section |= {
        "about": [("term <i>", _EVIL), ("", "- no list")],
        "tables": [shown],
        "folded": [shown._replace(caption="more <q>")],
        "missing": _EVIL,
        "pictures": [
            Picture("p.png", b"\x89PNG", "shows <v>", "alt ] <s>"),
            Picture("q.svg", b"<svg ", "", ""),
        ],
    }
    links = [("card1", "to [the] card")]
    return made | {"title": "Title <b>", "links": links, "in_short": [(_EVIL, _EVIL)]}


class _Page(html.parser.HTMLParser):
    """Tags, attributes and texts of a page; complains of tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def test_a_page_parses_and_shows_every_text_as_it_is(content):
    page = _Page(rendering.to_html(content))
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "nav",
        "ul", "li", "a", "p", "strong", "div", "table", "caption", "thead", "tbody",
        "tr", "th", "td", "span", "figure", "figcaption", "img", "details", "summary",
        "script",
    }  # fmt: skip
    # In short twice; about; two tables; what is missing.
    assert "".join(page.texts).count(_EVIL) == 6
    for text in ("shows <v>", "Title <b>", "caption <u>", "more <q>", "term <i>"):
        assert text in page.texts


def test_a_page_needs_no_other_file(content):
    page = _Page(rendering.to_html(content))
    sources = [each["src"] for each in page.all("img")]
    assert sources == [
        "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode(),
        "data:image/svg+xml;base64," + base64.b64encode(b"<svg ").decode(),
    ]
    for _, attributes in page.tags:
        assert attributes.get("href", "#").startswith("#")
        assert not attributes.keys() & {"onclick", "onload", "srcset", "action", "data"}
    (style,) = re.findall("<style>(.*)</style>", rendering.to_html(content), re.DOTALL)
    assert not re.search(r"url\(|@import|http", style)
    policy = next(each for each in page.all("meta") if "http-equiv" in each)
    assert policy["content"].startswith("default-src 'none'; img-src data:;")


def test_the_policy_allows_the_one_script_and_no_other(content):
    page = rendering.to_html(content)
    (script,) = re.findall("<script>(.*)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(each for each in _Page(page).all("meta") if "http-equiv" in each)
    (allowed,) = re.findall("script-src ([^;]*);", policy["content"])
    assert allowed == f"'sha256-{digest}'"
    assert "<button" not in page  # a header is one only where the script runs


def test_a_page_can_be_read_by_all(content):
    page = _Page(rendering.to_html(content))
    assert page.all("html") == [{"lang": "en"}]
    assert any(each.get("name") == "viewport" for each in page.all("meta"))
    assert all("alt" in each for each in page.all("img"))
    assert all("scope" in each for each in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert "prefers-color-scheme: dark" in rendering.to_html(content)
    targets = {attributes.get("id") for _, attributes in page.tags}
    assert {each["href"].removeprefix("#") for each in page.all("a")} <= targets


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("model_global", "model_global"),
        ("_a_ __b__", "\\_a\\_ \\_\\_b\\_\\_"),
        ("93.90 [90.20, 97.59]", "93.90 [90.20, 97.59]"),
        ("[a](b) [c]: d ![e]", "[a\\](b) [c\\]: d \\![e]"),
        ("<b> & </b>", "&lt;b&gt; &amp; &lt;/b&gt;"),
        ("a|b `c` *d* ~e~ $f$", "a\\|b \\`c\\` \\*d\\* \\~e\\~ \\$f\\$"),
        ("back\\slash", "back\\\\slash"),
        ("http://x.y and www.z", "http\\://x.y and www\\.z"),
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("-0.23", "-0.23"),
        ("1. a", "1\\. a"),
        ("---", "\\---"),
    ],
)
def test_markdown_shows_letters_as_they_are(text, escaped):
    assert markdown.escape(text) == escaped


@pytest.mark.parametrize(
    "text",
    [_EVIL, "_a_ __b__ a_b", "# a", "- a", "+ a", "* a", "1. a", "1) a", "---", "===",
     "~~x~~", "> q", "[x]: http://a", "<http://a.b>", "&amp; &lt;", "a\\", "\\*a\\*",
     "    code", "[ ] x", "<!-- x", "a](b", "]", "``x``", "!["],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "- {}", "| a |\n| --- |\n| {} |", "## {}"])
def test_a_markdown_parser_gets_back_the_same_letters(text, around):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    parser.enable(["table", "strikethrough"])
    page = parser.render(around.format(markdown.escape(text)))
    *_, shown = re.sub("<[^>]*>", "", page).strip().split("\n")
    assert html.unescape(shown).split() == text.split()


def test_markdown_in_brackets_cannot_end_them():
    assert markdown.escape("a](b) \\]", linked=True) == "a\\](b) \\\\\\]"


def test_markdown_refers_to_figures_and_keeps_tables_whole(content):
    text = rendering.to_markdown(content, "figures")
    assert "![alt \\] &lt;s&gt;](figures/p.png)" in text
    assert "*shows &lt;v&gt;*" in text
    assert "<script" not in text
    assert "- [to \\[the\\] card](#card1)" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[:2] == ["| a | c |", "| --- | --- |"]
    assert len(re.findall(r"(?<!\\)\|", table[2])) == 3
    assert "<summary>more &lt;q&gt;</summary>\n\n*more &lt;q&gt;*\n\n| a |" in text


def test_columns_without_content_are_left_out():
    table = tables.table(
        "t", ["a", "b", "c"], [["1", "", Mark("", "")], ["2", "", Mark("x", "")]], "c"
    )
    assert (list(table.header), table.body[0]) == (["a", "c"], ["1", Mark("", "")])


def test_every_text_is_one_line_of_printable_characters(content):
    assert rendering.clean("a\nb\x1b\u202e\ud800c") == "a b   c"
    evil = content | {"title": "a\n# b\u202e"}
    assert "<title>a # b </title>" in rendering.to_html(evil)
    assert rendering.to_markdown(evil, "f").startswith("# a # b\n")


def test_in_markdown_a_command_is_code_that_can_be_copied(content):
    command = "python -m experiments.aia '--defense=dp_sgd(clip=0.1|1|10)'"
    told = content | {"to_do": [("data", command)]}
    assert f"costs here: `{command}`" in rendering.to_markdown(told, folder="figures")
    assert "costs here: <code>python -m" in rendering.to_html(told)
    evil = content | {"to_do": [("data", "`ls` *all*")]}
    assert "\\`ls\\` \\*all\\*" in rendering.to_markdown(evil, folder="figures")
