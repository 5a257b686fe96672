"""The xacro expander: bounded, inside the bundle only. `expand` is all that the rest of fkd calls."""

from fkd.load.xacro.expander import Expansion, Files, expand, to_text

__all__ = ["Expansion", "Files", "expand", "to_text"]
