import { createHash } from 'node:crypto';
import { createServer } from 'node:https';
import { tarOf } from '../../src/lib/tar.ts';
import { OWN_ARCHITECTURE } from '../../tools/lib/host/architecture.ts';
import { createAuthority, issue } from '../../tools/lib/x509.ts';

// The registry `localhost`, with one image under every name below team/, and nothing else. It prints a line when it
// listens. Run it in the network of the real node: containerd takes any certificate of localhost.

interface Blob {
  digest: string;
  content: Buffer;
}

function blob(content: Buffer): Blob {
  return { digest: `sha256:${createHash('sha256').update(content).digest('hex')}`, content };
}

const layer = blob(tarOf([{ name: 'app', type: 'file', content: Buffer.from('nothing that runs\n') }]));
const config = blob(
  Buffer.from(
    JSON.stringify({
      architecture: OWN_ARCHITECTURE,
      os: 'linux',
      config: { Entrypoint: ['/app'] },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    }),
  ),
);
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const describe = (mediaType: string, { digest, content }: Blob) => ({ mediaType, digest, size: content.length });
const manifest = blob(
  Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: describe('application/vnd.oci.image.config.v1+json', config),
      layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
    }),
  ),
);

const { certificate: cert, key } = await issue(await createAuthority('berth-test'), {
  commonName: 'localhost',
  hosts: ['localhost'],
});
const server = createServer({ cert, key }, ({ url = '', method }, response) => {
  const [, kind = '', reference = ''] = /^\/v2\/team\/[^/]+\/(manifests|blobs)\/([^?]+)/.exec(url) ?? [];
  const found =
    kind === 'manifests' ? manifest : [layer, config].find(({ digest }) => kind === 'blobs' && digest === reference);
  if (url === '/v2/' || found === undefined) {
    response.writeHead(url === '/v2/' ? 200 : 404).end();
    return;
  }
  response.writeHead(200, {
    'content-type': kind === 'manifests' ? MANIFEST : 'application/octet-stream',
    'content-length': found.content.length,
    'docker-content-digest': found.digest,
  });
  response.end(method === 'HEAD' ? undefined : found.content);
});
server.listen(443, '127.0.0.1', () => process.stdout.write('listens\n'));
