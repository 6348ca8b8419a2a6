import { describe, expect, it } from 'vitest';
import { createKind, deleteKind, kindName } from '../../../tools/cluster/kind-cluster.ts';
import type { Outcome, run } from '../../../tools/lib/shell.ts';

const STATE = '/checkout/.berth';
const signal = new AbortController().signal;

function recorder(outcomes: Partial<Outcome>[]) {
  const calls: { args: readonly string[]; provider: string | undefined }[] = [];
  const fake: typeof run = (_command, args, options) => {
    calls.push({ args, provider: options?.env?.['KIND_EXPERIMENTAL_PROVIDER'] });
    return Promise.resolve({ code: 0, stdout: '', stderr: '', ...outcomes[calls.length - 1] });
  };
  return { calls, fake };
}

describe('the kind cluster', () => {
  it('has a name of its own in every checkout', () => {
    expect(kindName(STATE)).toMatch(/^berth-[0-9a-f]{8}$/);
    expect(kindName('/other/.berth')).not.toBe(kindName(STATE));
  });

  it('replaces a left-over one, and writes no kubeconfig but its own', async () => {
    const { calls, fake } = recorder([]);
    const kubeconfig = await createKind({ state: STATE, engine: 'podman', run: fake, signal });
    expect(kubeconfig).toBe('/checkout/.berth/kubeconfig');
    expect(calls.map(({ args }) => args[0])).toEqual(['delete', 'create']);
    for (const { args, provider } of calls) {
      expect(provider).toBe('podman');
      expect(args.join(' ')).toContain(`--name ${kindName(STATE)}`);
      expect(args.join(' ')).toContain('--kubeconfig /checkout/.berth/kubeconfig');
    }
  });

  it('explains a failure with the last words of kind', async () => {
    const { fake } = recorder([{}, { code: 1, stderr: 'ERROR: no space left' }]);
    const creating = createKind({ state: STATE, engine: 'docker', run: fake, signal });
    await expect(creating).rejects.toMatchObject({ name: 'LocalFailure', details: ['ERROR: no space left'] });
  });

  it('is deleted by name', async () => {
    const { calls, fake } = recorder([]);
    await deleteKind({ state: STATE, engine: 'docker', run: fake });
    expect(calls[0]?.args).toEqual(['delete', 'cluster', '--name', kindName(STATE)]);
  });
});
