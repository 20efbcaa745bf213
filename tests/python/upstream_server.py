"""A server of other servers, for test_upstream.py: `upstream_server.py SERVERS`, a JSON object."""

import json
import sys

from mcp_resources import RegistrationError, ResourceServer, providers

server = ResourceServer("upstream")
try:
    server.mount(providers.upstream(json.loads(sys.argv[1])))
except (RegistrationError, TypeError) as error:
    print(error, file=sys.stderr)
    sys.exit(2)
server.run()
