import { type Command, JSON_OPTION, LIST_OPTIONS, type Options, YES } from '../options.ts';
import { LIFE, PROGRAM } from '../rent/body.ts';
import { FILTERS } from '../rent/search.ts';
import { ACCOUNT } from './account.ts';
import { INSTANCES, NO_WAIT } from './instances.ts';

const ACCESS: Command[] = [
  {
    name: 'login',
    summary: 'store a server and the API key for it',
    operands: ['URL'],
    names: 'address',
    options: {
      web: { type: 'boolean', short: 'w', help: 'open the page that makes keys in a browser' },
      'plain-http': { type: 'boolean', help: 'send the key without encryption, where others can read it' },
    },
    examples: ['berth login https://gpu.example.com', 'berth login https://gpu.example.com <key.txt'],
    secret: 'key',
    load: async () => (await import('../commands/login.ts')).login,
  },
  {
    name: 'logout',
    summary: 'forget the stored key',
    operands: [],
    options: {},
    load: async () => (await import('../commands/login.ts')).logout,
  },
  {
    name: 'whoami',
    summary: 'show your server, project and key',
    operands: [],
    options: JSON_OPTION,
    load: async () => (await import('../commands/login.ts')).whoami,
  },
  {
    name: 'profiles',
    summary: 'list your logins on this machine',
    operands: [],
    options: LIST_OPTIONS,
    examples: ['berth --profile work login https://gpu.example.com', 'berth --profile work ls'],
    load: async () => (await import('../commands/profiles.ts')).profiles,
  },
  {
    name: 'profiles use',
    summary: 'choose the login of the next commands',
    operands: ['PROFILE'],
    names: 'profile',
    options: {},
    load: async () => (await import('../commands/profiles.ts')).useProfile,
  },
  {
    name: 'api',
    summary: 'call the HTTP interface, and print its answer',
    operands: ['PATH'],
    options: {
      method: {
        type: 'string',
        short: 'X',
        value: 'METHOD',
        values: ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'],
        help: 'by default GET, and POST with --input',
      },
      input: { type: 'string', value: 'FILE', help: 'JSON to send; - is the standard input' },
    },
    examples: ['berth api /limits', 'berth api -X PATCH /instances/i-1a2b3c --input body.json'],
    load: async () => (await import('../commands/api.ts')).callApi,
  },
];

const OFFER: Options = {
  offer: {
    type: 'string',
    value: 'ID',
    form: 'id',
    names: 'offer',
    field: 'ask_id',
    help: 'the offer; by default the cheapest free one that fits',
  },
};

const TEMPLATE: Options = {
  template: {
    type: 'string',
    short: 't',
    value: 'TEMPLATE',
    names: 'template',
    field: 'template_id',
    help: 'id or name, of berth templates',
  },
};

/** Of LIFE and PROGRAM, what a program may have that ends by itself. */
const { 'idle-timeout': _idle, key: _key, ...RUN_LIFE } = LIFE;
const { runtype: _runtype, 'on-start': _onStart, ...RUN_PROGRAM } = PROGRAM;

const RUN: Command = {
  name: 'run',
  summary: 'run one program on a GPU; give it back at its end',
  operands: ['[-- WORD...]'],
  options: {
    upload: { type: 'string', short: 'u', value: 'FOLDER', help: 'its files go to /workspace, where it runs' },
    exclude: { type: 'string', multiple: true, value: 'PATTERN', help: 'files to leave out, as tar knows them' },
    output: { type: 'string', short: 'o', value: 'FOLDER', help: 'for what it writes; by default berth-ID' },
    'no-fetch': { type: 'boolean', help: 'fetch nothing of what it writes' },
    attach: { type: 'string', value: 'INSTANCE', names: 'instance', help: 'come back to a run that still runs' },
    ...OFFER,
    ...FILTERS,
    ...TEMPLATE,
    ...RUN_LIFE,
    ...RUN_PROGRAM,
    queue: { type: 'boolean', help: 'wait in line when no place is free' },
    ...YES,
    json: { type: 'boolean', help: 'print JSON for programs' },
  },
  examples: ['berth run --gpu l4 -- nvidia-smi', 'berth run --gpu l4 --upload . --yes -- python train.py'],
  load: async () => (await import('../commands/run.ts')).run,
};

const RENTING: Command[] = [
  {
    name: 'offers',
    summary: 'list what is for rent, whole GPUs first',
    operands: [],
    options: { ...FILTERS, all: { type: 'boolean', short: 'a', help: 'also what has no free place' }, ...LIST_OPTIONS },
    load: async () => (await import('../commands/offers.ts')).offers,
  },
  {
    name: 'rent',
    aliases: ['create'],
    summary: 'rent an instance; asks for what is not given',
    operands: ['[-- WORD...]'],
    options: {
      ...OFFER,
      ...FILTERS,
      ...TEMPLATE,
      ...LIFE,
      ...PROGRAM,
      root: { type: 'boolean', help: 'be root, whatever user the image names' },
      monitoring: { type: 'boolean', help: 'run an exporter of GPU metrics' },
      'keep-disk': { type: 'boolean', help: 'keep the disk when the instance is deleted' },
      queue: { type: 'boolean', help: 'wait in line when no place is free' },
      ssh: { type: 'boolean', help: 'log in when it runs' },
      code: { type: 'boolean', help: 'open it in VS Code when it runs' },
      ...NO_WAIT,
      ...YES,
      ...JSON_OPTION,
    },
    examples: [
      'berth rent',
      'berth rent --gpu h100 --memory 80 --max-duration 12h --yes',
      'berth rent -g l4 -i vllm/vllm-openai:v0.9.0 -p 8000 -e HF_TOKEN -- --model M',
    ],
    load: async () => (await import('../commands/rent.ts')).rent,
  },
  RUN,
];

const MODELS: Command[] = [
  {
    name: 'models',
    summary: 'list the models that can be called',
    operands: [],
    options: LIST_OPTIONS,
    load: async () => (await import('../commands/chat.ts')).models,
  },
  {
    name: 'chat',
    summary: 'ask a model; without a question: talk to it',
    operands: ['[QUESTION...]'],
    repeats: true,
    options: {
      model: { type: 'string', short: 'm', value: 'MODEL', names: 'model', help: 'model, of berth models' },
      system: { type: 'string', value: 'TEXT', help: 'system prompt' },
    },
    load: async () => (await import('../commands/chat.ts')).chat,
  },
];

/** All commands, in the groups and the order of help. */
export const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Access', ACCESS],
  ['Renting', RENTING],
  ['Instances', INSTANCES],
  ['Account', ACCOUNT],
  ['Models', MODELS],
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(([, commands]) => commands);

/** What may stand first in a command line, beside the aliases. */
export function commandNames(): string[] {
  return [...new Set(COMMANDS.map(({ name }) => name.split(' ', 1)[0] ?? ''))].concat(
    'completion',
    'man',
    'help',
    'version',
  );
}

/** The command that the words begin with, and the words after its name; undefined when there is none. */
export function findCommand(words: readonly string[]): { command: Command; args: readonly string[] } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ');
    const command = COMMANDS.find((one) => one.name === name || one.aliases?.includes(name));
    if (command !== undefined && words.length >= length) return { command, args: words.slice(length) };
  }
  return undefined;
}
