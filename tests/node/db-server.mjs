// A server of one SQLite database, for db.test.mjs: `db-server.mjs FILE`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'shop', version: '1' });
server.mount(
  providers.db({
    shop_1: {
      url: `sqlite:${process.argv[2]}`,
      tables: ['customers', 'orderLines'],
      columnsDeny: ['password'],
      views: { byCity: 'SELECT id FROM customers WHERE city = :city' },
      rows: 2,
      poll: '50ms',
    },
  }),
);
await server.run();
