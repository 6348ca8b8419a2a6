#!/usr/bin/env node
interface Outcome {
  text: string;
  code: number;
}

/** A command of this program, and no renter's. */
interface OperatorCommand {
  does: string;
  options: string;
  run: (args: readonly string[]) => Promise<Outcome | string>;
}

/** What a command tells beside its result. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** `keys` without `create` lists SSH keys, as for every renter. */
const WITH_KUBECONFIG: Readonly<Record<string, OperatorCommand>> = {
  'keys create': {
    does: 'create an API key and print its token',
    options: '[-n NAMESPACE] [--name TEXT] [--scopes LIST] [--expires TIME]',
    run: async (args) => (await import('./commands/keys.ts')).createKeyCommand(args, process.env),
  },
  'ssh-config': {
    does: 'print blocks for ~/.ssh/config',
    options: '[-n NAMESPACE] [-i KEY] [--known-hosts FILE]',
    run: async (args) => (await import('./commands/ssh-config.ts')).sshConfigMain(args, process.env),
  },
};

const OF_OPERATOR: Readonly<Record<string, OperatorCommand>> = {
  doctor: {
    does: 'say what is wrong with an installation, and how to fix it',
    options: '[-n NAMESPACE] [--output text|json] [--probe]',
    run: async (args) => (await import('./commands/doctor.ts')).doctorCommand(args, process.env, say),
  },
  'export-usage': {
    does: 'copy ended charges to the database of $BERTH_SINK_URL, and compare',
    options: '[--all]',
    run: async (args) => (await import('./commands/export-usage.ts')).exportUsageCommand(args, process.env),
  },
  'host-key': {
    does: 'rotate the SSH host key',
    options: 'announce | switch | retire',
    run: async (args) => (await import('./commands/host-key.ts')).hostKeyCommand(args, process.env),
  },
  uninstall: {
    does: 'remove Berth; keep namespaces, disks and bills',
    options: '--dry-run | --yes [--bills]',
    run: async (args) => (await import('./commands/uninstall.ts')).uninstallCommand(args, process.env, say),
  },
};

const OPERATOR = new Map(Object.entries({ ...WITH_KUBECONFIG, ...OF_OPERATOR }));

function linesOf(commands: Readonly<Record<string, OperatorCommand>>): string {
  return Object.entries(commands)
    .map(([name, { does }]) => `  ${name.padEnd(12)} ${does}\n`)
    .join('');
}

const USAGE = `Usage: berth COMMAND

Server roles, configured by environment variables (docs/run/environment.md):
  controller   reconcile the custom resources
  api          serve HTTP: compute endpoints, model gateway, ports of instances
  dashboard    serve the dashboard, where people make API keys
  ssh          serve SSH
  notifier     deliver events to webhooks
  all          all of these but the notifier in one process

With a kubeconfig (berth COMMAND --help tells more):
${linesOf(WITH_KUBECONFIG)}
Operator:
${linesOf(OF_OPERATOR)}`;

const ROLES = new Set(['controller', 'api', 'dashboard', 'ssh', 'notifier', 'all']);

function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/** A line that the command cannot read. */
function isWrongLine(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'UsageError' || ('code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
}

/** Prints the result of the command, or one line that says why it failed. */
async function runOperator(name: string, command: OperatorCommand, args: readonly string[]): Promise<number> {
  const { does, options } = command;
  if (asksForHelp(args)) {
    const title = does.charAt(0).toUpperCase() + does.slice(1);
    process.stdout.write(`Usage: berth ${name} ${options}\n\n${title}.\n`);
    return 0;
  }
  try {
    const outcome = await command.run(args);
    const { text, code } = typeof outcome === 'string' ? { text: outcome, code: 0 } : outcome;
    process.stdout.write(text);
    return code;
  } catch (error) {
    process.stderr.write(`berth: ${error instanceof Error ? error.message : String(error)}\n`);
    if (!isWrongLine(error)) return 1;
    process.stderr.write(`Run berth ${name} --help.\n`);
    return 2;
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
  const asked = command === 'help' ? [...args, '--help'] : words;
  for (const length of [1, 2]) {
    const name = asked.slice(0, length).join(' ');
    const known = OPERATOR.get(name);
    if (known !== undefined) return runOperator(name, known, asked.slice(length));
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
