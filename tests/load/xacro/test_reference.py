"""The same small documents through the expander and the public xacro: both give the same tree, or both refuse."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from fkd.errors import BundleRefused
from fkd.load.xacro import expand
from fkd.load.xml import Element, Text, parse_xml

xacro = pytest.importorskip("xacro")

NS = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
ARGUMENTS = {"k": "5", "flag": "true"}


class Folder:
    """The files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        return [p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file()]

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def __contains__(self, path: str) -> bool:
        return path in self.names()


def tree(node: Element) -> tuple[object, ...]:
    """Tag, attributes, and children without blanks, comments and the seams between texts."""
    parts: list[object] = []
    for child in node.children:
        if isinstance(child, Element):
            parts.append(tree(child))
        elif isinstance(child, Text):
            if parts and isinstance(parts[-1], str):
                parts[-1] += child.value
            else:
                parts.append(child.value)
    texts = [" ".join(p.split()) if isinstance(p, str) else p for p in parts]
    return node.tag, dict(node.attributes), [p for p in texts if p]


def ours(folder: Path) -> object:
    try:
        return tree(expand(Folder(folder), "m.xacro", ARGUMENTS).root)
    except BundleRefused:
        return None


def theirs(folder: Path) -> object:
    xacro.substitution_args_context.clear()
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            text = xacro.process_file(str(folder / "m.xacro"), mappings=dict(ARGUMENTS)).toxml()
        except Exception:
            return None
    return tree(parse_xml(text.encode(), "reference"))


def agree(folder: Path, documents: list[str], **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for document in documents:
        (folder / "m.xacro").write_text(f"<r {NS}>{document}</r>")
        assert ours(folder) == theirs(folder), document


EXPRESSIONS = """1|1.0|0.1+0.2|2/1|7//2|-7//2|-7%3|2**-1|True|not True|None|1==1.0|'a'+'b'|'ab'*3|[1,2]+[3]|(1,)|()
dict(a=1,b='x')|[1,2,3][-1]|'abc'[::-1]|1 if 0 else 2|[i*i for i in range(4) if i%2]
list(i for i in [1,2])|len('abc')|max(1,2.5)|min([3,1])|max([1,5],key=lambda x:-x)|round(2.5)
round(2.567,2)|int('12')|int(3.9)|float('1e3')|str(1.0)|bool('')|sin(pi/2)|math.sin(math.pi)|radians(180)
degrees(pi)|atan2(1,1)|sqrt(2)|pow(2,3)|e|inf|nan|floor(2.5)|hypot(3,4)|python.abs(-1)|python.sum([1,2])
python.list(python.zip([1,2],[3,4]))|list(python.enumerate('ab'))|sorted([3,1,2])|list(range(3))|range(3)
list(map(int,'1 2'.split()))|python.any([0,1])|python.divmod(7,2)|python.isinstance(1,int)
'a b  c'.split()|'a,b'.split(',')|' a '.strip()|'aXb'.lower()|'ab'.startswith('a')|'a'.join(['x','y'])
'aab'.replace('a','b')|'x' in 'xyz'|1&lt;2&lt;3|0 or 'x'|1 is None|~3|1&lt;&lt;4|6^3|'%d-%s' % (1,'a')
'%.3f' % pi|1e16|1e-7|123456789012345678|0x10|1_000|1e400|[1,2.0,'a',None,True]|dict(a=[1,2])['a'][1]
dict(a=1).get('b',2)|list(dict(a=1).items())|{1:2}|xacro.tokenize('a,b; c')
xacro.tokenize('a,,b',',',False)|xacro.dotify(dict(a=dict(b=1))).a.b|xacro.warning('x')|xacro.fatal('x')
xacro.foo|foo|abs(1)|__import__('os')|().__class__|'a'+1|1/0|[1][5]|dict(a=1)['b']|int('x')|1 +|
  1+1  |1;2|x=1|[*[1,2],3]|'a' 'b'|'\\x41'|2 ** 3 ** 2|-2 ** 2|1,2|1&lt;'a'|True+1|int(1e20)|10**20
round(1234.5,-2)|str([1,'a'])|float(True)|$(arg k)+1|'$(arg k)'|xacro.arg('k')|comb(5,2)|factorial(5)
gcd(12,18)|prod([2,3])|trunc(2.7)|modf(1.5)|tau|dist([0,0],[3,4])""".replace("\n", "|")


def test_expressions(tmp_path: Path) -> None:
    agree(tmp_path, [f'<b v="${{{e}}}"/>' for e in EXPRESSIONS.split("|")])


VALUES = [
    "1",
    "1.0",
    " 42 ",
    "true",
    "True",
    "1e3",
    "1_000",
    "'1'",
    "'a'",
    "''",
    "",
    "0x10",
    "inf",
    "nan",
    "a b",
    "[1,2]",
    "${[1,2]}",
    "${'1'}",
    "$(arg k)",
    "x${1}",
    "${1}${2}",
    "${1} ",
    "$${x}",
    "$${x} ${1}",
    "$",
    "a$b",
    "a$",
    "$a{",
    "$$",
    "$$a",
    "$$$${x}",
    "$(arg k)$(arg k)",
    "$(arg ${'k'})",
    "${1",
    "$(arg k",
    "$(foo)",
    "$()",
    "$( arg k )",
    "$(eval 1+1)",
    "$(eval k*2)",
    "$(eval flag)",
    "$(eval 1+)",
    "$(eval [1,2][0])",
    "$(optenv FKD_NO)",
    "$(optenv FKD_NO a b)",
    "$(arg)",
    "$(arg nope)",
    "$(find)",
    "+1",
    "--1",
    "1 2",
    "00",
    "None",
    "yes",
    "TRUE",
]


def test_values(tmp_path: Path) -> None:
    """The same text as a property (used twice), as text, as condition, as a parameter and as an argument's default."""
    agree(
        tmp_path,
        [
            form.replace("@", value)
            for value in VALUES
            for form in (
                '<xacro:property name="p" value="@"/><xacro:property name="q" value="${p}"/>'
                '<b v="${p} [${q}]"/><b v="${q*2}"/>',
                '<b v="@">@</b>',
                '<xacro:if value="@"><b/></xacro:if>',
                '<xacro:macro name="m" params="x"><b v="${x*2}"/></xacro:macro><xacro:m x="@"/>',
            )
        ],
    )


MACRO = '<xacro:property name="g" value="G"/><xacro:macro name="m" params="@"><b v="${x}"/></xacro:macro>'


def test_parameters(tmp_path: Path) -> None:
    lists = [
        "x",
        "x y",
        "x:=1",
        "x=1",
        "x:=^",
        "x:=^|2",
        "x=^|2",
        "x:='a b'",
        "x:=",
        "x := 1",
        "x:=${1+1}",
        "x:=${g}",
        "x:=$(arg k)",
        "x:=${1} y:=2",
        " x\n\ty:=3 ",
        "x:=${1}_a",
        "x:=[1,2]",
        "x:=${[1, 2]}",
        "x:=-1.5",
        "*b",
        "x *b",
        "x *b **c",
        "x:=1 *b",
        "x:=$${g}",
        "x:=^|${g}",
        "x:=f('a b','c')",
        "x:='' y:=''",
    ]
    calls = [
        "<xacro:m/>",
        '<xacro:m x="7"/>',
        '<xacro:m x="7" y="8"/>',
        '<xacro:m x="7"><k/></xacro:m>',
        '<xacro:m><k v="${g}"/><l/></xacro:m>',
        '<xacro:m x="7" q="1"/>',
    ]
    outer = '<xacro:property name="x" value="outer"/>'
    agree(tmp_path, [p + MACRO.replace("@", t) + c for p in ("", outer) for t in lists for c in calls])


DOCUMENTS = [
    '<xacro:macro name="m"><b/></xacro:macro><xacro:m/><xacro:m/>',
    '<xacro:m/><xacro:macro name="m"><b/></xacro:macro>',
    '<xacro:macro name="xacro:m"><b/></xacro:macro><xacro:m/>',
    '<xacro:macro name="call"><b/></xacro:macro>',
    '<xacro:macro name="a.b"><b/></xacro:macro>',
    '<xacro:macro name="m"><xacro:macro name="n"><c/></xacro:macro><xacro:n/></xacro:macro><xacro:m/>',
    '<xacro:macro name="m"><b c="${p}"/></xacro:macro><xacro:property name="p" value="1"/><xacro:m/>'
    '<xacro:property name="p" value="2"/><xacro:m/>',
    '<xacro:property name="p" value="1" scope="parent"/>',
    '<xacro:property name="p" value="1" scope="global"/><b c="${p}"/>',
    '<xacro:property name="e" default="1"/><b c="${e}"/>',
    '<xacro:property name="p" value="1"/><xacro:property name="p" remove="true"/><b c="${p}"/>',
    '<xacro:property name="p" remove="x" value="3"/>',
    '<xacro:property name="p"><c d="${1+1}"/><e/></xacro:property><xacro:insert_block name="p"/><f>'
    '<xacro:insert_block name="p"/></f>',
    "<xacro:insert_block name='p'/>",
    '<xacro:property name="p${1}" value="1"/><b c="${p1}"/>',
    '<xacro:property name="pi" value="3"/><b c="${pi}"/>',
    '<xacro:property name="p" value="1"/><xacro:property name="p" value="${p+1}"/><b c="${p}"/>',
    '<xacro:property name="p" value="1"/><xacro:property name="p" value="${p+1}" lazy_eval="false"/><b c="${p}"/>',
    '<xacro:property name="p" value="${q}"/><xacro:property name="q" value="1"/><b c="${p}"/>'
    '<xacro:property name="q" value="2"/><b c="${p}"/>',
    '<xacro:if value="1">t<b/>u</xacro:if><xacro:unless value="0"><d/></xacro:unless>',
    '<xacro:if value="1"><xacro:property name="p" value="1"/></xacro:if><b c="${p}"/>',
    '<xacro:if value="1"><xacro:attribute name="x" value="1"/></xacro:if>',
    '<xacro:if value="${\'1\'}"><b/></xacro:if><xacro:if value="${[0]}"><c/></xacro:if>'
    '<xacro:if value="${dict()}"><d/></xacro:if>',
    "<b x='0'><xacro:attribute name='x' value=\"${'a'}\"/></b>",
    '<xacro:element xacro:name="b${1}" c="${2}"><d/></xacro:element>',
    '<xacro:element xacro:name=""/>',
    '<xacro:element xacro:name="xacro:if" value="1"><q/></xacro:element>',
    "<xacro:macro name='m' params='x'><b x='${x}'/></xacro:macro><xacro:call macro=\"${'m'}\" x='1'/>",
    '<xacro:call macro="m"/>',
    '<xacro:property name="z" value="1"/><xacro:macro name="o" params="*b"><xacro:insert_block name="b"/>'
    '</xacro:macro><xacro:o><w v="$${z}"/></xacro:o>',
    '<xacro:macro name="o" params="**b"><xacro:insert_block name="b"/></xacro:macro><xacro:o><w>t<v/>u</w></xacro:o>',
    '<xacro:macro name="o" params="*b *c"><xacro:insert_block name="c"/><xacro:insert_block name="b"/>'
    "</xacro:macro><xacro:o><x/><y/></xacro:o>",
    '<xacro:macro name="i"><z/></xacro:macro><xacro:macro name="o" params="*b"><xacro:insert_block name="b"/>'
    "</xacro:macro><xacro:o><xacro:i/></xacro:o>",
    '<property name="x" value="1"/><if value="1"><b/></if><include filename="q"/>',
    '<b xacro:x="1" y="2"/>',
    '<x:if xmlns:x="http://www.ros.org/wiki/xacro" value="0"><b/></x:if>',
    '<xacro:arg name="k" default="1"/><b c="$(arg k)"/>',
    '<xacro:arg name="z" default="${1+1}"/><b c="$(arg z)"/><xacro:arg name="z" default="9"/><b c="$(arg z)"/>',
    "<!-- ${1/0} --><b/>",
    '<xacro:macro name="m" xmlns:q="u"><q:b/></xacro:macro><xacro:m/>',
    '<xacro:macro name="m" params="p"><xacro:property name="p" value="${p}"/><b c="${p}"/></xacro:macro>'
    '<xacro:m p="1"/>',
    '<xacro:macro name="m" params="p"><b c="${p[0]}"/></xacro:macro><xacro:m p="${[1,2]}"/>',
    '<xacro:property name="k" value="${3}"/><b c="${[x*k for x in [1,2]]}"/>',
    '<xacro:property name="f" value="${lambda x: x+1}"/><b c="${f(2)}"/>',
]


def test_documents(tmp_path: Path) -> None:
    agree(tmp_path, DOCUMENTS)


def test_includes(tmp_path: Path) -> None:
    start = '<xacro:include filename="x.xacro" ns="N"/>'
    uses = [
        '<b c="${N.v}"/>',
        "<xacro:N.m/>",
        "<xacro:m/>",
        '<b c="${v}"/>',
        '<xacro:property name="o" value="5"/><b c="${N.w} ${N.o}"/>',
        '<xacro:property name="v" value="9"/><b c="${v} ${N.v}"/><xacro:N.m p="${v}"/>',
        '<b c="${N.pi}"/>',
        '<b c="${N.nope}"/>',
        '<xacro:call macro="N.m"/>',
        "<xacro:N.nope/>",
        "<xacro:N/>",
    ]
    more = [
        '<xacro:include filename="x.xacro"/><xacro:m/><b c="${v}"/>',
        '<xacro:include filename="sub/a.xacro"/>',
        "<xacro:include/>",
        '<xacro:include filename="nope.xacro"/>',
        '<xacro:include filename="nope.xacro" optional="true"/><b/>',
        '<xacro:include filename="*.inc"/>',
        '<xacro:include filename="[b-z].inc"/>',
        '<xacro:include filename="q*.inc"/>',
    ]
    agree(
        tmp_path,
        [start + u for u in uses] + more,
        x_xacro=f'<z {NS}><xacro:property name="v" value="1"/><xacro:property name="w" value="${{v+o}}"/>'
        '<xacro:macro name="m" params="p:=2"><mm v="${v}" p="${p}"/></xacro:macro></z>',
        sub__a_xacro=f'<z {NS} xmlns:s="u"><xacro:include filename="b.xacro"/><xacro:include filename="../a.inc"/></z>',
        sub__b_xacro='<z xmlns:s="u"><s:y/></z>',
        a_inc="<z><a1/></z>",
        b_inc="<z><b1/></z>",
    )


def test_yaml(tmp_path: Path) -> None:
    uses = [
        "y",
        "y.a",
        "y['a']",
        "y.b.c[1]",
        "y['b'].c[-1]",
        "y.e",
        "y.f",
        "y.b.d",
        "y.nope",
        "y['nope']",
        "y.g*2",
        "y.h*2",
        "y.i[0].j",
        "[k for k in y.b]",
        "len(y)",
        "'a' in y",
        "y.get('a')",
        "y['k k']",
        "[q.j for q in y.i]",
        "y.b.c+[1]",
    ]
    start = '<xacro:property name="y" value="${xacro.load_yaml(\'y.yaml\')}"/>'
    agree(
        tmp_path,
        [f'{start}<b c="${{{use}}}"/>' for use in uses]
        + [
            "<b c=\"${load_yaml('y.yaml').a}\"/>",
            "<b c=\"${xacro.load_yaml('nope.yaml')}\"/>",
            "<b c=\"${xacro.load_yaml('bad.yaml')}\"/>",
        ],
        y_yaml='a: 1\nb: {c: [1, 2.5, x], d: true}\ne: !degrees 180\nf: ~\n"k k": v\ng: 1e-3\nh: "1"\ni: [{j: 1}]\n',
        bad_yaml="a: [",
    )
