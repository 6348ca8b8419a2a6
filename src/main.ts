#!/usr/bin/env node
import { LOCAL_COMMANDS, runLocal, type LocalCommand } from './local/commands.ts';

const USAGE = `Usage: berth COMMAND

Server roles, configured by environment variables (docs/operations.md):
  controller   reconcile the custom resources
  api          serve HTTP: compute endpoints, model gateway, dashboard
  ssh          serve SSH
  all          the three of them in one process

Client:
  ssh-config   print blocks for ~/.ssh/config [-n NAMESPACE] [-i KEY] [--known-hosts FILE]

Local cluster (docs/local-cluster.md):
  up           bring up a cluster with a GPU fleet, in the background
  start        the same and the server; stays in the foreground unless --detach
  status       say what runs
  stop, down   end it
`;

const ROLES = new Set(['controller', 'api', 'ssh', 'all']);

function isLocal(command: string): command is LocalCommand {
  return LOCAL_COMMANDS.some((known) => known === command);
}

async function main([command = '', ...args]: readonly string[]): Promise<number | undefined> {
  if (isLocal(command)) return runLocal(command, args);
  if (ROLES.has(command)) {
    const { runRole } = await import('./roles.ts');
    await runRole(command);
    return undefined;
  }
  if (command === 'ssh-config') {
    const { sshConfigMain } = await import('./ssh/ssh-config-main.ts');
    process.stdout.write(await sshConfigMain(args, process.env));
    return 0;
  }
  const help = command === 'help' || command === '--help';
  (help ? process.stdout : process.stderr).write(USAGE);
  return help ? 0 : 2;
}

// A role ends when its last handle does; a local command ends with its code, whatever handles are left.
const code = await main(process.argv.slice(2));
if (code !== undefined) process.exit(code);
