import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  isImageFault,
  nextStartOf,
  nodesToAvoid,
  withFailure,
  withoutCount,
} from '../../../src/controllers/gpu-instance/decide/failures.ts';
import { nodeFailuresOf } from '../../../src/inventory/nodes/quarantine.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const HOUR = 3_600_000;

/** When an instance with these failures may start again. */
function nextStart(failures: GpuInstanceStatus['failures']): number {
  return nextStartOf(gpuInstance('one', {}, failures && { failures }), Infinity);
}

test('pauses grow from a second to ten minutes', () => {
  const now = Date.UTC(2026, 0, 1);
  const lastTime = new Date(now).toISOString();
  expect([1, 2, 3, 4, 5, 6, 50].map((count) => nextStart({ count, lastTime }) - now)).toEqual([
    1e3, 4e3, 16e3, 64e3, 256e3, 600e3, 600e3,
  ]);
});

test('a clock that was a month ahead makes no pause of a month', () => {
  const now = Date.UTC(2026, 0, 1);
  const at = (ms: number) => new Date(now + ms).toISOString();
  const next = (ms: number) => {
    const [failures, preemptions] = [1, 1].map((count) => ({ count, lastTime: at(ms) }));
    return [{ failures }, { preemptions }].map((status) => nextStartOf(gpuInstance('one', {}, status), now) - now);
  };
  expect(next(9_000)).toEqual([10_000, 14_000]);
  expect(next(30 * 24 * HOUR)).toEqual([-now, -now]);
});

test('at most eleven pods an hour, however fast each of them fails', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 30, maxLength: 30 }), (lifetimes) => {
      let now = Date.UTC(2026, 0, 1);
      let failures: GpuInstanceStatus['failures'];
      const starts: number[] = [];
      for (const upMs of lifetimes) {
        now = Math.max(now, nextStart(failures));
        starts.push(now);
        now += upMs;
        failures = withFailure(failures, { now, upMs, node: undefined });
      }
      for (const start of starts) {
        expect(starts.filter((other) => other >= start && other < start + HOUR).length).toBeLessThanOrEqual(11);
      }
    }),
  );
});

test('after a start that ran for long, earlier failures are forgotten', () => {
  const now = Date.UTC(2026, 0, 1);
  const before = { count: 5, lastTime: new Date(now - HOUR).toISOString() };
  expect(withFailure(before, { now, upMs: HOUR, node: 'n' })).toMatchObject({ count: 1, nodes: ['n'] });
  expect(withFailure(before, { now, upMs: 1000, node: 'n' })).toMatchObject({ count: 6 });
});

test('a node where a start failed is avoided for a while', () => {
  const now = Date.UTC(2026, 0, 1);
  const failures = withFailure(undefined, { now, upMs: 0, node: 'n' });
  expect(nodesToAvoid(failures, now + 599_000)).toEqual(['n']);
  expect(nodesToAvoid(failures, now + 600_000)).toEqual([]);
});

test('a node that refused a place is avoided, and nobody blames it', () => {
  const now = Date.UTC(2026, 0, 1);
  const blamed = withFailure(undefined, { now, upMs: 0, node: 'bad' });
  const failures = withFailure(blamed, { now, upMs: 0, node: undefined, avoided: 'n' });
  expect(nodesToAvoid(failures, now + 599_000)).toEqual(['bad', 'n']);
  expect(nodesToAvoid(failures, now + 600_000)).toEqual([]);
  expect(nodeFailuresOf(gpuInstance('one', {}, failures && { failures })).map(({ node }) => node)).toEqual(['bad']);
  expect(withoutCount(failures, now)).toMatchObject({ count: 0, nodes: ['bad'], avoided: ['n'] });
  expect(withoutCount(failures, now + 600_000)).toBeUndefined();
});

test.each([
  ['CreateContainerConfigError', 'container has runAsNonRoot and image will run as root'],
  ['CreateContainerError', 'failed to generate container "x" spec: no command specified'],
  ['CreateContainerError', 'container has runAsNonRoot and image has non-numeric user (me)'],
  ['CreateContainerError', 'unable to find user nobody-here: no matching entries in passwd file'],
  [
    'RunContainerError',
    'runc create failed: unable to start container process: exec: "x": executable file not found in $PATH',
  ],
  [
    'RunContainerError',
    'unable to start container process: error during container init: exec: "/x.sh": permission denied: unknown',
  ],
  ['RunContainerError', 'unable to start container process: chdir to cwd ("/x") set in config.json failed'],
])('%s, %s: not the fault of the node', (reason, message) => {
  expect(isImageFault({ reason, message })).toBe(true);
});

test.each([
  ['CreateContainerError', 'context deadline exceeded'],
  [
    'RunContainerError',
    'unable to retrieve OCI runtime error: exec: "nvidia-container-runtime": executable file not found in $PATH',
  ],
  [
    'RunContainerError',
    'unable to start container process: error during container init: error running prestart hook #0',
  ],
  ['CreateContainerError', 'failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=0'],
])('%s, %s: the fault of the node', (reason, message) => {
  expect(isImageFault({ reason, message })).toBe(false);
});
