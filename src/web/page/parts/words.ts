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

/** Making one takes longer than a hundred uses. */
const formats = new Map<string, Intl.NumberFormat>();

function formatOf(currency: string, digits: number): Intl.NumberFormat {
  const key = `${currency} ${digits}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat(undefined, { style: 'currency', currency, maximumFractionDigits: digits });
  formats.set(key, made);
  return made;
}

export function money(amount: number | string, currency: string, digits = 2): string {
  const value = Number(amount);
  try {
    return formatOf(currency, digits).format(value);
  } catch {
    // A code that is no currency of ISO 4217.
    return `${value.toFixed(2)} ${currency}`;
  }
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
