import { type Command, JSON_OPTION, type Options, YES } from '../options.ts';
import { LIFE } from '../rent/body.ts';

const INSTANCE = ['INSTANCE'];
const IDENTITY: Options = {
  identity: { type: 'string', short: 'i', value: 'FILE', help: 'private key to log in with' },
};

/** Returns before the start is over. */
export const NO_WAIT: Options = { 'no-wait': { type: 'boolean', help: 'return at once' } };

/** Commands for instances that are rented. */
export const INSTANCES: Command[] = [
  {
    name: 'ls',
    summary: 'list your instances',
    operands: [],
    options: JSON_OPTION,
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
    summary: 'print what an instance says',
    operands: INSTANCE,
    options: {
      follow: { type: 'boolean', short: 'f', help: 'go on with new lines' },
      tail: { type: 'string', short: 'n', value: 'N', help: 'only the last lines' },
      since: { type: 'string', value: 'TIME', help: 'only lines of the last 10m, or since an RFC 3339 time' },
      previous: { type: 'boolean', help: 'before the last restart of the container' },
      ...JSON_OPTION,
    },
    load: async () => (await import('../commands/logs.ts')).logs,
  },
  {
    name: 'events',
    summary: 'tell what happened to an instance',
    operands: INSTANCE,
    options: JSON_OPTION,
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
    name: 'stop',
    summary: 'stop an instance and keep its disk',
    operands: INSTANCE,
    options: JSON_OPTION,
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
    summary: 'change name, label, end or keys; none clears',
    operands: INSTANCE,
    options: {
      label: { type: 'string', value: 'TEXT', help: 'free text' },
      ...LIFE,
      ...JSON_OPTION,
    },
    load: async () => (await import('../commands/change.ts')).set,
  },
  {
    name: 'rm',
    summary: 'delete an instance and give its GPUs back',
    operands: INSTANCE,
    options: YES,
    load: async () => (await import('../commands/change.ts')).remove,
  },
];
