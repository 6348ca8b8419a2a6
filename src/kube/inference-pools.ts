import type { LabelSelector } from './selector.ts';
import { type KubeObject, v1 } from './types.ts';

/** A pool of the Gateway API Inference Extension, as far as it says where its servers are. */
export interface InferencePool extends KubeObject {
  spec?: {
    selector?: Pick<LabelSelector, 'matchLabels'>;
    targetPorts?: readonly { number: number }[];
    appProtocol?: string;
  };
}

export const INFERENCE_POOLS = v1<InferencePool>('inference.networking.k8s.io', 'InferencePool', 'inferencepools');
