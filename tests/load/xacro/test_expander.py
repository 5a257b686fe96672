"""The expander: what each element of xacro does, what is refused and how it is said. See also test_xacro_reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkd.errors import BundleRefused
from fkd.load.xacro import Expansion, expand
from fkd.load.xacro.budget import Budget
from fkd.load.xacro.macro import parameters
from fkd.load.xacro.text import Piece, split
from fkd.load.xml import Comment, Element, Text

NS = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'


class Memory(dict[str, bytes]):
    """A bundle in memory."""

    def names(self) -> list[str]:
        return list(self)

    def read(self, path: str) -> bytes:
        if path not in self:
            raise BundleRefused(f"{path}: absent", reason="absent")
        return self[path]


def run(body: str, args: dict[str, str] | None = None, **files: str) -> Expansion:
    """Expand a document with this content; a file name's `/` and `.` are written `__` and `_`."""
    more = {n.replace("__", "/")[::-1].replace("_", ".", 1)[::-1]: t.encode() for n, t in files.items()}
    document = body if body.startswith("<?") else f"<robot {NS}>{body}</robot>"
    return expand(Memory({**more, "m.xacro": document.encode()}), "m.xacro", args)


def flat(node: Element) -> str:
    """A tree as one line: tags, attributes, text without its outer blanks."""
    inside = "".join(
        flat(c) if isinstance(c, Element) else c.value.strip() for c in node.children if not isinstance(c, Comment)
    )
    return f"<{node.tag}{''.join(f' {n}={v}' for n, v in node.attributes.items())}>{inside}</>"


def content(body: str, args: dict[str, str] | None = None, **files: str) -> str:
    return flat(run(body, args, **files).root)[len("<robot>") : -len("</>")]


def refused(body: str, args: dict[str, str] | None = None, **files: str) -> BundleRefused:
    with pytest.raises(BundleRefused) as caught:
        run(body, args, **files)
    return caught.value


# --- properties ---


def test_properties_are_computed_at_first_use_and_kept() -> None:
    body = """<xacro:property name="u" value="0.2"/><xacro:property name="len" value="${2*u}"/><a v="${len}"/>
              <xacro:property name="u" value="0.5"/><b v="${len} ${u}"/>"""
    assert content(body) == "<a v=0.4></><b v=0.4 0.5></>"


def test_eager_properties_see_the_old_value() -> None:
    body = """<xacro:property name="p" value="1"/>
              <xacro:property name="p" value="${p+1}" lazy_eval="false"/><a v="${p}"/>"""
    assert content(body) == "<a v=2></>"


def test_circular_properties_are_refused() -> None:
    error = refused('<xacro:property name="p" value="${q}"/>\n<xacro:property name="q" value="${p}"/>\n<a v="${p}"/>')
    assert error.reason == "xacro-recursion"
    assert "`p` has a circular definition" in error.message
    assert "m.xacro:3" in error.message


@pytest.mark.parametrize(("scope", "caller", "top"), [("", "-", "-"), ("parent", "1", "-"), ("global", "1", "1")])
def test_scopes(scope: str, caller: str, top: str) -> None:
    place = f'scope="{scope}"' if scope else ""
    shown = '<xacro:property name="p" default="-"/><v v="${p}"/>'
    body = f"""<xacro:macro name="set"><xacro:property name="p" value="1" {place}/></xacro:macro>
               <xacro:macro name="m"><xacro:set/>{shown}</xacro:macro><xacro:m/>{shown}"""
    assert content(body) == f"<v v={caller}></><v v={top}></>"


def test_default_and_remove() -> None:
    assert content('<xacro:property name="p" value="1"/><xacro:property name="p" default="2"/>${p}') == "1"
    assert content('<xacro:property name="p" default="2"/>${p}') == "2"
    gone = '<xacro:property name="p" value="1"/><xacro:property name="p" remove="true"/>'
    assert refused(gone + "${p}").reason == "xacro-undefined-property"
    assert refused('<xacro:property name="p" value="1" default="2"/>').reason == "xacro-property"


@pytest.mark.parametrize("name", ["1a", "a b", "a-b", "if", "__x", "", "a.b"])
def test_property_names(name: str) -> None:
    assert refused(f'<xacro:property name="{name}" value="1"/>').reason == "xacro-property"


def test_block_properties_are_evaluated_where_they_are_inserted() -> None:
    body = """<xacro:property name="b"><c v="${x}"/>t</xacro:property><xacro:property name="x" value="1"/>
              <xacro:insert_block name="b"/><xacro:property name="x" value="2"/><d><xacro:insert_block name="b"/></d>"""
    assert content(body) == "<c v=1></>t<d><c v=2></>t</>"


# --- macros ---


def test_parameters_defaults_and_forwarding() -> None:
    body = """<xacro:property name="w" value="7"/>
      <xacro:macro name="m" params="a b:=2 c='x y' w:=^ z:=^|9 d:=${1+2}">
        <v v="${a} ${b} ${c} ${w} ${z} ${d}"/></xacro:macro>
      <xacro:m a="1"/><xacro:m a="${[1]}" b="" w="0"/>"""
    assert content(body) == "<v v=1 2 x y 7 9 3></><v v=[1]  x y 0 9 3></>"


def test_defaults_are_computed_in_the_callers_scope() -> None:
    body = """<xacro:macro name="m" params="a b:=${a}"><v v="${a} ${b}"/></xacro:macro>
              <xacro:property name="a" value="outer"/><xacro:m a="inner"/>"""
    assert content(body) == "<v v=inner outer></>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\n\tc", [("a", False, None), ("b", False, None), ("c", False, None)]),
        ("a:=1 b=2 c := 3", [("a", False, "1"), ("b", False, "2"), ("c", False, "3")]),
        ("a:=^ b:=^|2 c=^|'x y'", [("a", True, None), ("b", True, "2"), ("c", True, "'x y'")]),
        ("a:=f('a b','c') b", [("a", False, "f('a b','c')"), ("b", False, None)]),
        ("a:=${x y}_z b:=$(arg q)", [("a", False, "${x y}_z"), ("b", False, "$(arg q)")]),
        ("*a **b", [("*a", False, None), ("**b", False, None)]),
        ("a:=", [("a", False, None)]),
    ],
)
def test_parameter_lists(text: str, expected: list[tuple[str, bool, str | None]]) -> None:
    assert [(p.name, p.forward, p.default) for p in parameters(text).values()] == expected


def test_blocks() -> None:
    body = """<xacro:macro name="m" params="n *one **many"><o><xacro:insert_block name="one"/></o>
                <xacro:insert_block name="many"/><xacro:insert_block name="many"/></xacro:macro>
              <xacro:property name="x" value="1"/>
              <xacro:m n="0"><!-- no block --><a v="${x}"/>nor this<b><c/>t</b></xacro:m>"""
    assert content(body) == "<o><a v=1></></><c></>t<c></>t"


def test_blocks_pass_through_nested_macros() -> None:
    body = """<xacro:macro name="inner" params="*b"><i><xacro:insert_block name="b"/></i></xacro:macro>
              <xacro:macro name="outer" params="*b">
                <xacro:inner><xacro:insert_block name="b"/></xacro:inner></xacro:macro>
              <xacro:outer><w/></xacro:outer>"""
    assert content(body) == "<i><w></></>"


def test_macros_in_macros_are_local() -> None:
    body = '<xacro:macro name="m"><xacro:macro name="n"><c/></xacro:macro><xacro:n/></xacro:macro><xacro:m/>'
    assert content(body) == "<c></>"
    assert refused(body + "<xacro:n/>").reason == "xacro-undefined-macro"


def test_recursion_as_a_loop() -> None:
    body = """<xacro:macro name="m" params="n"><v n="${n}"/><xacro:if value="${n > 1}"><xacro:m n="${n-1}"/></xacro:if>
              </xacro:macro><xacro:m n="150"/>"""
    assert content(body).count("<v") == 150


def test_call_by_name() -> None:
    body = '<xacro:macro name="m" params="x"><v v="${x}"/></xacro:macro><xacro:call macro="${\'m\'}" x="1"/>'
    assert content(body) == "<v v=1></>"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('<xacro:m lenght="1"/>', "no parameter `lenght`; did you mean `length`?"),
        ("<xacro:m><b/></xacro:m>", "parameter `length` is not given"),
        ('<xacro:m length="1"/>', "wants a block for `*b`"),
        ('<xacro:m length="1"><a/><c/></xacro:m>', "no parameter for the block <c>"),
    ],
)
def test_calls_that_do_not_fit(call: str, words: str) -> None:
    error = refused(f'<xacro:macro name="m" params="length *b"/>{call}')
    assert error.reason == "xacro-parameters"
    assert words in error.message


def test_unknown_macro_suggests() -> None:
    error = refused('<xacro:macro name="arm"/><xacro:amr/>')
    assert error.reason == "xacro-undefined-macro"
    assert "did you mean `arm`" in error.message
    assert "did you mean `property`" in refused("<xacro:propery/>").message


# --- conditions, elements, attributes ---


@pytest.mark.parametrize(
    ("value", "hit"),
    [
        ("${3*0}", 0),
        ("0", 0),
        ("true", 1),
        ("True", 1),
        ("${False}", 0),
        ("${[]}", 0),
        ("${'false'}", 0),
        ("${None}", 0),
        ("0.0", None),
        ("yes", None),
        ("", None),
        ("1.3", None),
        ("${0.0}", 0),
        ("${0.5}", 1),
        ("${'0.0'}", None),
        (" 1 ", 1),
    ],
)
def test_conditions(value: str, hit: int | None) -> None:
    body = f'<xacro:if value="{value}"><a/></xacro:if><xacro:unless value="{value}"><b/></xacro:unless>'
    if hit is None:
        assert refused(body).reason == "xacro-condition"
    else:
        assert content(body) == ("<a></>" if hit else "<b></>")


def test_what_is_skipped_is_not_looked_at() -> None:
    assert content('<xacro:if value="0"><xacro:nope/>${1/0}<xacro:include filename="no"/></xacro:if>') == ""


def test_element_and_attribute() -> None:
    body = """<xacro:macro name="m" params="n"><xacro:element xacro:name="${n}" k="${1}"><xacro:attribute name="${n}_x"
              value="${2}"/><c/></xacro:element></xacro:macro><xacro:m n="joint"/>"""
    assert content(body) == "<joint k=1 joint_x=2><c></></>"
    assert content('<xacro:element xacro:name="xacro:if" value="1"><q/></xacro:element>') == "<q></>"
    for bad in ('<xacro:element xacro:name="a b"/>', "<xacro:element/>", '<a><xacro:attribute name="" value="1"/></a>'):
        assert refused(bad).reason == "xacro-attribute"


def test_comments_pass_untouched() -> None:
    root = run('<!-- ${1/0} <xacro:include filename="$(find no)/x"/> --><a/>').root
    assert [c.value for c in root.children if isinstance(c, Comment)] == [
        ' ${1/0} <xacro:include filename="$(find no)/x"/> '
    ]


# --- texts ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("a",)),
        ("${1}", (Piece("1", True, 0),)),
        ("a ${b}$(arg c)", ("a ", Piece("b", True, 0), Piece("arg c", False, 0))),
        ("$${a}", ("${", "a}")),
        ("$$${a}", ("$${", "a}")),
        ("$", ("$",)),
        ("a$b $", ("a", "$", "b ", "$")),
        ("\n\n${1}", ("\n\n", Piece("1", True, 2))),
        ("${'$(arg x)'}", (Piece("'$(arg x)'", True, 0),)),
    ],
)
def test_split(text: str, expected: tuple[object, ...]) -> None:
    assert split(text) == expected


@given(st.text(st.sampled_from("${}()ab\n"), max_size=12))
def test_escaped_text_comes_back(text: str) -> None:
    """Doubling what could start a piece gives the text itself back."""
    if "$$" in text:
        return
    escaped = text.replace("${", "$${").replace("$(", "$$(")
    root = run(f"<a v='{escaped}'/>".replace("\n", "&#10;")).root
    assert root.elements()[0].attributes["v"] == text


def test_arguments() -> None:
    body = """<xacro:arg name="a" default="${1+1}"/><xacro:arg name="b" default="$(arg a)x"/>
              <v v="$(arg a) $(arg b) ${xacro.arg('a')*2} ${2*'$(arg a)'}"/>
              <xacro:property name="p" value="$(arg a)"/>${p*2}"""
    assert content(body) == "<v v=2 2x 22 22></>4"
    assert content(body, {"a": "5"}) == "<v v=5 5x 55 55></>10"
    error = refused("$(arg lenght)", {"length": "1"})
    assert (error.reason, "did you mean `length`" in error.message) == ("xacro-undefined-arg", True)
    assert refused('<xacro:arg name="a"/>').reason == "xacro-undefined-arg"
    assert [f.code for f in run("<a/>", {"typo": "1"}).findings] == ["xacro-unused-arg"]


def test_substitutions() -> None:
    assert content(
        "$(eval k * 2) $(eval flag) $(optenv HOME some thing) $(optenv HOME)", {"k": "5", "flag": "true"}
    ) == ("10 True some thing")
    for text in ("$(env HOME)", "$(anon x)", "$(cwd)"):
        assert refused(text).reason == "xacro-environment"
    assert "did you mean `$(arg k)`" in refused("$(k)", {"k": "1"}).message


def test_characters_that_xml_cannot_hold() -> None:
    for text in (r"${'\x00'}", r"${'\ud800'}"):
        assert refused(f"<a>{text}</a>").reason == "xacro-expression"


# --- files ---


def test_includes_are_relative_to_the_file_that_includes() -> None:
    files = {
        "d__one_xacro": f"<z {NS} xmlns:s='u'><xacro:include filename='two.xacro'/>"
        "<xacro:include filename='../m2.xml'/></z>",
        "d__two_xacro": "<z><two/></z>",
        "m2_xml": "<z><three/></z>",
    }
    result = run('<xacro:include filename="d/one.xacro"/>', **files)
    assert flat(result.root) == "<robot xmlns:s=u><two></><three></></>"
    assert result.files == ("m.xacro", "d/one.xacro", "d/two.xacro", "m2.xml")


def test_name_spaces() -> None:
    one = f"""<z {NS}><xacro:property name="v" value="1"/>
      <xacro:macro name="m" params="p:=2"><q v="${{v}} ${{p}}"/></xacro:macro></z>"""
    start = '<xacro:include filename="x.xacro" ns="N"/><xacro:property name="v" value="9"/>'
    assert content(start + '<a v="${N.v} ${v}"/><xacro:N.m p="${v}"/>', x_xacro=one) == "<a v=1 9></><q v=1 9></>"
    assert refused(start + "<xacro:m/>", x_xacro=one).reason == "xacro-undefined-macro"
    assert refused(start + "${N.w}", x_xacro=one).reason == "xacro-undefined-property"


def test_patterns_and_optional_includes() -> None:
    files = {"a_inc": "<z><a/></z>", "b_inc": "<z><b/></z>"}
    assert content('<xacro:include filename="*.inc"/>', **files) == "<a></><b></>"
    assert content('<xacro:include filename="[b-z].inc"/>', **files) == "<b></>"
    assert content('<xacro:include filename="no.xacro" optional="true"/>') == ""
    assert [f.code for f in run('<xacro:include filename="no*"/>').findings] == ["xacro-include"]


@pytest.mark.parametrize(
    "name", ["no.xacro", "/etc/passwd", "../x", "a/../../x", "file:///etc/passwd", "", "x\u0000", "d"]
)
def test_no_file_outside(name: str) -> None:
    for text in (
        f"<xacro:include filename=\"${{'{name}'}}\"/>".replace("\0", "\\0"),
        f"${{xacro.load_yaml('{name}')}}",
    ):
        assert refused(text.replace("\0", "\\0"), d__y_yaml="1").reason in (
            "xacro-include",
            "xacro-yaml",
            "xacro-expression",
        )


PACKAGE = b"<package><name>arm_description</name></package>"


def in_packages(text: str, **more: bytes) -> Expansion:
    files = Memory(
        {
            "r/package.xml": PACKAGE,
            "r/u/m.xacro": f"<robot {NS}>{text}</robot>".encode(),
            "r/u/y.yaml": b"a: 1",
            "r/x.xacro": b"<z><x/></z>",
            "other/o.xacro": b"<z><o/></z>",
            **more,
        }
    )
    return expand(files, "r/u/m.xacro")


def test_find() -> None:
    result = in_packages("""<xacro:include filename="$(find arm_description)/x.xacro"/>
      <xacro:include filename="$(find other)/o.xacro"/>
      <m f="$(find arm_description)/m.stl" g="file://$(find arm_description)/m.stl" h="file:///$(find other)/n"/>
      <y v="${xacro.load_yaml('$(find arm_description)/u/y.yaml').a} ${xacro.load_yaml('y.yaml').a}"
        w="${load_yaml('../u/y.yaml').a}"/>
      <d v="$(dirname)/z"/><e v="${xacro.load_yaml('$(dirname)/y.yaml').a}"/>""")
    assert flat(result.root)[7:-3] == (
        "<x></><o></><m f=package://arm_description/m.stl g=package://arm_description/m.stl h=package://other/n></>"
        "<y v=1 1 w=1></><d v=package://arm_description/u/z></><e v=1></>"
    )
    assert set(result.files) == {"r/u/m.xacro", "r/package.xml", "r/x.xacro", "other/o.xacro", "r/u/y.yaml"}


def test_find_refuses() -> None:
    with pytest.raises(BundleRefused, match="did you mean `arm_description`") as caught:
        in_packages("$(find arm_descriptoin)")
    assert caught.value.reason == "xacro-package"
    twice = {"q/package.xml": PACKAGE}
    assert flat(in_packages("<a v='$(find arm_description)'/>", **twice).root)  # the one that holds the file
    more = {"p/package.xml": PACKAGE.replace(b"arm", b"b"), "q/package.xml": PACKAGE.replace(b"arm", b"b")}
    with pytest.raises(BundleRefused, match="twice"):
        in_packages("$(find b_description)", **more)


def test_plain_urdf_comes_back_as_it_is() -> None:
    data = b'<robot name="r"><link name="${a} $(find x)"/><property name="p"/></robot>'
    root = expand(Memory({"r.urdf": data}), "r.urdf").root
    assert flat(root) == "<robot name=r><link name=${a} $(find x)></><property name=p></></>"


def test_looks_like_xacro() -> None:
    result = run(
        '<?xml version="1.0"?><robot xmlns:x="http://www.ros.org/wiki/xacro"><property name="a"/>'
        '<x:if value="0"/></robot>'
    )
    assert [f.code for f in result.findings] == ["xacro-prefix", "xacro-prefix"]
    assert [f.line for f in result.findings] == [1, 1]


# --- where things come from ---


def test_elements_remember_their_text_and_their_calls() -> None:
    macros = f"""<z {NS}>
<xacro:macro name="inner" params="*b">
  <i/><xacro:insert_block name="b"/>
</xacro:macro>
<xacro:macro name="outer"><xacro:inner>
  <w/>
</xacro:inner></xacro:macro>
</z>"""
    root = run('\n<xacro:include filename="f.xacro"/>\n<xacro:outer/>\n<a/>', f_xacro=macros).root
    i, w, a = root.elements()
    assert (i.file, i.line, i.called_from) == ("f.xacro", 3, (("f.xacro", 5), ("m.xacro", 3)))
    assert (w.file, w.line, w.called_from) == ("f.xacro", 6, (("m.xacro", 3),))
    assert (a.file, a.line, a.called_from) == ("m.xacro", 4, ())


def test_errors_say_where_and_from_where() -> None:
    macros = f"""<z {NS}>
<xacro:macro name="m" params="n">
  <a v="${{nn}}"/>
</xacro:macro></z>"""
    error = refused('\n<xacro:include filename="f.xacro"/>\n<xacro:m n="1"/>', f_xacro=macros)
    assert error.message.startswith("f.xacro:3: no property or parameter `nn`")
    assert error.message.endswith(", called from m.xacro:3")
    assert (error.data["file"], error.data["line"]) == ("f.xacro", 3)


def test_errors_in_properties_and_files_say_where() -> None:
    error = refused('<xacro:property name="p" value="${q}"/>\n<a v="${p}"/>')
    assert error.message.startswith("m.xacro:1: no property or parameter `q`")
    assert error.message.endswith(", in property `p`, used at m.xacro:2")
    broken = refused('\n<xacro:include filename="f.xacro"/>', f_xacro="<z>\n<y></z>")
    assert (broken.reason, broken.data["file"], broken.data["line"]) == ("xml-malformed", "f.xacro", 2)
    assert broken.message.endswith("included from m.xacro:2")
    yaml = refused("\n\n<a>\n${xacro.load_yaml('y.yaml')}</a>", y_yaml="a: 1\nb: [")
    assert (yaml.reason, yaml.data["file"], yaml.data["line"]) == ("xacro-yaml", "y.yaml", 2)
    assert "loaded from m.xacro:4" in yaml.message


# --- limits ---


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "xacro-recursion"),
        (
            '<xacro:macro name="m"><a><xacro:if value="1"><xacro:m/></xacro:if></a></xacro:macro><xacro:m/>',
            "xacro-recursion",
        ),
        ('<xacro:include filename="m.xacro"/>', "xacro-recursion"),
        (
            '<xacro:property name="p0" value="1"/>'
            + "".join(f'<xacro:property name="p{i + 1}" value="${{p{i}+1}}"/>' for i in range(500))
            + "${p500}",
            "xacro-recursion",
        ),
        (
            '<xacro:property name="p0" value="x"/>'
            + "".join(f'<xacro:property name="p{i + 1}" value="${{p{i}}}${{p{i}}}"/>' for i in range(40))
            + "${p40}",
            "xacro-budget",
        ),
        (
            '<xacro:macro name="m" params="n"><xacro:if value="${n > 0}"><xacro:m n="${n-1}"/>'
            '<xacro:m n="${n-1}"/></xacro:if>'
            '</xacro:macro><xacro:m n="40"/>',
            "xacro-budget",
        ),
        ('<xacro:property name="s" value="${\'y\'*1000000}"/>' + "<a>${s}</a>" * 200, "xacro-budget"),
        ("<a/>" * 60_000, "xacro-budget"),
        ("${1}" * 30_000, "xacro-budget"),
        (
            '<xacro:property name="p" value="${[]}"/>'
            + '<xacro:property name="p" value="${[p]}" lazy_eval="false"/>' * 99
            + "${p}",
            "xacro-budget",
        ),
    ],
)
def test_hostile_documents(body: str, reason: str) -> None:
    document = f"<robot {NS}>{body}</robot>".encode()
    with pytest.raises(BundleRefused) as caught:
        expand(Memory({"m.xacro": document}), "m.xacro", budget=Budget(steps=60_000, memory=16 << 20))
    assert caught.value.reason == reason
    assert len(caught.value.message) < 2000


soup_text = st.sampled_from(
    [
        "",
        "x",
        "${1}",
        "${p}",
        "${m}",
        "$(arg a)",
        "$(find x)",
        "$",
        "$$",
        "${",
        "$(",
        "${1/0}",
        "a b",
        "true",
        "0",
        "*",
        "^",
        ":=",
        "x.xacro",
        "m.xacro",
        "m",
        "p",
        "b:=1",
        "*b",
        "${[1]*3}",
        "N",
    ]
)
soup_tag = st.sampled_from(
    [
        "a",
        *(
            f"xacro:{t}"
            for t in [
                "property",
                "arg",
                "macro",
                "call",
                "insert_block",
                "include",
                "if",
                "unless",
                "element",
                "attribute",
                "m",
                "N.m",
                "nope",
            ]
        ),
    ]
)
soup_name = st.sampled_from(
    [
        "name",
        "value",
        "params",
        "filename",
        "default",
        "scope",
        "lazy_eval",
        "ns",
        "optional",
        "remove",
        "macro",
        "xacro:name",
        "x",
        "p",
    ]
)


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.dictionaries(soup_name, soup_text, max_size=3).map(
        lambda d: "".join(f' {n}="{v}"' for n, v in d.items())
    )
    return st.tuples(soup_tag, attributes, st.lists(inner, max_size=4).map("".join)).map(
        lambda t: f"<{t[0]}{t[1]}>{t[2]}</{t[0]}>"
    )


@given(st.lists(st.recursive(soup_text, element, max_leaves=15), max_size=6).map("".join))
@settings(max_examples=100, deadline=None)
def test_soup_ends_in_a_tree_or_a_refusal(body: str) -> None:
    files = Memory({"m.xacro": f"<robot {NS}>{body}</robot>".encode(), "x.xacro": f"<z {NS}><xacro:m/></z>".encode()})
    found: Element | BundleRefused
    try:
        found = expand(files, "m.xacro", {"a": "1"}, budget=Budget(steps=20_000)).root
    except BundleRefused as error:
        found = error
    if isinstance(found, BundleRefused):
        assert found.reason.startswith(("xacro-", "xml-"))
        assert found.data["line"] >= 1
    else:
        assert "xacro:" not in flat(found)
        assert all(isinstance(c, (Element, Text, Comment)) for c in found.children)
