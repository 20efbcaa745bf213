"""Serves an ASGI application on a port that the system may choose, and says which on standard output."""

import socket

import uvicorn
from starlette.types import ASGIApp


def serve(app: ASGIApp, port: int) -> None:
    """Serves until a signal. Connections are taken from the moment that the line is written."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        print("listening", listener.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)).run([listener])
