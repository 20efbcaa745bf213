"""The plots of the README."""

from collections.abc import Iterator

from data import Results
from svg import Bar, Line, bars, lines

TEMPLATES = (1, 100, 1_000, 10_000)


def drawn(results: Results) -> Iterator[tuple[str, str]]:
    """The name and the SVG of each plot that there are figures for."""
    throughput = _bars(results, "W2", "rate")
    if throughput:
        title = "Reads of a templated resource over stdio, 64 in flight, one core for client and server"
        yield "throughput", bars(title, "requests/s; more is better", throughput)
    cpu = _bars(results, "W7-64/modern", "cpu_us")
    if cpu:
        title = "CPU of the server for each read over HTTP, 64 connections, revision 2026-07-28"
        yield "cpu", bars(title, "CPU µs/request; less is better", cpu)
    found = list(_templates(results))
    if found:
        title = "CPU of the server for each read from the last of N templates, stdio"
        yield "templates", lines(title, ("N, number of templates", "CPU µs/request"), found)
    listeners = _bars(results, "W6-many/modern", "listener_kib")
    if listeners:
        title = "Memory of an HTTP server for each idle listener, 1,000 of them, revision 2026-07-28"
        yield "listeners", bars(title, "KiB/listener; less is better", listeners)
    clients = _bars(results, "W16-64/modern", "cpu_us")
    if clients:
        title = "CPU of a client for each read of our server over stdio, 64 in flight, revision 2026-07-28"
        yield "clients", bars(title, "CPU µs/request; less is better", clients)


def _bars(results: Results, name: str, figure: str) -> list[Bar]:
    table = results.table(name)
    found = [(row.server, row.figure(figure)) for row in table.rows] if table else []
    return [Bar(server, value, _whose(server)) for server, value in found if value and value.least > 0]


def _templates(results: Results) -> Iterator[Line]:
    first = results.table("W5-1")
    for row in first.rows if first else ():
        figures = [(count, results.figure(f"W5-{count}", row.server, "cpu_us")) for count in TEMPLATES]
        points = [(float(count), found.median) for count, found in figures if found]
        if len(points) > 1:
            yield Line(row.server, points, _whose(row.server))


def _whose(server: str) -> str:
    if server.startswith(("floor", "bare")):
        return "floor"
    return "ours" if server.startswith("ours") else "peer"
