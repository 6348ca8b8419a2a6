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
`;

const ROLES = new Set(['controller', 'api', 'dashboard', 'ssh', 'notifier', 'all']);

interface Outcome {
  text: string;
  code: number;
}

/** Commands of this program, by their words. `keys` without `create` lists SSH keys, as for every renter. */
const OPERATOR = new Map<string, (args: readonly string[]) => Promise<Outcome | string>>([
  [
    'doctor',
    async (args) =>
      (await import('./commands/doctor.ts')).doctorCommand(args, process.env, (line) =>
        process.stderr.write(`${line}\n`),
      ),
  ],
  ['export-usage', async (args) => (await import('./commands/export-usage.ts')).exportUsageCommand(args, process.env)],
  ['keys create', async (args) => (await import('./commands/keys.ts')).createKeyCommand(args, process.env)],
  ['host-key', async (args) => (await import('./commands/host-key.ts')).hostKeyCommand(args, process.env)],
  ['ssh-config', async (args) => (await import('./commands/ssh-config.ts')).sshConfigMain(args, process.env)],
]);

/** Prints the result of the command, or one line that says why it failed. */
async function runOperator(run: () => Promise<Outcome | string>): Promise<number> {
  try {
    const outcome = await run();
    const { text, code } = typeof outcome === 'string' ? { text: outcome, code: 0 } : outcome;
    process.stdout.write(text);
    return code;
  } catch (error) {
    process.stderr.write(`berth: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

async function usage(): Promise<string> {
  const { COMMANDS } = await import('./cli/table/commands.ts');
  // What has two words is part of what has one.
  const names = COMMANDS.map(({ name }) => name).filter((name) => !name.includes(' '));
  return `${USAGE}
Renters, with an API key (berth COMMAND --help tells more):
  ${names.join(', ')}
`;
}

async function main(words: readonly string[]): Promise<number | undefined> {
  const [command = '', ...args] = words;
  if (ROLES.has(command)) {
    const { runRole } = await import('./roles/run-role.ts');
    await runRole(command);
    return undefined;
  }
  for (const length of [1, 2]) {
    const run = OPERATOR.get(words.slice(0, length).join(' '));
    if (run !== undefined) return runOperator(() => run(words.slice(length)));
  }
  const help = command === '--help' || (command === 'help' && args.length === 0);
  if (help || command === '') {
    (help ? process.stdout : process.stderr).write(await usage());
    return help ? 0 : 2;
  }
  return (await import('./cli/process.ts')).runProcess(words);
}

// A role ends when its last handle does. A command ends here, whatever handles are left.
const code = await main(process.argv.slice(2));
if (code !== undefined) process.exit(code);
