import type { KubeObject } from '../../kube/types.ts';
import { API_VERSION } from '../schema.ts';

/** Label of the pods that bring an image to a node before an instance asks for it. */
export const IMAGE_PULL_LABEL = 'berth.dev/image-pull';

/** Name of the GPUPool that such a pod works for, by its owner; undefined for every other object. */
export function poolOfPull({ metadata }: KubeObject): string | undefined {
  if (metadata.labels?.[IMAGE_PULL_LABEL] === undefined) return undefined;
  return metadata.ownerReferences?.find(({ kind, apiVersion }) => kind === 'GPUPool' && apiVersion === API_VERSION)
    ?.name;
}
