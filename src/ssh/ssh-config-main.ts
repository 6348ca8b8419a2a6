import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../kube/clock.ts';
import { loadKubeConfig } from '../kube/config.ts';
import { createKubeClient } from '../kube/rest-client.ts';
import { sshConfigCommand } from './ssh-config.ts';

/** `berth ssh-config`: returns the text for ~/.ssh/config. Throws on unknown options and on the client's errors. */
export async function sshConfigMain(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      namespace: { type: 'string', short: 'n' },
      identity: { type: 'string', short: 'i' },
      'known-hosts': { type: 'string' },
    },
  });
  const kubeconfig = env['KUBECONFIG'];
  const connection = await loadKubeConfig(kubeconfig === undefined ? {} : { kubeconfig });
  const client = createKubeClient(connection, { clock: systemClock() });
  try {
    return await sshConfigCommand(client, values.namespace ?? connection.namespace, {
      ...(values.identity === undefined ? {} : { identityFile: values.identity }),
      ...(values['known-hosts'] === undefined ? {} : { knownHostsFile: values['known-hosts'] }),
      save: (path, text) => writeFile(path, text),
    });
  } finally {
    await client.close();
  }
}
