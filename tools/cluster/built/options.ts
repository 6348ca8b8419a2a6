/** What a built cluster is started with. */
export interface BuiltOptions {
  /** The state folder; `cluster`, `logs` and `kubeconfig` in it are made anew. */
  state: string;
  programs: string;
  /** What the real node needs of the host; undefined for simulated nodes only. */
  node?: { cniFolder: string; busybox: string } | undefined;
  /** Keep an audit log. */
  audit?: boolean;
  /** Path of the program that enforces network policies on the real node; without it nobody does. */
  networkPolicies?: string;
  signal: AbortSignal;
}
