import type { KubeObject } from '../../kube/types.ts';

const PREFIX = 'berth.dev/';
/** Lists of at most 64 names of models, of 256 characters each, of as many aliases of them, or of hosts. */
const LISTS = new Set(
  ['model-aliases', 'model-names', 'model-media-hosts', 'model-fallbacks'].map((name) => PREFIX + name),
);
const MAX_LIST = 64 * 514;
const MAX_TEXT = 256;

/**
 * Berth's own annotations of a Service or InferencePool, as long as they may be. Kubernetes lets one have 256 KiB, and whoever may write
 * Services chooses them. Adds to `problems` which are left out.
 */
export function serverAnnotations({ metadata }: KubeObject, problems: string[]): Readonly<Record<string, string>> {
  const own = Object.entries(metadata.annotations ?? {}).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(
    own.filter(([name, text]) => {
      const most = LISTS.has(name) ? MAX_LIST : MAX_TEXT;
      if (text.length <= most) return true;
      problems.push(`${name} is longer than ${most} characters`);
      return false;
    }),
  );
}
