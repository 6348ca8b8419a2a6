import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { examine, isSound } from '../doctor/examine.ts';
import { rolesIn } from '../doctor/facts.ts';
import { printJson, printReport } from '../doctor/print.ts';
import { probeNetwork, type ProbeOutcome, withProbe } from '../doctor/probe.ts';
import { readCluster } from '../doctor/read.ts';
import type { Snapshot } from '../doctor/sources.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { serverInfo } from '../kube/client/server-info.ts';
import { KubeError } from '../kube/errors.ts';
import { systemClock } from '../lib/clock.ts';
import { UsageError, withClient } from './with-client.ts';

const USAGE = 'Usage: berth doctor [-n NAMESPACE] [--output text|json] [--probe]';

/** Says what it will make before it makes it. */
async function probe(
  client: KubeClient,
  snapshot: Snapshot,
  own: string,
  say: (line: string) => void,
): Promise<ProbeOutcome> {
  const controller = rolesIn(snapshot.objects.deployments, own).get('controller');
  const template = controller?.spec?.template.spec;
  const container = template?.containers.find(({ name }) => name === 'berth');
  if (container?.image === undefined)
    return { result: 'unknown', why: 'no controller of Berth is there whose image a pod could run' };
  const namespace = `berth-doctor-${randomBytes(4).toString('hex')}`;
  const names = (template?.imagePullSecrets ?? []).map(({ name }) => name ?? '');
  const copied = names.length === 0 ? '' : ` and a copy of its credentials from ${names.join(' and ')}`;
  say(
    `Makes namespace ${namespace} with three pods of ${container.image}${copied}, and deletes it. If this is interrupted: kubectl delete namespace ${namespace}`,
  );
  const { image, imagePullPolicy } = container;
  const run = { image, ...(imagePullPolicy !== undefined && { imagePullPolicy }) };
  const pull = { namespace: own, names };
  try {
    return await probeNetwork({ client, clock: systemClock(), namespace, image: run, pull });
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return { result: 'unknown', why: error.message };
  }
}

/**
 * `berth doctor`: reads a live installation with the rights of the kubeconfig, and says what is wrong with it. Makes
 * nothing without --probe. `say` gets a line about what --probe makes. Throws UsageError, and KubeError when the API
 * server does not say its version.
 */
export async function doctorCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<{ text: string; code: 0 | 1 }> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      namespace: { type: 'string', short: 'n' },
      output: { type: 'string', short: 'o', default: 'text' },
      probe: { type: 'boolean', default: false },
    },
  });
  const { namespace, output } = values;
  if (output !== 'text' && output !== 'json') throw new UsageError(USAGE);
  const clock = systemClock();
  return withClient(env, async (client, { connection }) => {
    const server = await serverInfo(connection);
    const answeredAt = clock.now();
    const snapshot = await readCluster(client);
    const read = examine(snapshot, { server, answeredAt, readAt: clock.now(), namespace });
    const report = values.probe ? withProbe(read, await probe(client, snapshot, read.namespace, say)) : read;
    return { text: (output === 'json' ? printJson : printReport)(report), code: isSound(report) ? 0 : 1 };
  });
}
