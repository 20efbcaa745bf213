"""Tables of a SQLite database: no function is written, clients send no SQL, and one column is not served.

db:///shop/customers             the rows, a page at a time; `?after` and `?rows` say which
db:///shop/order_lines/{key}     one row, such as db:///shop/order_lines/2,1; completes the keys, is watched
db:///shop/query/by_city{?city}  what a statement selects
"""

import sys
from pathlib import Path

from mcp_resources import ResourceServer, providers

FILE = Path(__file__).resolve().parent.parent / "data" / "shop.db"

server = ResourceServer("shop", version="1.0.0")
server.mount(
    providers.db(
        {
            "shop": {
                "url": f"sqlite:{sys.argv[1] if len(sys.argv) > 1 else FILE}",
                "tables": ["customers", "order_lines"],
                "columns_deny": ["password"],
                "views": {"by_city": "SELECT id, name FROM customers WHERE city = :city ORDER BY name"},
            }
        }
    )
)

if __name__ == "__main__":
    server.run()
