import { startReplica } from './replica.ts';

// One replica in a process of its own, which a test may kill or suspend: `node controller-process.ts KUBECONFIG`.
const replica = await startReplica({ kubeconfig: process.argv[2] ?? '' });
process.stdout.write('started\n');
process.on('SIGTERM', () => void replica.stop().then(() => process.exit(0)));
// A replica that gave up ends, as `berth controller` does. The replica set starts it again.
await replica.ended;
process.exit(0);
