import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { lookForGo } from '../../../tools/lib/go/find.ts';
import { cacheFolder, ROOT } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { run } from '../../../tools/lib/shell.ts';
import { ensureGoTools, TERRAFORM_MANIFESTS } from '../../../tools/release/go-tools.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';

const EXAMPLE = join(ROOT, 'docs/use/examples/terraform');
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';

// Where the cluster was given, there may be no Go to build the reader with.
describe.skipIf(!(await lookForGo()).usable)('the Terraform example', () => {
  let reader: string;
  let tenant: TestNamespace;
  let changed: string;

  beforeAll(async () => {
    const { signal } = new AbortController();
    const options = { label: 'terraform', programs: [TERRAFORM_MANIFESTS], progress: plainProgress(), signal };
    const folder = await ensureGoTools({ ...options, cache: cacheFolder(process.env) });
    reader = join(folder, TERRAFORM_MANIFESTS.name);
    tenant = await testNamespace();
    await kindsCounted(tenant.client);
    changed = mkdtempSync(join(tmpdir(), 'berth-terraform-'));
  }, 600_000);
  afterAll(async () => {
    rmSync(changed, { recursive: true });
    await tenant[Symbol.asyncDispose]();
  });

  const read = (folder: string, ...given: string[]) =>
    run(reader, [folder, `namespace=${tenant.name}`, `public_key=${PUBLIC_KEY}`, ...given]);

  /** What the API server makes of a manifest, by the kind of request that the provider sends; nothing is stored. */
  function plan(manifest: string) {
    const { programs, kubeconfig } = inject('cluster');
    const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
    const args = ['apply', '--server-side', '--field-manager=Terraform', '--dry-run=server', '-o', 'json', '-f', '-'];
    return run(program, ['--kubeconfig', kubeconfig, ...args], { input: manifest });
  }

  /** The example with one line in place of another. */
  function exampleWith(from: string, to: string): string {
    cpSync(EXAMPLE, changed, { recursive: true });
    const text = readFileSync(join(EXAMPLE, 'main.tf'), 'utf8');
    expect(text).toContain(from);
    writeFileSync(join(changed, 'main.tf'), text.replace(from, to));
    return changed;
  }

  it('has manifests that the API server takes as they are', async () => {
    const { code, stdout, stderr } = await read(EXAMPLE, 'gpu=NVIDIA-L4');
    expect(code, stderr).toBe(0);
    const manifests = stdout.trim().split('\n');
    expect(manifests.map((text) => (JSON.parse(text) as { kind: string }).kind)).toEqual(['SSHKey', 'GPUInstance']);
    for (const manifest of manifests) {
      const answer = await plan(manifest);
      expect(answer.code, answer.stderr).toBe(0);
      // The provider fails when the server changes a value of the manifest.
      expect(JSON.parse(answer.stdout)).toMatchObject(JSON.parse(manifest) as object);
    }
  });

  it.each([
    ['a block that the resource has not', '  wait {', '  waits {', 'Blocks of type "waits" are not expected here'],
    ['a reference to nothing', 'var.gpu\n', 'var.product\n', 'This object does not have an attribute named "product"'],
    [
      'an output of nothing',
      'data.kubernetes_resource.instance.object',
      'data.kubernetes_resource.one.object',
      'not there',
    ],
  ])('is read as Terraform reads it: %s is refused', async (_what, from, to, words) => {
    const { code, stderr } = await read(exampleWith(from, to));
    expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
  });

  it('is compared with the schemas of the cluster: a field that no resource has is refused', async () => {
    const { stdout } = await read(exampleWith('diskGb      = 64', 'diskGB      = 64'));
    const answer = await plan(stdout.trim().split('\n').at(-1) ?? '');
    expect([answer.code, answer.stderr]).toEqual([1, expect.stringContaining('diskGB')]);
  });
});
