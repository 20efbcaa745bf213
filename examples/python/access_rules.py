"""Notes of teams, of which a policy file says who may see what.

team://{team}/plan          what a team is up to
team://{team}/notes/{name}  a note; completes the names that may be seen
"""

from pathlib import Path

from mcp_resources import ResourceNotFoundError, ResourceServer

POLICY = Path(__file__).resolve().parent.parent / "data" / "guard.yaml"
NOTES = {"launch": "On Tuesday.", "retrospective": "More tea.", "salaries": "Not for everybody."}

server = ResourceServer("team", version="1.0.0", guard=POLICY)


@server.resource("team://{team}/plan")
def plan(team: str) -> str:
    """What a team is up to."""
    return f"The plan of {team}."


@server.resource("team://{team}/notes/{name}")
def note(team: str, name: str) -> str:
    """A note of a team."""
    try:
        return f"{team}: {NOTES[name]}"
    except KeyError:
        raise ResourceNotFoundError from None


@note.complete("name")
def names(value: str) -> list[str]:
    return [name for name in NOTES if name.startswith(value)]


if __name__ == "__main__":
    server.run()
