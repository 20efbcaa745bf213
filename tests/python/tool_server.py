"""A small server with a resource, tools and a prompt, for the clients of others. Serves stdio."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mcp_resources import Context, Image, ResourceServer, ToolError

server = ResourceServer("shop", version="1.0.0", expose_as_tools=True)
orders = {7: "open", 8: "paid"}


@dataclass
class Order:
    number: int
    state: str


@server.resource("shop://orders/{number}", mime_type="text/plain")
def order(number: int) -> str:
    return orders[number]


@server.tool(annotations={"read_only_hint": True}, title="Orders")
def find(state: Literal["open", "paid"]) -> list[Order]:
    """Finds the orders in a state."""
    return [Order(number, found) for number, found in orders.items() if found == state]


@server.tool
def count() -> int:
    return len(orders)


@server.tool
async def pay(number: Annotated[int, "The number of the order."], ctx: Context) -> Order:
    ctx.progress(1, 2)
    if number not in orders:
        raise ToolError(f"There is no order {number}.")
    orders[number] = "paid"
    return Order(number, "paid")


@server.tool
def label(number: int) -> list[object]:
    return [order.link(number=number), Image(b"\x89PNG")]


@server.prompt
def thanks(name: str, tone: Literal["friendly", "formal"] = "friendly") -> str:
    return f"Thank {name}, {tone}."


if __name__ == "__main__":
    server.run()
