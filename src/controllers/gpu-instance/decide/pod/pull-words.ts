import type { Pod } from '../../../../kube/types.ts';
import { pullProblem } from '../../../../resources/pod/pull-problem.ts';
import { PULL_SECRET } from '../../../../resources/registry-credential.ts';
import type { WaitingState } from './pod-facts.ts';

/** Reasons of the kubelet for an image that it can never fetch. */
const BAD_IMAGE = new Set(['InvalidImageName', 'ErrImageNeverPull']);
const PULLING = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);

/** An image reference that the kubelet will never accept. */
export function isBadImage(reason: string): boolean {
  return BAD_IMAGE.has(reason);
}

export function isPullError(reason: string): boolean {
  return PULLING.has(reason);
}

function isInit({ spec }: Pod, container: string): boolean {
  return spec?.initContainers?.some(({ name }) => name === container) === true;
}

/** Why an image does not come, for the tenant, and what to do. */
export function pullWords(pod: Pod, waiting: WaitingState): string {
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const image = [...initContainers, ...containers].find(({ name }) => name === waiting.container)?.image;
  const said = pullProblem(image ?? 'The image', waiting);
  return isBadImage(waiting.reason) ? said : `${said} ${credentialWords(pod, waiting.container)}`;
}

/** With which Secrets the kubelet asks for the image of a container. */
export function credentialWords(pod: Pod, container: string): string {
  if (isInit(pod, container)) return 'It is an image of Berth: tell the operator of this cluster.';
  const all = pod.spec?.imagePullSecrets?.map(({ name }) => name ?? '') ?? [];
  const names = all.filter((name) => name !== PULL_SECRET);
  return names.length === 0
    ? 'If the image is private, name credentials for its registry.'
    : `The kubelet asked with the imagePullSecrets ${names.join(', ')} and passes over one that does not exist.`;
}
