import type { KubeObject } from '../../../src/kube/types.ts';

const TEXTS = new WeakMap<KubeObject, string>();

/** The object as JSON. No object in a store is ever changed. */
export function textOf(object: KubeObject): string {
  let text = TEXTS.get(object);
  if (text === undefined) {
    text = JSON.stringify(object);
    TEXTS.set(object, text);
  }
  return text;
}
