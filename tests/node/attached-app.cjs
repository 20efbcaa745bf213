// A program of the build for `require`: node attached-app.cjs GENERATION
const { ResourceServer } = require('mcp-resources');

const second = process.argv[2] === '2';
const { McpServer } = require(second ? '@modelcontextprotocol/server' : '@modelcontextprotocol/sdk/server/mcp.js');
const resources = new ResourceServer({ name: 'shop' }).attach(() => new McpServer({ name: 'app', version: '1' }));
resources.resource('shop://live', async () => 'live');
void resources.run();
