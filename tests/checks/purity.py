"""Below the hosts the core has no file, socket, thread, clock, environment, process, randomness or log.

clippy proves the same of what the compiler resolves (`core/clippy.toml`); this reads the text, so a `use`
that is not yet called is found too.
"""

import re
from collections.abc import Iterator

import rust_text
from tree import Finding, Tree, line_at, module_of

_IMPURE = re.compile(
    r"""\bstd\s*::\s*(?:fs|thread|process|env|os)\b
      | \bstd::io::(?:stdin|stdout|stderr|copy)\b
      | \b(?:Instant|SystemTime|TcpStream|TcpListener|UdpSocket|ToSocketAddrs)\b
      | \b(?:tokio|hyper|async_std|smol|mio|rand|getrandom|fastrand|libc|rustix|log|tracing)::
      | \b(?:print|println|eprint|eprintln|dbg)!
      | \bthread_local!
    """,
    re.VERBOSE,
)
_GROUP = re.compile(r"\buse\s+std::\{([^;]*)\};")
_MODULES = re.compile(r"(?:^|[,{]\s*)\s*(fs|thread|process|env|os)\b")


def check(tree: Tree) -> Iterator[Finding]:
    """Looks at every module below the levels marked `io`."""
    hosts = {module for level in tree.levels if level.io for module in level.modules}
    for path, text in tree.under("core/src"):
        here = module_of(path)
        if rust_text.is_test_file(path) or (here and here[0] in hosts):
            continue
        bare = rust_text.code(rust_text.without_tests(text))
        for match in _IMPURE.finditer(bare):
            yield Finding(path, line_at(bare, match.start()), f"not pure: `{match.group()}`")
        for group in _GROUP.finditer(bare):
            for module in _MODULES.finditer(group[1]):
                yield Finding(path, line_at(bare, group.start()), f"not pure: `std::{module[1]}`")
