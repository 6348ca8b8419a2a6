import { LOST } from './processes.ts';
import { startReplica } from './replica.ts';

// One replica in a process of its own, which a test may kill or suspend: `node controller-process.ts KUBECONFIG`.
const replica = await startReplica({ kubeconfig: process.argv[2] ?? '' });
process.stdout.write('started\n');
process.on('SIGTERM', () => void replica.stop().then(() => process.exit(0)));
// A replica that lost the lease ends, as `berth controller` does. The replica set starts it again.
process.exit((await replica.ended) === 'lost' ? LOST : 0);
