import type { IndexFunctions } from '../kube/watch/store.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import type { SshKey } from '../resources/ssh-key.ts';
import { CONFIRM_BY } from './instances/annotations.ts';
import { sshKeyId } from './records/ssh-key-record.ts';

export { API_KEY_INDEXERS } from './auth/authenticator.ts';
export { TEMPLATE_INDEXERS } from './instances/templates.ts';

/** The indexes that the store of GPUInstances must have. */
export const INSTANCE_INDEXERS: IndexFunctions<GpuInstance> = {
  namespace: ({ metadata }) => [metadata.namespace ?? ''],
  unconfirmed: ({ metadata }) => (metadata.annotations?.[CONFIRM_BY] === undefined ? [] : ['true']),
};

/** The indexes that the store of SSHKeys must have. */
export const SSH_KEY_INDEXERS: IndexFunctions<SshKey> = {
  namespace: ({ metadata }) => [metadata.namespace ?? ''],
  id: (key) => [`${key.metadata.namespace}/${sshKeyId(key)}`],
};
