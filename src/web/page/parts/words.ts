import type { InstanceRecord } from '../../../wire/records.ts';

/** A duration in words that are short enough for a table. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const MINUTE_MS = 60_000;

/** How old something is, for a list: to the minute. */
export function age(ms: number): string {
  return ms < MINUTE_MS ? 'just now' : duration(ms).replace(/ min \d+ s$/, ' min');
}

/** The same in a sentence. */
export function ago(ms: number): string {
  return ms < MINUTE_MS ? age(ms) : `${age(ms)} ago`;
}

/** A text of the API with its times as clocks here show them, and the date where that is not today's. */
export function localTimes(text: string, today: number): string {
  return text.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z/g, (at) => {
    const date = new Date(at);
    const isToday = date.toDateString() === new Date(today).toDateString();
    return isToday ? date.toLocaleTimeString() : date.toLocaleString();
  });
}

/** Making one takes longer than a hundred uses. */
const formats = new Map<string, Intl.NumberFormat>();

function formatOf(currency: string, digits: number, least: number | undefined): Intl.NumberFormat {
  const key = `${currency} ${digits} ${least}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency,
    maximumFractionDigits: Math.max(digits, least ?? 0),
    ...(least !== undefined && { minimumFractionDigits: least }),
  });
  formats.set(key, made);
  return made;
}

export function money(amount: number | string, currency: string, digits = 2, least?: number): string {
  const value = Number(amount);
  try {
    return formatOf(currency, digits, least).format(value);
  } catch {
    // A code that is no currency of ISO 4217.
    return `${value.toFixed(2)} ${currency}`;
  }
}

/** What a unit costs: to the last digit that a price may have, because many units are paid. */
export function priceText(amount: number | string, currency: string): string {
  return money(amount, currency, 6);
}

export function cpus(count: number): string {
  return count === 1 ? '1 CPU' : `${count} CPUs`;
}

/** A GPU product without its maker, as people say it: `H100 80GB HBM3`. */
export function shortGpu(name: string): string {
  return name.replace(/^NVIDIA-/, '').replaceAll('-', ' ');
}

export function memory(mb: number): string {
  return mb >= 1024 ? `${Math.round((mb / 1024) * 10) / 10} GiB` : `${mb} MiB`;
}

/** The reason of an event, which programs read as one word: GPUBecameUnhealthy is "GPU became unhealthy". */
export function reasonWords(reason: string): string {
  const words = reason.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  const [first = '', ...more] = words.split(' ');
  return [first, ...more.map((word) => (/[a-z]/.test(word) ? word.toLowerCase() : word))].join(' ');
}

/** What a state means, for somebody who never saw it. */
export const STATES: Readonly<Record<InstanceRecord['state'], string>> = {
  pending: 'Queued',
  scheduling: 'Scheduling',
  pulling: 'Pulling the image',
  starting: 'Starting',
  running: 'Running',
  stopping: 'Stopping',
  stopped: 'Stopped',
  interrupted: 'Interrupted, comes back',
  failed: 'Failed',
  deleting: 'Deleting',
};

export function titleOf({ id, name }: Pick<InstanceRecord, 'id' | 'name'>): string {
  return name === null || name === '' ? id : name;
}

export function gpus({ gpu_count: count, gpu_name: name, mig_profile: profile }: InstanceRecord): string {
  return gpuWords(count, name ?? 'any GPU', profile);
}

/** GPUs by number and product; the products of some drivers name the MIG profile already. */
export function gpuWords(count: number, product: string, profile: string | null): string {
  return `${count} × ${product}${profile === null || product.endsWith(profile) ? '' : ` ${profile}`}`;
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** The name of a user, short enough for a line. */
export function shortUser(username: string): string {
  return username.replace(SERVICE_ACCOUNT, '$1/$2');
}

/**
 * What the API expects of a field, in the words of a form. `mostGb`: what the form knows of disks; else the refusal may say
 * so.
 */
export function plainly(path: string, expected: string, mostGb = /<=(\d+)/.exec(expected)?.[1]): string {
  if (path === 'disk_gb') return `Write a whole number of GB${mostGb === undefined ? '' : `, from 1 to ${mostGb}`}.`;
  if (path === 'max_duration' || path === 'idle_timeout') return 'Write a time such as 90m, 12h or 1h30m.';
  if (path === 'max_price_per_hour') return 'Write an amount such as 1.20.';
  const sentence = expected.replace(/^expected /, 'Expected ').replace(/(?<!\.)$/, '.');
  const variable = path.startsWith('env.') ? `${path.slice('env.'.length)}: ` : '';
  return sentence.startsWith(variable) ? sentence : variable + sentence;
}
