import type { KubeObject } from '../../../src/kube/types.ts';

const NOT_IN = /^(\S+) notin \(([^)]*)\)$/;

/** Whether an object has the labels that a selector asks for. Knows `a`, `a=b` and `a notin (b,c)`. */
export function selects(selector: string): (object: KubeObject) => boolean {
  const parts = selector.split(/,(?![^(]*\))/).map((one): ((object: KubeObject) => boolean) => {
    const [, excluded, values = ''] = NOT_IN.exec(one) ?? [];
    if (excluded !== undefined) {
      const all: ReadonlySet<string> = new Set(values.split(','));
      return ({ metadata }) => !all.has(metadata.labels?.[excluded] ?? '');
    }
    const [name = '', value] = one.split('=');
    if (value === undefined) return ({ metadata }) => metadata.labels?.[name] !== undefined;
    return ({ metadata }) => metadata.labels?.[name] === value;
  });
  return (object) => parts.every((part) => part(object));
}
