# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of HTML that need no network: what reports have in common.

Texts may come from a stranger, so all of them are escaped."""
import re
from html import escape
from xml.sax.saxutils import quoteattr

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
       color: #222; background: #fff }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 2em }
table { border-collapse: collapse; margin: 1em 0 }
th, td { border: 1px solid #ccc; padding: .25em .6em; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
code { font-size: 90% } .note { background: #fff4d0; padding: .5em 1em }
"""
# Characters that XML does not have.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def text(value):
    """Text as HTML; characters that XML does not have are left out."""
    return escape(FORBIDDEN.sub("", str(value)))


def attribute(value):
    """The same as a quoted attribute."""
    return quoteattr(FORBIDDEN.sub("", value))


def row(cells, tag="td", css=""):
    return "<tr%s>%s</tr>" % (
        ' class="%s"' % css if css else "",
        "".join("<%s>%s</%s>" % (tag, each, tag) for each in cells),
    )


def document(title, parts, style=""):
    """A whole document; title is text, the parts are HTML, style is CSS beside the common one."""
    head = "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>%s</title>" % text(title)
    css = "<style>%s</style></head><body><h1>%s</h1>" % (STYLE + style, text(title))
    return "\n".join([head, css, *parts, "</body></html>\n"])
