#!/usr/bin/env node
const USAGE = `Usage: berth COMMAND

Server roles, configured by environment variables (docs/operations.md):
  controller   reconcile the custom resources
  api          serve HTTP: compute endpoints, model gateway, ports of instances
  dashboard    serve the dashboard, where people make API keys
  ssh          serve SSH
  notifier     deliver events to webhooks
  all          all of these but the notifier in one process

With a kubeconfig:
  keys create  create an API key and print its token [-n NAMESPACE] [--name TEXT] [--scopes LIST] [--expires TIME]
  ssh-config   print blocks for ~/.ssh/config [-n NAMESPACE] [-i KEY] [--known-hosts FILE]

Operator:
  doctor       say what is wrong with an installation, and how to mend it [-n NAMESPACE] [--output text|json] [--probe]
  export-usage bring ended charges to the database of $BERTH_SINK_URL, and compare [--all]
  host-key     rotate the SSH host key: announce | switch | retire

Renters, with an API key (docs/cli.md lists all):
  login, offers, rent, ls, show, logs, ssh, cp, stop, start, rm, keys, templates, models, chat
`;

const ROLES = new Set(['controller', 'api', 'dashboard', 'ssh', 'notifier', 'all']);

/** Commands of the server's own program. `keys` alone lists SSH keys, as for every renter. */
function isClient(command: string, [verb]: readonly string[]): boolean {
  return (
    ['doctor', 'export-usage', 'ssh-config', 'host-key'].includes(command) || (command === 'keys' && verb === 'create')
  );
}

interface Outcome {
  text: string;
  code: number;
}

async function clientCommand(command: string, args: readonly string[]): Promise<Outcome> {
  const { env } = process;
  if (command === 'doctor')
    return (await import('./commands/doctor.ts')).doctorCommand(args, env, (line) => process.stderr.write(`${line}\n`));
  if (command === 'export-usage') return (await import('./commands/export-usage.ts')).exportUsageCommand(args, env);
  if (command === 'keys') return { text: await (await import('./commands/keys.ts')).keysCommand(args, env), code: 0 };
  if (command === 'host-key')
    return { text: await (await import('./commands/host-key.ts')).hostKeyCommand(args, env), code: 0 };
  return { text: await (await import('./commands/ssh-config.ts')).sshConfigMain(args, env), code: 0 };
}

/** Prints the result of the command, or one line that says why it failed. */
async function runClient(command: string, args: readonly string[]): Promise<number> {
  try {
    const { text, code } = await clientCommand(command, args);
    process.stdout.write(text);
    return code;
  } catch (error) {
    process.stderr.write(`berth: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

async function main([command = '', ...args]: readonly string[]): Promise<number | undefined> {
  if (ROLES.has(command)) {
    const { runRole } = await import('./roles/run-role.ts');
    await runRole(command);
    return undefined;
  }
  if (isClient(command, args)) return runClient(command, args);
  const help = command === '--help' || (command === 'help' && args.length === 0);
  if (help || command === '') {
    (help ? process.stdout : process.stderr).write(USAGE);
    return help ? 0 : 2;
  }
  return (await import('./cli/process.ts')).runProcess([command, ...args]);
}

// A role ends when its last handle does. A command ends here, whatever handles are left.
const code = await main(process.argv.slice(2));
if (code !== undefined) process.exit(code);
