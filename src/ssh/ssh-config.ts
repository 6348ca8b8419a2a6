import type { KubeClient } from '../kube/client/client.ts';
import { GPU_INSTANCES, type GpuInstance } from '../resources/instances/gpu-instance.ts';

export interface SshConfigOptions {
  /** Path of the private key that the blocks name. */
  identityFile?: string;
  /** Where the known_hosts lines are written; ssh then connects only with those host keys. */
  knownHostsFile?: string;
}

const SAFE = /^[A-Za-z0-9._:~/@%+=-]+$/;

/** Quotes as ssh_config(5) reads arguments. Throws RangeError for text that no quoting can carry. */
function argument(text: string): string {
  if (SAFE.test(text)) return text;
  if (/["\n\r\0]/.test(text)) throw new RangeError(`ssh_config cannot carry ${JSON.stringify(text)}.`);
  return `"${text}"`;
}

/** A host of this configuration. No host of the user ends so, whatever an instance is called. */
const HOST_SUFFIX = '.berth';

function block(instance: GpuInstance, options: SshConfigOptions): string | undefined {
  const { ssh } = instance.status ?? {};
  if (ssh === undefined) return undefined;
  const lines = [
    `Host ${argument(`${instance.metadata.name}${HOST_SUFFIX}`)}`,
    `  HostName ${argument(ssh.host)}`,
    `  Port ${ssh.port}`,
    `  User ${argument(ssh.user)}`,
    '  ServerAliveInterval 30',
  ];
  if (options.identityFile !== undefined) {
    lines.push(`  IdentityFile ${argument(options.identityFile)}`, '  IdentitiesOnly yes');
  }
  if (options.knownHostsFile !== undefined) {
    lines.push(`  UserKnownHostsFile ${argument(options.knownHostsFile)}`, '  StrictHostKeyChecking yes');
  }
  return lines.join('\n');
}

/** Host blocks for ~/.ssh/config, one for each instance with an SSH address, in the order of their names. */
export function sshConfig(instances: readonly GpuInstance[], options: SshConfigOptions = {}): string {
  const sorted = instances.toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name, 'en'));
  const blocks = sorted.flatMap((instance) => block(instance, options) ?? []);
  return blocks.length === 0 ? '' : `${blocks.join('\n\n')}\n`;
}

/** The known_hosts lines that those blocks need, each once. */
export function knownHosts(instances: readonly GpuInstance[]): string {
  const lines = instances.flatMap(({ status }) => status?.ssh?.knownHosts?.split('\n') ?? []);
  const unique = [...new Set(lines.filter((line) => line !== ''))];
  return unique.length === 0 ? '' : `${unique.join('\n')}\n`;
}

/** The blocks of a namespace. `save` gets the host keys for `knownHostsFile`. Rejects with the client's errors. */
export async function sshConfigCommand(
  client: KubeClient,
  namespace: string,
  options: SshConfigOptions & { save?: (path: string, text: string) => Promise<void> },
): Promise<string> {
  const { items } = await client.list(GPU_INSTANCES, { namespace });
  if (options.knownHostsFile !== undefined) await options.save?.(options.knownHostsFile, knownHosts(items));
  return sshConfig(items, options);
}
