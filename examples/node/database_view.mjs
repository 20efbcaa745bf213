// A database view: what a query returns, as JSON.
//
// db://analytics/daily_summary        one row for each day
// db://analytics/daily_summary/{day}  one day; listed, and completes the days that exist
//
// Needs a Node that has SQLite: 22.5 or newer.
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';

const SCRIPT = new URL('../data/analytics.sql', import.meta.url);
const SUMMARY = 'SELECT day, count(*) AS orders, round(sum(revenue), 2) AS revenue FROM orders';
const URI = 'db://analytics/daily_summary';

const server = new ResourceServer({ name: 'analytics', version: '1.0.0' });
const database = new DatabaseSync(':memory:');
database.exec(readFileSync(SCRIPT, 'utf8'));
const everyDay = database.prepare(`${SUMMARY} GROUP BY day ORDER BY day`);
const oneDay = database.prepare(`${SUMMARY} WHERE day = ? GROUP BY day`);

server.resource(
  URI,
  { name: 'daily_summary', description: 'Orders and revenue of each day.', mimeType: 'application/json' },
  () => everyDay.all(),
);

server.resource(
  `${URI}/{day}`,
  {
    name: 'day_summary',
    description: 'Orders and revenue of one day.',
    mimeType: 'application/json',
    complete: { day: days },
    list: () => days('').map((day) => ({ uri: `${URI}/${day}`, name: day })),
  },
  ({ day }) => {
    const row = oneDay.get(day);
    if (row === undefined) throw new ResourceNotFoundError();
    return row;
  },
);

function days(value) {
  return everyDay
    .all()
    .map((row) => String(row.day))
    .filter((day) => day.startsWith(value));
}

await server.run();
