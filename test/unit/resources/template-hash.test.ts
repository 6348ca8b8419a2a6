import { expect, it } from 'vitest';
import { freeTextOf } from '../../../src/http/features/instances/free-text.ts';
import { type InstanceTemplateSpec, templateHash } from '../../../src/resources/instance-template.ts';

function specOf(onStart: string): { spec: InstanceTemplateSpec; reads: () => number } {
  let reads = 0;
  const spec = {
    displayName: '',
    get onStart() {
      reads += 1;
      return onStart;
    },
  };
  return { spec, reads: () => reads };
}

it.each([
  ['hash', templateHash],
  ['length', freeTextOf],
])('each version of a template is read once for its %s, however often its tenant lists a thousand', (_, read) => {
  const { spec, reads } = specOf('echo a');
  const first = read(spec);
  const once = reads();
  for (let again = 0; again < 100; again += 1) expect(read(spec)).toBe(first);
  expect(reads()).toBe(once);
  expect(read(specOf('echo other').spec)).not.toBe(first);
});
