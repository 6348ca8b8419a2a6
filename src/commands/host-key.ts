import { readConfig } from '../config/config.ts';
import { knownHostsLine, rotateHostKey } from '../ssh/login/host-key.ts';
import { UsageError, withClient } from './with-client.ts';

const STEPS = ['announce', 'switch', 'retire'] as const;

/**
 * `berth host-key STEP`: one step of a rotation of the SSH host key. Returns the known_hosts lines that are valid now.
 * Throws UsageError, HostKeyError and the client's errors.
 */
export async function hostKeyCommand([text = '']: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const step = STEPS.find((known) => known === text);
  if (step === undefined) {
    throw new UsageError(
      'Usage: berth host-key announce | switch | retire. Use them in this order; restart the ssh and controller roles after each.',
    );
  }
  const { namespace, ssh } = readConfig(env);
  return withClient(env, async (client) => {
    const keys = await rotateHostKey(client, namespace, step);
    return `${knownHostsLine(keys, ssh.publicHost, ssh.publicPort)}\n`;
  });
}
