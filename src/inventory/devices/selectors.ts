import type { DeviceClass } from '../../kube/devices.ts';
import type { Device, NamedDevice } from './slices.ts';

/** `device.driver` is a value, or an attribute is, or several claims may share the device or not. */
type Condition = { driver: string } | { isShared: boolean } | { domain: string; name: string; value: string };

// The API server has checked that quotes match.
const DRIVER = /^device\.driver\s*==\s*['"]([^'"\\]*)['"]$/;
const SHARED = /^device\.allowMultipleAllocations\s*==\s*(true|false)$/;
const ATTRIBUTE = /^device\.attributes\[['"]([^'"\\]+)['"]\]\.(\w+)\s*==\s*['"]([^'"\\]*)['"]$/;

function readCondition(term: string): Condition | undefined {
  const driver = DRIVER.exec(term)?.[1];
  if (driver !== undefined) return { driver };
  const shared = SHARED.exec(term)?.[1];
  if (shared !== undefined) return { isShared: shared === 'true' };
  const [, domain, name, value] = ATTRIBUTE.exec(term) ?? [];
  return domain === undefined || name === undefined || value === undefined ? undefined : { domain, name, value };
}

/**
 * What a class asks of its devices, selector by selector; undefined when one of them is more than equalities with `&&`
 * between them, as the classes of the drivers for GPUs are.
 */
export function readSelectors({ spec }: Pick<DeviceClass, 'spec'>): readonly Condition[][] | undefined {
  const all = (spec.selectors ?? []).map(({ cel }) =>
    (cel?.expression ?? '').split('&&').map((term) => readCondition(term.trim())),
  );
  return all.every((terms): terms is Condition[] => !terms.includes(undefined)) ? all : undefined;
}

/** An attribute as text. A name without a domain is in that of the driver. */
function textOf(attributes: Device['attributes'], key: string): string | undefined {
  return attributes?.[key]?.string;
}

/** `unknown`: the scheduler fails at it, and then allocates nothing on the node. */
type Verdict = boolean | 'unknown';

function holds(condition: Condition, { driver, device }: NamedDevice): Verdict {
  const { attributes, allowMultipleAllocations: isShared = false } = device;
  if ('driver' in condition) return driver === condition.driver;
  if ('isShared' in condition) return isShared === condition.isShared;
  const { domain, name, value } = condition;
  const text = textOf(attributes, `${domain}/${name}`) ?? (domain === driver ? textOf(attributes, name) : undefined);
  return text === undefined ? 'unknown' : text === value;
}

/** Whether a class selects a device. As in CEL, what is false decides before what is unknown. */
export function selects(selectors: readonly Condition[][], device: NamedDevice): Verdict {
  for (const terms of selectors) {
    const found = new Set(terms.map((condition) => holds(condition, device)));
    if (found.has(false)) return false;
    if (found.has('unknown')) return 'unknown';
  }
  return true;
}
