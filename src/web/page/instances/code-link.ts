import type { InstanceRecord } from '../../../wire/records.ts';

/** Opens the folder of the disk in VS Code, by its extension "Remote - SSH". */
export function codeLink({ host, port, user }: NonNullable<InstanceRecord['ssh']>): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `vscode://vscode-remote/ssh-remote+${encodeURIComponent(user)}@${name}:${port}/workspace`;
}
