import { type Command, JSON_OPTION, type Options } from '../options.ts';
import { NAMED, PROGRAM } from '../rent/body.ts';
import { IMAGE } from '../rent/search.ts';

const TEMPLATE_OPTIONS: Options = {
  file: {
    type: 'string',
    short: 'f',
    value: 'FILE',
    help: 'the whole template as JSON, in place of other options',
  },
  ...NAMED,
  ...IMAGE,
  ...PROGRAM,
  ...JSON_OPTION,
};

/** Commands for what a tenant has beside instances. */
export const ACCOUNT: Command[] = [
  {
    name: 'keys',
    summary: 'list your SSH keys',
    operands: [],
    options: JSON_OPTION,
    hint: 'berth keys add registers an SSH key. API keys are made on the page /dashboard of the server.',
    load: async () => (await import('../commands/keys.ts')).keys,
  },
  {
    name: 'keys add',
    summary: 'register an SSH public key, by default that of ~/.ssh',
    operands: ['[FILE]'],
    options: { ...NAMED, ...JSON_OPTION },
    load: async () => (await import('../commands/keys.ts')).addKey,
  },
  {
    name: 'keys rm',
    summary: 'delete an SSH key and end its sessions',
    operands: ['ID'],
    options: {},
    load: async () => (await import('../commands/keys.ts')).removeKey,
  },
  {
    name: 'templates',
    summary: 'list templates',
    operands: [],
    options: JSON_OPTION,
    load: async () => (await import('../commands/templates.ts')).templates,
  },
  {
    name: 'templates show',
    summary: 'show all of a template, as JSON',
    operands: ['ID'],
    options: {},
    load: async () => (await import('../commands/templates.ts')).showTemplate,
  },
  {
    name: 'templates create',
    summary: 'make a template',
    operands: ['[-- WORD...]'],
    options: TEMPLATE_OPTIONS,
    load: async () => (await import('../commands/templates.ts')).createTemplate,
  },
  {
    name: 'templates replace',
    summary: 'give a template another content',
    operands: ['ID', '[-- WORD...]'],
    options: TEMPLATE_OPTIONS,
    load: async () => (await import('../commands/templates.ts')).replaceTemplate,
  },
  {
    name: 'templates rm',
    summary: 'delete a template',
    operands: ['ID'],
    options: {},
    load: async () => (await import('../commands/templates.ts')).removeTemplate,
  },
  {
    name: 'registries',
    summary: 'list credentials for private images',
    operands: [],
    options: JSON_OPTION,
    load: async () => (await import('../commands/registries.ts')).registries,
  },
  {
    name: 'registries add',
    summary: 'store some; asks for the password',
    operands: ['NAME', 'SERVER', 'USER'],
    options: JSON_OPTION,
    examples: ['berth registries add ghcr ghcr.io octocat <token.txt'],
    secret: 'password',
    load: async () => (await import('../commands/registries.ts')).addRegistry,
  },
  {
    name: 'registries rm',
    summary: 'delete credentials',
    operands: ['NAME'],
    options: {},
    load: async () => (await import('../commands/registries.ts')).removeRegistry,
  },
  {
    name: 'webhooks',
    summary: 'list URLs that are told what happens',
    operands: [],
    options: JSON_OPTION,
    load: async () => (await import('../commands/webhooks.ts')).webhooks,
  },
  {
    name: 'webhooks add',
    summary: 'have a URL told; prints its signing secret',
    operands: ['URL'],
    options: {
      event: {
        type: 'string',
        multiple: true,
        value: 'TYPE',
        help: 'only events of this type; again for more types',
      },
      ...NAMED,
      ...JSON_OPTION,
    },
    examples: ['berth webhooks add https://hooks.example.com/berth --event instance.ready'],
    load: async () => (await import('../commands/webhooks.ts')).addWebhook,
  },
  {
    name: 'webhooks show',
    summary: 'show a webhook, and how its deliveries go',
    operands: ['ID'],
    options: JSON_OPTION,
    load: async () => (await import('../commands/webhooks.ts')).showWebhook,
  },
  {
    name: 'webhooks rotate',
    summary: 'replace the signing secret; prints the new one',
    operands: ['ID'],
    options: JSON_OPTION,
    load: async () => (await import('../commands/webhooks.ts')).rotateWebhook,
  },
  {
    name: 'webhooks rm',
    summary: 'delete a webhook',
    operands: ['ID'],
    options: {},
    load: async () => (await import('../commands/webhooks.ts')).removeWebhook,
  },
  {
    name: 'usage',
    summary: 'show costs and limits',
    operands: [],
    options: {
      since: {
        type: 'string',
        value: 'DAY',
        help: 'first day in UTC; without it the first of the month',
      },
      until: { type: 'string', value: 'DAY', help: 'last day; by default today' },
      by: { type: 'string', value: 'GROUP', help: 'instance (by default), day, key or model' },
      ...JSON_OPTION,
    },
    examples: ['berth usage --since 2026-10-01 --until 2026-10-31 --by day'],
    load: async () => (await import('../commands/usage.ts')).usage,
  },
];
