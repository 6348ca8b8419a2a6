import { startReplica } from './replica.ts';

// One replica in a process of its own, which a test may kill or suspend: `node controller-process.ts KUBECONFIG CLAIM_ON_POD`.
const [, , kubeconfig = '', claimOnPod] = process.argv;
const replica = await startReplica({ kubeconfig, claimOnPod: claimOnPod === 'true' });
process.stdout.write('started\n');
process.on('SIGTERM', () => void replica.stop().then(() => process.exit(0)));
// A replica that gave up ends, as `berth controller` does. The replica set starts it again.
await replica.ended;
process.exit(0);
