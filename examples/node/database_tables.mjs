// Tables of a SQLite database: no function is written, clients send no SQL, and one column is not served.
//
// db:///shop/customers             the rows, a page at a time; `?after` and `?rows` say which
// db:///shop/order_lines/{key}     one row, such as db:///shop/order_lines/2,1; completes the keys, is watched
// db:///shop/query/by_city{?city}  what a statement selects
import { fileURLToPath } from 'node:url';
import { providers, ResourceServer } from 'mcp-resources';

const FILE = fileURLToPath(new URL('../data/shop.db', import.meta.url));

const server = new ResourceServer({ name: 'shop', version: '1.0.0' });
server.mount(
  providers.db({
    shop: {
      url: `sqlite:${process.argv[2] ?? FILE}`,
      tables: ['customers', 'order_lines'],
      columnsDeny: ['password'],
      views: { by_city: 'SELECT id, name FROM customers WHERE city = :city ORDER BY name' },
    },
  }),
);
await server.run();
