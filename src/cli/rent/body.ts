import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { usageFailure } from '../failure.ts';
import type { Input, Options } from '../options.ts';
import type { Environment } from '../settings.ts';

/** What an instance and a template run. */
export const PROGRAM: Options = {
  runtype: {
    type: 'string',
    value: 'KIND',
    suggested: ['ssh', 'jupyter', 'args'],
    help: 'ssh (default), jupyter or args',
  },
  disk: { type: 'string', value: 'GB', form: 'count', field: 'disk_gb', help: 'size of the disk at /workspace' },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'NAME[=TEXT]',
    help: 'variable; only NAME takes its value from here',
  },
  'env-file': { type: 'string', value: 'FILE', help: 'file with a line NAME=TEXT for each variable' },
  port: {
    type: 'string',
    short: 'p',
    multiple: true,
    value: 'PORT[/udp]',
    field: 'ports',
    help: 'port that programs in the instance serve',
  },
  'on-start': { type: 'string', value: 'FILE', help: 'shell script that runs after each start' },
  registry: {
    type: 'string',
    value: 'NAME',
    names: 'registry',
    help: 'credentials for a private image, of berth registries',
  },
};

/** What people call it. */
export const NAMED: Options = { name: { type: 'string', short: 'n', value: 'TEXT', help: 'name for people' } };

/** What an instance alone has. */
export const LIFE: Options = {
  'max-duration': { type: 'string', value: 'TIME', form: 'duration', help: 'ends each start after, for example, 12h' },
  'idle-timeout': {
    type: 'string',
    value: 'TIME',
    form: 'duration',
    help: 'ends the start after this time without a session',
  },
  'on-expiry': {
    type: 'string',
    value: 'WHAT',
    values: ['stop', 'delete'],
    help: 'what follows then: stop (default) or delete',
  },
  'on-gpu-failure': {
    type: 'string',
    value: 'DO',
    values: ['keep', 'restart'],
    help: 'when a GPU fails: keep (default) or restart',
  },
  key: {
    type: 'string',
    multiple: true,
    value: 'ID',
    form: 'id',
    field: 'ssh_key_ids',
    names: 'key',
    help: 'SSH key that opens it; by default all keys do',
  },
  ...NAMED,
};

/** Removes what is undefined. */
export function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function variable(text: string, env: Environment): [string, string] {
  const equals = text.indexOf('=');
  if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)];
  const value = env[text];
  if (equals === -1 && value !== undefined) return [text, value];
  throw usageFailure(`--env ${text} has no value, and there is no such variable here.`, 'Write --env NAME=TEXT.');
}

/** The variables of a file: lines NAME=TEXT, with empty lines and lines that begin with # between them. */
export function variablesOf(text: string): [string, string][] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return lines.map((line, index) => {
    const equals = line.indexOf('=');
    // The line itself may be a secret, so the message has only its number.
    if (equals < 1) throw usageFailure(`Variable ${index + 1} of --env-file has no =.`, 'Write lines NAME=TEXT.');
    return [line.slice(0, equals), line.slice(equals + 1)];
  });
}

function portOf(text: string): Record<string, unknown> {
  const [, port, protocol] = /^(\d{1,5})(?:\/(tcp|udp))?$/.exec(text) ?? [];
  if (port === undefined) throw usageFailure(`--port ${text} is not valid: write, for example, 8000 or 8000/udp.`);
  return present({ container_port: Number(port), protocol });
}

/** The text of a file that an option names, without the mark that Windows begins UTF-8 with; `-` is not special. */
export async function fileOf(option: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const bytes = await readFile(path).catch((error: unknown) => {
    const said = error instanceof Error ? error.message : String(error);
    throw usageFailure(`--${option}: ${said}.`, 'Write the path of a file that you can read.');
  });
  if (!isUtf8(bytes)) throw usageFailure(`--${option}: ${path} is not text in UTF-8.`, 'Save it as UTF-8.');
  return new TextDecoder().decode(bytes);
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** The fields of PROGRAM, for instances and templates. */
export async function programOf(input: Input, env: Environment): Promise<Record<string, unknown>> {
  const file = await fileOf('env-file', input.text('env-file'));
  const variables = [
    ...(file === undefined ? [] : variablesOf(file)),
    ...input.texts('env').map((one) => variable(one, env)),
  ];
  return present({
    runtype: input.text('runtype'),
    disk_gb: input.number('disk'),
    env: variables.length === 0 ? undefined : Object.fromEntries(variables),
    ports: some(input.texts('port').map(portOf)),
    on_start: await fileOf('on-start', input.text('on-start')),
    registry: input.text('registry'),
    args: some(input.rest),
  });
}

/** The ids of --key; null for none where `clear` allows it. */
function keyIds(input: Input, clear = false): readonly number[] | null | undefined {
  const words = input.texts('key');
  if (clear && words.includes('none')) {
    if (words.length === 1) return null;
    throw usageFailure('--key none is not valid with other keys.', 'Write ids, or only --key none.');
  }
  return some(words.map(Number));
}

/** The fields of LIFE. `none` clears where `clear` allows it. */
export function lifeOf(input: Input, clear = false): Record<string, unknown> {
  const text = (name: string): string | null | undefined => {
    const value = input.text(name);
    return clear && value === 'none' ? null : value;
  };
  return present({
    name: text('name'),
    max_duration: text('max-duration'),
    idle_timeout: text('idle-timeout'),
    on_expiry: input.text('on-expiry'),
    on_gpu_failure: input.text('on-gpu-failure'),
    max_price_per_hour: text('max-price'),
    ssh_key_ids: keyIds(input, clear),
  });
}
