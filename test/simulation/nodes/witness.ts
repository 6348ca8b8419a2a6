import type { Pod } from '../../../src/kube/types.ts';
import type { Piece } from './layout.ts';

/** The GPUs that one pod had on one node, whatever anybody wrote about it. */
export interface Holding {
  pod: Pod;
  /** uid of the instance that the pod was made for; undefined for other pods. */
  instance: string | undefined;
  node: string;
  pieces: readonly Piece[];
  /** Their ids. */
  gpus: readonly string[];
  /** It was made before anybody knew what its node gives out now, and has what it did not rent. */
  isAstray?: boolean;
  /** When the kubelet gave it the GPUs, milliseconds since the epoch. */
  from: number;
  /** When its main container ran for the first time. */
  ranFrom?: number;
  /** When its last container had ended. */
  ranTo?: number;
  /** Its kubelet was told to end it, before it ended by itself. */
  isAsked?: boolean;
  /** Its node lost its power. Nobody else knows when before Kubernetes misses the node. */
  isCutOff?: boolean;
  /** Its node did not answer when it ended. */
  isUnheard?: boolean;
  /** When the GPUs were free again. */
  to?: number;
}

/** Hears what the kubelets do. */
export interface Witness {
  took(holding: Holding, product: string): void;
  ended(holding: Holding): void;
  /** The node had not what the pod asks for. */
  rejected(pod: Pod, node: string, why: string): void;
  /** The node gives a pod of before no more what it had. Who cannot start there counts against the node. */
  refused(node: string): void;
  /** The GPUs of a node are given out otherwise than before. */
  switched(node: string): void;
  /** A container runs with this volume. */
  mounted(holding: Holding, volume: string, contents: Set<string>): void;
  /** A node hears and says nothing from now on, or does again. */
  away(node: string, isAway: boolean): void;
  /** Kubernetes saw that a node does not answer, or answers again. */
  silent(node: string, isSilent: boolean): void;
  volumeGone(volume: string, contents: ReadonlySet<string>, claim: string): void;
}
