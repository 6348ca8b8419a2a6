import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { sshConfigCommand } from '../ssh/ssh-config.ts';
import { withClient } from './with-client.ts';

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
  return withClient(env, (client, { namespace: current }) =>
    sshConfigCommand(client, values.namespace ?? current, {
      ...(values.identity === undefined ? {} : { identityFile: values.identity }),
      ...(values['known-hosts'] === undefined ? {} : { knownHostsFile: values['known-hosts'] }),
      save: (path, text) => writeFile(path, text),
    }),
  );
}
