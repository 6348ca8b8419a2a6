import { startReplica } from '../../faults/support/replica.ts';
import { withWrites } from '../../faults/support/counting-client.ts';
import { EVENTS } from '../../../src/kube/types.ts';
import type { KubeClient } from '../../../src/kube/client.ts';

// The controllers in a process of their own, so that their memory is theirs alone: `node process.ts KUBECONFIG`, forked.
export interface Measured {
  /** Resident set, MiB. */
  rssMb: number;
  /** Writes since the start, Events aside, and Events. */
  writes: number;
  events: number;
  /** CPU time of the process so far, milliseconds: the figure that other work on the machine changes least. */
  cpuMs: number;
}

let writes = 0;
let events = 0;

function counted(client: KubeClient): KubeClient {
  const noted = withWrites(client, (_write, send) => {
    writes += 1;
    return send();
  });
  return {
    ...noted,
    create: (type, object, options) => {
      if (type.kind === EVENTS.kind) events += 1;
      return noted.create(type, object, options);
    },
  };
}

const replica = await startReplica({ kubeconfig: process.argv[2] ?? '', wrap: counted });
process.on('message', () => {
  const rssMb = Math.round(process.memoryUsage().rss / 2 ** 20);
  const { user, system } = process.cpuUsage();
  process.send?.({ rssMb, writes, events, cpuMs: (user + system) / 1000 } satisfies Measured);
});
process.on('SIGTERM', () => void replica.stop().then(() => process.exit(0)));
process.send?.('ready');
