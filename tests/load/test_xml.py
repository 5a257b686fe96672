"""XML reading: what well-formed documents give, and that nothing else gets through, whatever the bytes."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load import xml
from fkd.load.xml import Comment, Element, Text, parse_xml

# XML 1.0, production [2] Char, without the line ends and blanks that readers normalise.
CHARACTERS = st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff")


def parse(text: str) -> Element:
    return parse_xml(text.encode(), "arm.urdf")


def refusal(data: bytes) -> BundleRefused:
    with pytest.raises(BundleRefused) as caught:
        parse_xml(data, "arm.urdf")
    error = caught.value
    assert error.data["file"] == "arm.urdf"
    assert error.message.startswith(f"arm.urdf:{error.data['line']}: ")
    return error


def outcome(data: bytes) -> Element | BundleRefused:
    """What reading gives: a document or a refusal; any other exception fails the test."""
    try:
        return parse_xml(data, "arm.urdf")
    except BundleRefused as error:
        return error


# -- what is read ------------------------------------------------------------------------------------------------------


def test_elements_keep_tag_order_attributes_and_line() -> None:
    root = parse('<robot name="r">\n  <b z="1"\n     a="2"/>\n<!-- why -->  text <x:c/>\n\n<b/></robot>')
    assert (root.tag, root.line, root.file) == ("robot", 1, "arm.urdf")
    assert [(e.tag, e.line) for e in root.elements()] == [("b", 2), ("x:c", 4), ("b", 6)]
    assert list(root.elements()[0].attributes.items()) == [("z", "1"), ("a", "2")]
    assert [c.value for c in root.children if isinstance(c, Comment)] == [" why "]
    assert "text" in "".join(c.value for c in root.children if isinstance(c, Text))


def test_the_line_of_an_element_is_where_it_starts() -> None:
    root = parse('<robot>\r\n<joint\r\nname="a"\r\n/>\n<link/></robot>')
    assert [e.line for e in root.elements()] == [2, 5]


def test_prefixes_need_no_declaration() -> None:
    root = parse('<robot xmlns:a="b"><gazebo:plugin controller:x="1"/><a:c/></robot>')
    assert [e.tag for e in root.elements()] == ["gazebo:plugin", "a:c"]
    assert root.elements()[0].attributes == {"controller:x": "1"}


def test_processing_instructions_and_cdata_are_no_elements() -> None:
    root = parse("<?xml-model href='x'?><!-- a --><robot><?y z?><![CDATA[<link/>]]></robot><!-- b -->")
    assert root.elements() == []


@given(st.text(CHARACTERS), st.text(CHARACTERS))
def test_any_attribute_and_text_reads_back(value: str, text: str) -> None:
    root = parse(f"<robot a={quoteattr(value)}>{escape(text)}</robot>")
    assert root.attributes == {"a": value}
    assert "".join(c.value for c in root.children if isinstance(c, Text)) == text


def test_white_space_in_attributes_becomes_blanks_unless_it_is_written_as_a_reference() -> None:
    assert parse('<r a="1\t2\r\n3&#10;4&#x9;5"/>').attributes["a"] == "1 2 3\n4\t5"


# -- encodings ---------------------------------------------------------------------------------------------------------

NAME = '<robot name="Bras_à_six_axes"/>'


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ("", NAME.encode()),
        ("", b"\xef\xbb\xbf" + NAME.encode()),
        ("UTF-8", NAME.encode()),
        ("utf-8", b"\xef\xbb\xbf" + NAME.encode()),
        ("utf8", NAME.encode()),
        ("UTF_8", b"\xef\xbb\xbf" + NAME.encode()),
        ("ISO-8859-1", NAME.encode("latin-1")),
        ("latin-1", NAME.encode("latin-1")),
        ("windows-1252", NAME.encode("cp1252")),
        ("iso-8859-15", NAME.encode("iso-8859-15")),
    ],
)
def test_bytes_are_read_as_they_declare(declared: str, data: bytes) -> None:
    if declared:
        mark = data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
        data = mark + f'<?xml version="1.0" encoding="{declared}"?>\n'.encode() + data.removeprefix(mark)
    assert parse_xml(data, "arm.urdf").attributes["name"] == "Bras_à_six_axes"


@pytest.mark.parametrize("declaration", ["", '<?xml version="1.0" encoding="UTF-16"?>\n', '<?xml version="1.0"?>\n'])
@pytest.mark.parametrize(("codec", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
def test_utf_16_of_either_byte_order(declaration: str, codec: str, mark: bytes) -> None:
    root = parse_xml(mark + (declaration + NAME).encode(codec), "arm.urdf")
    assert root.attributes["name"] == "Bras_à_six_axes"
    assert root.line == (2 if declaration else 1)


@pytest.mark.parametrize(
    "data",
    [
        b'<?xml version="1.0" encoding="UTF-8"?>\n' + NAME.encode("latin-1"),
        NAME.encode("latin-1"),
        b'<?xml version="1.0" encoding="UTF-16"?>\n' + NAME.encode(),
        b'<?xml version="1.0" encoding="US-ASCII"?>\n' + NAME.encode(),
        NAME.encode("utf-32"),
        b"\xff\xfe" + NAME.encode("utf-16-be"),
    ],
)
def test_bytes_that_are_not_what_they_declare_are_refused(data: bytes) -> None:
    assert refusal(data).reason == "xml-malformed"


@pytest.mark.parametrize(
    "name",
    ["klingon", "rot13", "hex", "zip", "undefined", "utf-7", "shift_jis", "gbk", "idna", "punycode",
     "mbcs", "x" * 300],
)  # fmt: skip
def test_encodings_that_cannot_be_read_are_refused(name: str) -> None:
    error = refusal(f'<?xml version="1.0" encoding="{name}"?><robot name="'.encode() + b'\xe9\x82"/>')
    assert error.reason == "xml-malformed"


# -- what is refused ---------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{n} "' + 10 * f"&l{n - 1};" + '">' for n in range(1, 12))


@pytest.mark.parametrize(
    "head",
    [
        "<!DOCTYPE robot>",
        '<!DOCTYPE robot SYSTEM "robot.dtd">',
        '<!DOCTYPE robot [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE robot [<!ENTITY % p SYSTEM "x"> %p;]>',
        f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE robot [<!ATTLIST joint type CDATA "fixed">]>',
    ],
)
def test_document_types_are_refused_before_they_can_expand(head: str) -> None:
    error = refusal(f'<?xml version="1.0"?>\n\n{head}\n<robot name="&l11;"/>'.encode())
    assert (error.reason, error.data["line"]) == ("xml-doctype", 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("  \n ", 2),
        ("robot", 1),
        ("<robot>\n<link>\n</robot>", 3),
        ("<robot>\n<link/>\n", 3),
        ("<robot/>\n<robot/>", 2),
        ('<robot>\n<link name="a" name="b"/></robot>', 2),
        ("<robot>\n<link name=a/></robot>", 2),
        ('<robot>\n<link name="<"/></robot>', 2),
        ("<robot>\n\n&ome;</robot>", 3),
        ('<robot>\n\n<link name="&ome;"/></robot>', 3),
        ("<robot>\n&#0;</robot>", 2),
        ("<robot>\n\x00</robot>", 2),
        ("<robot>\n<!-- a -- b --></robot>", 2),
        ('\n<?xml version="1.0"?><robot/>', 2),
        ("<robot>\n<![CDATA[ </robot>", 2),
    ],
)
def test_malformed_documents_name_their_line(text: str, line: int) -> None:
    error = refusal(text.encode())
    assert (error.reason, error.data["line"]) == ("xml-malformed", line)


def test_depth_is_limited() -> None:
    def nested(depth: int) -> str:
        return "<a>" * depth + "</a>" * depth

    parse(nested(xml.MAX_DEPTH))
    assert refusal(nested(xml.MAX_DEPTH + 1).encode()).reason == "xml-too-big"
    assert refusal(b"<a>" * 1_000_000).reason == "xml-too-big"


def test_attributes_are_limited_in_number_and_size() -> None:
    def many(count: int) -> str:
        return "<robot " + " ".join(f'a{n}="1"' for n in range(count)) + "/>"

    parse(many(xml.MAX_ATTRIBUTES))
    assert refusal(many(xml.MAX_ATTRIBUTES + 1).encode()).reason == "xml-too-big"
    parse(f'<robot a="{"x" * xml.MAX_VALUE}"/>')
    assert refusal(f'<robot a="{"x" * (xml.MAX_VALUE + 1)}"/>'.encode()).reason == "xml-too-big"


def test_text_comes_in_one_piece_up_to_a_limit() -> None:
    text = "${a\n" * (xml.MAX_VALUE // 4)
    for inner in (text, text[:-4] + "<![CDATA[<]]>", text[:9000] + "<?x y?>" + text[9000:]):
        (found,) = parse(f"<robot>{inner}<link/></robot>").children[:-1]
        assert isinstance(found, Text)
        assert len(found.value) in (len(text), len(text) - 3)
    assert refusal(f"<robot>{text}\n</robot>".encode()).reason == "xml-too-big"
    assert refusal(f"<robot>\n{'x' * (xml.MAX_VALUE + 1)}</robot>".encode()).reason == "xml-too-big"


def test_elements_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 10)
    parse(f"<robot>{'<a/>' * 9}</robot>")
    error = refusal(f"<robot>\n{'<a/>' * 10}</robot>".encode())
    assert (error.reason, error.data["line"]) == ("xml-too-big", 2)


@given(st.binary(max_size=200))
@example(b"<" * 100)
@example(b'<?xml version="1.0" encoding=')
@example(b"\xfe\xff\x00<")
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    found = outcome(data)
    assert isinstance(found, Element) or found.data["line"] >= 1


@given(st.data())
def test_a_document_cut_or_changed_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    good = b'<?xml version="1.0" encoding="UTF-8"?>\n<robot name="r"><link name="a">&lt;</link><!-- c --></robot>'
    at = data.draw(st.integers(0, len(good)))
    changed = good[:at] + data.draw(st.binary(max_size=4)) + good[at + data.draw(st.integers(0, 4)) :]
    found = outcome(changed)
    assert isinstance(found, Element) or found.reason in ("xml-malformed", "xml-doctype")
