import { isIP } from 'node:net';
import { isInsideName } from '../../lib/inside-name.ts';
import { isPublic } from '../../lib/public-address.ts';
import { repositoryOf } from '../image-credentials.ts';

/** More of the words of a kubelet are not looked at. */
const MAX_WORDS = 4096;

/** Reasons of the kubelet for an image that it can never fetch. */
const NEVER: Readonly<Record<string, string>> = {
  InvalidImageName: 'this is no name of an image. Check its spelling.',
  ErrImageNeverPull: 'the node does not have it, and pulls no images. Tell the operator of this cluster.',
};

const UNKNOWN =
  'the node got no image from its registry. Check its name and tag, and that nodes can reach the registry.';

/** What containerd and CRI-O say, in lower case, and what a tenant reads for it. No name of an image has a space. */
const KNOWN: readonly { signs: readonly string[]; words: string }[] = [
  {
    signs: ['no space left on device'],
    words: 'the disk of the node is full. Use a smaller image, or try again later.',
  },
  {
    signs: ['no match for platform', 'no image found in manifest list', 'no image found in image index'],
    words: 'it has no variant for the processor of the node. Build one, or rent another product.',
  },
  {
    signs: ['too many requests', ': toomanyrequests'],
    words: 'its registry gets too many requests. Wait, or use credentials or a registry of your own.',
  },
  {
    signs: [
      '401 unauthorized',
      '403 forbidden',
      ': unauthorized',
      ': denied',
      'access denied',
      'access to the resource is denied',
      'authorization failed',
      'authentication required',
      'no basic auth credentials',
    ],
    words: 'its registry refuses the credentials, or has no such image. Check its name and tag.',
  },
  {
    signs: [': not found', 'manifest unknown', 'name unknown'],
    words: 'its registry has no such image. Check its name and tag.',
  },
];

/** Whether the registry of an image is an address inside, or a name that only networks inside know. */
function isInside(image: string): boolean {
  const [place = ''] = repositoryOf(image).toLowerCase().split('/');
  const host = place.startsWith('[') ? place.slice(1, place.indexOf(']')) : place.replace(/:\d*$/, '');
  if (isIP(host) !== 0) return !isPublic(host);
  return isInsideName(host);
}

/**
 * Why an image does not come, for a tenant, in words of this table only. The name of an image may be an address, and the
 * kubelet asks from inside: its own words, which are in the events of the pod, would tell what answers there, and what
 * it says. All failures of the network have the same words, since a public name can lead to an address inside as well.
 * What a registry answers is told only where it must have a certificate for a public name: an address inside may answer
 * without one.
 */
export function pullProblem(image: string, { reason, message }: { reason: string; message: string }): string {
  const said = message.slice(0, MAX_WORDS).toLowerCase();
  const known = isInside(image) ? undefined : KNOWN.find(({ signs }) => signs.some((sign) => said.includes(sign)));
  return `${image} cannot be pulled: ${NEVER[reason] ?? known?.words ?? UNKNOWN}`;
}
