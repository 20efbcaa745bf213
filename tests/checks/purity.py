"""The crates below the hosts have no file, socket, thread, clock, environment, process, randomness or log.

clippy proves the same of what the compiler resolves (`core/clippy.toml`); this reads the text, so a `use`
that is not yet called is found too.
"""

import re
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at

_IMPURE = re.compile(
    r"""\bstd\s*::\s*(?:fs|thread|process|env|os)\b
      | \bstd::io::(?:stdin|stdout|stderr|copy)\b
      | \b(?:Instant|SystemTime|TcpStream|TcpListener|UdpSocket|ToSocketAddrs)\b
      | \b(?:print|println|eprint|eprintln|dbg)!
      | \bthread_local!
    """,
    re.VERBOSE,
)
_GROUP = re.compile(r"\buse\s+std::\{([^;]*)\};")
_MODULES = re.compile(r"(?:^|[,{]\s*)\s*(fs|thread|process|env|os)\b")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every module of the pure crates. Their dependencies are held by `dependencies.py`."""
    for path, text in tree.under("core/template/src", "core/engine/src"):
        if rust_text.is_test_file(path):
            continue
        bare = rust_text.code(rust_text.without_tests(text))
        for match in _IMPURE.finditer(bare):
            yield Finding(path, line_at(bare, match.start()), f"not pure: `{match.group()}`")
        for group in _GROUP.finditer(bare):
            for module in _MODULES.finditer(group[1]):
                yield Finding(path, line_at(bare, group.start()), f"not pure: `std::{module[1]}`")
