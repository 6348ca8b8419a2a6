import { createHash } from 'node:crypto';
import { withItemsFilled } from '../instance-template.ts';
import type { GpuInstanceSpec } from './gpu-instance.ts';

/** Characters: a text of this length costs no more than the digest that would stand for it. */
const KEPT = 128;
const DIGEST = 'sha256:';

/** The specs that were made here, as long as they live. */
const slimmed = new WeakSet<object>();

/** A text, or what stands for a long one: its digest. That of a digest is the digest itself. */
function digested(text: string): string {
  if (text.length <= KEPT) return text;
  return DIGEST + createHash('sha256').update(text).digest('hex');
}

/**
 * A spec whose long texts are digests: a spec may have 1.5 MB, of which nothing but the start of a pod reads more than
 * the names and whether it changed. Free text that concerns no start is left out. A spec without long texts stays whole.
 */
export function slimSpec(spec: GpuInstanceSpec): GpuInstanceSpec {
  const { stats: _stats, requestedRuntype, onStart, env, command, args, ...rest } = withItemsFilled(spec);
  const slim = {
    ...rest,
    ...(requestedRuntype !== undefined && { requestedRuntype: digested(requestedRuntype) }),
    ...(onStart !== undefined && { onStart: digested(onStart) }),
    ...(env !== undefined && { env: env.map(({ name, value = '' }) => ({ name, value: digested(value) })) }),
    ...(command !== undefined && { command: command.map(digested) }),
    ...(args !== undefined && { args: args.map(digested) }),
  };
  const texts = (of: GpuInstanceSpec): (string | undefined)[] => [
    of.onStart,
    ...(of.env ?? []).map(({ value = '' }) => value),
    ...(of.command ?? []),
    ...(of.args ?? []),
  ];
  const whole = texts(spec);
  if (texts(slim).some((text, index) => text !== whole[index])) slimmed.add(slim);
  return slim;
}

/** Whether a spec lacks texts that a pod needs: it comes from a cache, and must be read from the API server. */
export function isSlim(spec: GpuInstanceSpec): boolean {
  return slimmed.has(spec);
}
