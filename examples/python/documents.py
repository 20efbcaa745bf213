"""A folder of documents, their names and texts in any script.

docs:///{name}  a Markdown file of examples/data/docs; listed with its heading as title, completes the names
"""

from pathlib import Path
from unicodedata import normalize

from mcp_resources import Resource, ResourceNotFoundError, ResourceServer, UriTemplate

FOLDER = Path(__file__).resolve().parent.parent / "data" / "docs"
URI = UriTemplate("docs:///{name}")  # `{name}` never matches a slash or `..`: a URI cannot leave the folder

server = ResourceServer("documents", version="1.0.0")


def documents() -> dict[str, Path]:
    """The files by name. Some file systems decompose accents and kana; URIs have the composed form."""
    return {normalize("NFC", path.name): path for path in sorted(FOLDER.glob("*.md"))}


@server.resource("docs:///{name}", mime_type="text/markdown")
def document(name: str) -> str:
    """A document."""
    try:
        return documents()[normalize("NFC", name)].read_text("utf-8")
    except KeyError:
        raise ResourceNotFoundError from None


@document.complete("name")
def names(value: str) -> list[str]:
    return [name for name in documents() if name.startswith(normalize("NFC", value))]


@document.list
def listing() -> list[Resource]:
    return [describe(name, path) for name, path in documents().items()]


def describe(name: str, path: Path) -> Resource:
    heading = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return Resource(
        URI.expand(name=name), name=name, title=heading, mime_type="text/markdown", size=path.stat().st_size
    )


if __name__ == "__main__":
    server.run()
