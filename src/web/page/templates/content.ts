import type { TemplateBody, TemplateRecord } from '../../../wire/records.ts';

/** The fields of the form, each as the person types it. */
export interface Draft {
  name: string;
  image: string;
  runtype: '' | 'ssh' | 'jupyter' | 'args';
  disk: string;
  registry: string;
  /** A line `NAME=value` for each variable. */
  env: string;
  /** A port on each line, as Docker writes it, and its name where it has one: `8080 web`, `53/udp`. */
  ports: string;
  /** A word of the command, and of its arguments, on each line. */
  command: string;
  args: string;
  script: string;
}

export const EMPTY: Draft = {
  name: '',
  image: '',
  runtype: '',
  disk: '',
  registry: '',
  env: '',
  ports: '',
  command: '',
  args: '',
  script: '',
};

/** The lines of a text that are not empty. */
export function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** The number that a text writes. A text that is none goes to the API as it is, which has the words for it. */
export function numberOf(text: string): number {
  const number = Number(text);
  return Number.isFinite(number) ? number : (text as unknown as number);
}

function portOf(line: string): NonNullable<TemplateBody['ports']>[number] {
  const [place = '', name] = line.trim().split(/\s+/);
  const [number = '', protocol = 'tcp'] = place.split('/');
  const declared = { container_port: numberOf(number), protocol: protocol.toLowerCase() as 'tcp' | 'udp' };
  return name === undefined ? declared : { ...declared, name };
}

/** Ports, one on each line: `8080 web`, `53/udp`. */
export function portsOf(text: string): NonNullable<TemplateBody['ports']> {
  return linesOf(text).map(portOf);
}

function variableOf(line: string): [string, string] {
  const equals = line.indexOf('=');
  return equals === -1 ? [line.trim(), ''] : [line.slice(0, equals).trim(), line.slice(equals + 1)];
}

/** The body of POST and PUT. What was left empty is left out; the API has the words for what is wrong. */
export function bodyOf(draft: Draft): TemplateBody {
  const { name, image, runtype, disk, registry, env, ports, command, args, script } = draft;
  return {
    name,
    ...(image !== '' && { image }),
    ...(runtype !== '' && { runtype }),
    ...(disk !== '' && { disk_gb: numberOf(disk) }),
    ...(registry !== '' && { registry }),
    ...(linesOf(env).length > 0 && { env: Object.fromEntries(linesOf(env).map(variableOf)) }),
    ...(linesOf(ports).length > 0 && { ports: portsOf(ports) }),
    ...(runtype === 'args' && linesOf(command).length > 0 && { command: linesOf(command) }),
    ...(runtype === 'args' && linesOf(args).length > 0 && { args: linesOf(args) }),
    ...(script !== '' && { on_start: script }),
  };
}

/** Whether the form can hold all of a template: a word or a value of several lines would become several. */
export function isPlain({ env, command, args }: TemplateRecord): boolean {
  const words = [...(command ?? []), ...(args ?? [])];
  return (
    [...Object.values(env), ...words].every((text) => !text.includes('\n')) && words.every((word) => word.trim() !== '')
  );
}

function lineOf({ container_port: port, protocol, name }: TemplateRecord['ports'][number]): string {
  return `${port}${protocol === 'tcp' ? '' : `/${protocol}`}${name === null ? '' : ` ${name}`}`;
}

export function draftOf(template: TemplateRecord): Draft {
  const { name, image, runtype, disk_gb: disk, registry, env, ports, command, args, on_start: script } = template;
  return {
    name,
    image: image ?? '',
    runtype: runtype ?? (command === null && args === null ? '' : 'args'),
    disk: disk === null ? '' : String(disk),
    registry: registry ?? '',
    env: Object.entries(env)
      .map(([variable, value]) => `${variable}=${value}`)
      .join('\n'),
    ports: ports.map(lineOf).join('\n'),
    command: (command ?? []).join('\n'),
    args: (args ?? []).join('\n'),
    script: script ?? '',
  };
}
