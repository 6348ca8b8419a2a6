import { hourlyPrice } from '../../../wire/hourly-price.ts';
import type { CreateInstance, FoundOffer } from '../../../wire/records.ts';
import { linesOf, numberOf, portsOf } from '../templates/content.ts';

export interface Variable {
  name: string;
  value: string;
}

/** What a person filled in, each field as it was typed. */
export interface Order {
  type: 0 | 1;
  name: string;
  image: string;
  /** The number of a template; empty without one. */
  template: string;
  registry: string;
  /** Empty: as the template says, and SSH without one. */
  runtype: '' | 'ssh' | 'jupyter' | 'args';
  disk: string;
  diskPolicy: 'delete' | 'retain';
  longest: string;
  idle: string;
  expiry: 'stop' | 'delete';
  highest: string;
  variables: readonly Variable[];
  /** A port on each line, with its name where it has one. */
  ports: string;
  /** A word on each line. */
  command: string;
  args: string;
  script: string;
  keys: readonly number[];
  monitoring: boolean;
  asRoot: boolean;
  restarts: boolean;
  waits: boolean;
}

/** Nothing is filled in. */
export const BLANK: Order = {
  type: 0,
  name: '',
  image: '',
  template: '',
  registry: '',
  runtype: '',
  disk: '',
  diskPolicy: 'delete',
  longest: '',
  idle: '',
  expiry: 'stop',
  highest: '',
  variables: [],
  ports: '',
  command: '',
  args: '',
  script: '',
  keys: [],
  monitoring: false,
  asRoot: false,
  restarts: false,
  waits: false,
};

/**
 * The body of POST /instances. What was left empty is left out; the API has the words for what is wrong. The price that
 * the person sees is the most, because the page may have read the offer long ago.
 */
export function bodyOf(order: Order, offer: Pick<FoundOffer, 'id' | 'price_per_hour'>): CreateInstance {
  const { type, name, image, template, registry, runtype, disk, longest, idle, highest, script, keys } = order;
  const named = order.variables.filter((variable) => variable.name !== '' || variable.value !== '');
  const [ports, command, args] = [portsOf(order.ports), linesOf(order.command), linesOf(order.args)];
  return {
    ask_id: offer.id,
    type,
    on_no_capacity: order.waits ? 'queue' : 'fail',
    ...(name !== '' && { name }),
    ...(template !== '' && { template_id: Number(template) }),
    ...(runtype !== '' && { runtype }),
    ...(image !== '' && { template_image: image }),
    ...(registry !== '' && { registry }),
    ...(disk !== '' && { disk_gb: numberOf(disk) }),
    ...(order.diskPolicy === 'retain' && { disk_policy: 'retain' }),
    ...(longest !== '' && { max_duration: longest }),
    ...(idle !== '' && { idle_timeout: idle }),
    // Asked only while it has an end: a later one is not to delete what nobody said.
    ...(order.expiry === 'delete' && longest + idle !== '' && { on_expiry: 'delete' }),
    max_price_per_hour: highest === '' ? hourlyPrice(offer, type === 1) : highest,
    ...(named.length > 0 && { env: Object.fromEntries(named.map((one) => [one.name, one.value])) }),
    ...(ports.length > 0 && { ports }),
    ...(runtype === 'args' && command.length > 0 && { command }),
    ...(runtype === 'args' && args.length > 0 && { args }),
    ...(runtype !== 'args' && script !== '' && { on_start: script }),
    ...(keys.length > 0 && { ssh_key_ids: [...keys] }),
    ...(order.monitoring && { install_monitoring: true }),
    ...(order.asRoot && { run_as_root: true }),
    ...(order.restarts && { on_gpu_failure: 'restart' }),
  };
}

const DURATION = /^(?:\d+(?:\.\d+)?[smh])+$/;
const HOURS = { h: 1, m: 1 / 60, s: 1 / 3600 };

/** Hours of a text such as 90m or 1h30m; undefined for any other. */
export function hoursOf(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const parts = text.split(/(?<=[smh])/);
  return parts.reduce((sum, part) => sum + Number(part.slice(0, -1)) * HOURS[part.at(-1) as keyof typeof HOURS], 0);
}
