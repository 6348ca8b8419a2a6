import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goEnvironment } from '../lib/go/build.ts';
import { diagnoseBuild } from '../lib/go/diagnose.ts';
import { requireGo } from '../lib/go/find.ts';
import { kubernetesFolder, kubernetesVersion } from '../lib/go/programs.ts';
import { run } from '../lib/shell.ts';

/** The part of Kubernetes' OpenAPI 2 that the schemas come from. */
export interface OpenApi {
  definitions: Record<string, Record<string, unknown>>;
}

/**
 * The OpenAPI of the local cluster's API server, from the module that it is built from. It is kept in the cache folder, so
 * that the network is needed once. Throws LocalFailure.
 */
export async function readOpenApi(cache: string): Promise<OpenApi> {
  const folder = join(cache, 'open-api');
  const path = join(folder, `${kubernetesVersion()}.json`);
  const kept = await readFile(path, 'utf8').catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept) as OpenApi;
  const text = await readFile(join(await moduleFolder(cache), 'api/openapi-spec/swagger.json'), 'utf8');
  await mkdir(folder, { recursive: true });
  const partial = `${path}.${process.pid}.partial`;
  await writeFile(partial, text);
  await rename(partial, path);
  return JSON.parse(text) as OpenApi;
}

async function moduleFolder(cache: string): Promise<string> {
  const { code, stdout, stderr } = await run(await requireGo(), ['mod', 'download', '-json', 'k8s.io/kubernetes'], {
    cwd: kubernetesFolder(),
    env: goEnvironment(cache),
  });
  if (code !== 0) throw diagnoseBuild('the schemas of Kubernetes', stdout + stderr);
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}
