import { type Command, JSON_OPTION, YES } from '../options.ts';
import { LIFE, PROGRAM } from '../rent/body.ts';
import { FILTERS } from '../rent/search.ts';
import { ACCOUNT } from './account.ts';
import { INSTANCES, NO_WAIT } from './instances.ts';

const ACCESS: Command[] = [
  {
    name: 'login',
    summary: 'store a server and the API key for it',
    operands: ['URL'],
    options: {},
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
];

const RENTING: Command[] = [
  {
    name: 'offers',
    summary: 'list what is for rent, cheapest first',
    operands: [],
    options: { ...FILTERS, all: { type: 'boolean', short: 'a', help: 'also what has no free place' }, ...JSON_OPTION },
    load: async () => (await import('../commands/offers.ts')).offers,
  },
  {
    name: 'rent',
    summary: 'rent an instance; asks for what is not given',
    operands: ['[-- WORD...]'],
    options: {
      offer: { type: 'string', value: 'ID', help: 'the offer; by default the cheapest free one that fits' },
      ...FILTERS,
      template: { type: 'string', short: 't', value: 'ID', help: 'template, of berth templates' },
      ...LIFE,
      ...PROGRAM,
      monitoring: { type: 'boolean', help: 'run an exporter of GPU metrics' },
      'keep-disk': { type: 'boolean', help: 'keep the disk when the instance is deleted' },
      queue: { type: 'boolean', help: 'wait in line when no place is free' },
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
];

const MODELS: Command[] = [
  {
    name: 'models',
    summary: 'list the models that can be called',
    operands: [],
    options: JSON_OPTION,
    load: async () => (await import('../commands/chat.ts')).models,
  },
  {
    name: 'chat',
    summary: 'ask a model; without a question: talk to it',
    operands: ['[QUESTION...]'],
    repeats: true,
    options: {
      model: { type: 'string', short: 'm', value: 'MODEL', help: 'model, of berth models' },
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

/** The command that the words begin with, and the words after its name; undefined when there is none. */
export function findCommand(words: readonly string[]): { command: Command; args: readonly string[] } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ');
    const command = COMMANDS.find((one) => one.name === name);
    if (command !== undefined && words.length >= length) return { command, args: words.slice(length) };
  }
  return undefined;
}
