// What the clients on Node have in common: what they are told, the load, and what they print. See `../README.md`.

/** Longest time of warming up, in milliseconds. */
const WARM = 3_000;
const { REVISION: revision, WINDOW: window, WARM: warm, REQUESTS: requests, SECONDS: seconds } = process.env;
const server = process.argv.slice(2);
let next = 1;

export { revision, server };

/** Warms up, measures, and prints a line. The processor time is that of all threads of this process, user and system. */
export async function measure(read) {
  await pump(read, Number(warm), WARM);
  const [before, start] = [process.cpuUsage(), process.hrtime.bigint()];
  const done = await pump(read, Number(requests), Number(seconds) * 1_000);
  const [{ user, system }, end] = [process.cpuUsage(before), process.hrtime.bigint()];
  console.log(JSON.stringify({ done, cpu_ns: (user + system) * 1_000, wall_ns: Number(end - start) }));
}

async function pump(read, count, time) {
  const [first, end, stop] = [next, next + count, performance.now() + time];
  await Promise.all(Array.from({ length: Number(window) }, () => reader(read, end, stop)));
  return next - first;
}

async function reader(read, end, stop) {
  while (next < end && performance.now() < stop) {
    const number = next;
    next += 1;
    const text = await read(`bench://item/${number}`);
    if (text !== `item ${number}`) throw new Error(`wrong contents of item ${number}: ${text}`);
  }
}
