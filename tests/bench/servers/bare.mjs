// A Node that waits: what the runtime alone costs.
process.stdout.write('ready\n');
process.stdin.resume();
