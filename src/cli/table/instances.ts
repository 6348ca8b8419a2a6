import { type Command, JSON_OPTION, LIST_OPTIONS, type Options, YES } from '../options.ts';
import { LIFE } from '../rent/body.ts';

const INSTANCE = ['INSTANCE'];
const WATCH: Options = { watch: { type: 'boolean', short: 'w', help: 'follow every change' } };
const URL_ONLY: Options = { url: { type: 'boolean', help: 'print the address and open nothing' } };
const IDENTITY: Options = {
  identity: { type: 'string', short: 'i', value: 'FILE', help: 'private key to log in with' },
};

/** Returns before the start is over. */
export const NO_WAIT: Options = { 'no-wait': { type: 'boolean', help: 'return at once' } };

/** Commands for instances that are rented. */
export const INSTANCES: Command[] = [
  {
    name: 'ls',
    aliases: ['list', 'ps'],
    summary: 'list your instances',
    operands: [],
    options: { ...WATCH, ...LIST_OPTIONS },
    load: async () => (await import('../commands/instances.ts')).list,
  },
  {
    name: 'show',
    summary: 'show an instance',
    operands: INSTANCE,
    options: JSON_OPTION,
    load: async () => (await import('../commands/instances.ts')).show,
  },
  {
    name: 'logs',
    summary: 'print the log of an instance',
    operands: INSTANCE,
    options: {
      follow: { type: 'boolean', short: 'f', help: 'follow new lines' },
      tail: { type: 'string', short: 'n', value: 'N', form: 'count', least: 0, help: 'only the last lines' },
      since: {
        type: 'string',
        value: 'TIME',
        form: 'since',
        help: 'only lines of the last 10m, or since an RFC 3339 time',
      },
      previous: { type: 'boolean', help: 'before the last restart of the container' },
      start: { type: 'string', value: 'N', form: 'count', help: 'of the N-th start, which berth events numbers' },
      ...JSON_OPTION,
    },
    load: async () => (await import('../commands/logs.ts')).logs,
  },
  {
    name: 'events',
    summary: 'show the history of an instance',
    operands: INSTANCE,
    options: { follow: { type: 'boolean', short: 'f', help: 'follow new events' }, ...JSON_OPTION },
    load: async () => (await import('../commands/logs.ts')).events,
  },
  {
    name: 'ssh',
    summary: 'log in to an instance, or run a command there',
    operands: ['[INSTANCE]', '[COMMAND...]'],
    passesOn: true,
    options: {
      ...IDENTITY,
      forward: {
        type: 'string',
        short: 'L',
        multiple: true,
        value: 'PORT:HOST:PORT',
        help: 'forward a port of this machine',
      },
      'no-command': { type: 'boolean', short: 'N', help: 'only forward ports' },
      tty: { type: 'boolean', short: 't', help: 'a terminal for the command' },
      config: { type: 'boolean', help: 'write entries for ~/.ssh/config' },
    },
    examples: ['berth ssh i-1a2b3c nvidia-smi', 'berth ssh -L 8080:localhost:8080 i-1a2b3c', 'berth ssh --config'],
    load: async () => (await import('../commands/ssh.ts')).ssh,
  },
  {
    name: 'cp',
    summary: 'copy files to or from an instance, which is INSTANCE:PATH',
    operands: ['SOURCE', 'DESTINATION'],
    repeats: true,
    options: {
      recursive: { type: 'boolean', short: 'r', help: 'folders too' },
      rsync: { type: 'boolean', help: 'only what differs, with rsync' },
      ...IDENTITY,
    },
    examples: ['berth cp train.py i-1a2b3c:/workspace/', 'berth cp -r i-1a2b3c:/workspace/out .'],
    load: async () => (await import('../commands/ssh.ts')).copy,
  },
  {
    name: 'open',
    aliases: ['dashboard'],
    summary: 'open a port, Jupyter or the dashboard in a browser',
    operands: ['[INSTANCE]', '[PORT]'],
    options: {
      path: { type: 'string', value: 'PATH', help: 'the first page, by default /' },
      ...URL_ONLY,
      ...JSON_OPTION,
    },
    examples: ['berth open', 'berth open i-1a2b3c', 'berth open i-1a2b3c 7860 --path /docs'],
    load: async () => (await import('../commands/open.ts')).open,
  },
  {
    name: 'code',
    summary: 'open a folder of an instance in VS Code',
    operands: ['INSTANCE', '[FOLDER]'],
    options: {
      editor: { type: 'string', value: 'NAME', values: ['code', 'cursor'], help: 'code (default) or cursor' },
      ...IDENTITY,
      ...URL_ONLY,
    },
    examples: ['berth code i-1a2b3c', 'berth code i-1a2b3c /workspace/src --editor cursor'],
    load: async () => (await import('../commands/code.ts')).code,
  },
  {
    name: 'top',
    summary: 'show what an instance used in the last hour',
    operands: INSTANCE,
    options: { watch: { type: 'boolean', short: 'w', help: 'draw it again with new values' }, ...JSON_OPTION },
    load: async () => (await import('../commands/top.ts')).top,
  },
  {
    name: 'stop',
    summary: 'stop an instance; asks where its disk would be lost',
    operands: INSTANCE,
    options: { ...YES, ...JSON_OPTION },
    load: async () => (await import('../commands/change.ts')).stop,
  },
  {
    name: 'start',
    summary: 'start an instance that is stopped',
    operands: INSTANCE,
    options: { ...NO_WAIT, ...JSON_OPTION },
    load: async () => (await import('../commands/change.ts')).start,
  },
  {
    name: 'extend',
    summary: 'let an instance run for longer',
    operands: ['INSTANCE', 'TIME'],
    options: JSON_OPTION,
    examples: ['berth extend i-1a2b3c 12h'],
    load: async () => (await import('../commands/change.ts')).extend,
  },
  {
    name: 'set',
    summary: 'change settings (use "none" to clear)',
    operands: INSTANCE,
    clears: true,
    options: {
      label: { type: 'string', value: 'TEXT', help: 'free text' },
      'max-price': {
        type: 'string',
        value: 'AMOUNT',
        form: 'amount',
        field: 'max_price_per_hour',
        help: 'most that a start may cost per hour',
      },
      ...LIFE,
      ...JSON_OPTION,
    },
    load: async () => (await import('../commands/change.ts')).set,
  },
  {
    name: 'rm',
    aliases: ['delete', 'destroy'],
    summary: 'delete instances and give their GPUs back',
    operands: ['[INSTANCE...]'],
    repeats: true,
    options: { all: { type: 'boolean', short: 'a', help: 'all your instances' }, ...YES },
    load: async () => (await import('../commands/change.ts')).remove,
  },
];
