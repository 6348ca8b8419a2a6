import type { Scope } from '../../resources/api-key.ts';
import type { ErrorCode } from '../errors/catalogue.ts';
import type { ErrorFamily } from '../errors/families.ts';
import { EXAMPLES, type Example } from './examples.ts';
import type { SchemaName } from './registry.ts';

export interface Operation {
  method: 'get' | 'post' | 'patch' | 'delete';
  path: string;
  id: string;
  tag: 'Offers' | 'Instances' | 'SSH keys' | 'Models';
  scope: Scope;
  summary: string;
  description?: string;
  family: ErrorFamily;
  request?: { schema: SchemaName; required: boolean; examples: Record<string, Example> };
  success: { status: 200 | 201; schema: SchemaName; description: string };
  /** Also an event stream, on request. */
  events?: string;
  idempotent?: boolean;
  /** Operations that take the id of what was made, and the name of their parameter. */
  links?: Record<string, string>;
  /** Beside those that every endpoint has. */
  errors: readonly ErrorCode[];
}

const BODY_ERRORS = [
  'malformed_json',
  'bad_request',
  'payload_too_large',
  'unsupported_media_type',
  'validation_failed',
] as const satisfies ErrorCode[];

const RESUME =
  'Events carry an id; send the last one as Last-Event-ID to go on from there, at any replica. ' +
  '`resync` instead of `snapshot` says that too much was missed and everything is sent anew.';

const compute = { family: 'compute' } as const;

export const OPERATIONS: readonly Operation[] = [
  {
    ...compute,
    method: 'get',
    path: '/offers',
    id: 'listOffers',
    tag: 'Offers',
    scope: 'compute:read',
    summary: 'List what is for rent, cheapest first',
    description: `With Accept: text/event-stream: snapshot (the list), offer (one that is new or changed), deleted. ${RESUME}`,
    success: { status: 200, schema: 'OfferList', description: 'All offers, those that are rented out too.' },
    events: 'snapshot, offer, deleted, resync',
    errors: ['too_many_streams'],
  },
  {
    ...compute,
    method: 'get',
    path: '/instances',
    id: 'listInstances',
    tag: 'Instances',
    scope: 'compute:read',
    summary: 'List your instances, oldest first',
    description: `With Accept: text/event-stream: snapshot (the list), instance (one that is new or changed), deleted. ${RESUME}`,
    success: { status: 200, schema: 'InstanceList', description: 'All instances of the tenant.' },
    events: 'snapshot, instance, deleted, resync',
    errors: ['too_many_streams'],
  },
  {
    ...compute,
    method: 'post',
    path: '/instances',
    id: 'createInstance',
    tag: 'Instances',
    scope: 'compute:write',
    summary: 'Rent an instance',
    description:
      'Answers 201 when the place is granted, or 409 with alternatives and nothing rented. An ask_id that no offer has ' +
      'is 409 offer_unavailable too: offers come and go. With no body the cheapest free offer is rented.',
    request: { schema: 'CreateInstance', required: false, examples: EXAMPLES.createInstance },
    success: { status: 201, schema: 'Instance', description: 'Rented. Location names it.' },
    idempotent: true,
    links: {
      getInstance: 'instanceId',
      updateInstance: 'instanceId',
      createLink: 'instanceId',
      deleteInstance: 'instanceId',
    },
    errors: [
      ...BODY_ERRORS,
      'quota_exceeded',
      'offer_unavailable',
      'offer_changed',
      'idempotency_conflict',
      'instance_deleting',
      'tenant_unavailable',
      'claim_timeout',
    ],
  },
  {
    ...compute,
    method: 'get',
    path: '/instances/{instanceId}',
    id: 'getInstance',
    tag: 'Instances',
    scope: 'compute:read',
    summary: 'Read one instance',
    description: `With Accept: text/event-stream: snapshot (the instance), instance, deleted; then the stream ends. ${RESUME}`,
    success: { status: 200, schema: 'Instance', description: 'The instance.' },
    events: 'snapshot, instance, deleted, resync',
    errors: ['bad_request', 'instance_not_found', 'too_many_streams'],
  },
  {
    ...compute,
    method: 'patch',
    path: '/instances/{instanceId}',
    id: 'updateInstance',
    tag: 'Instances',
    scope: 'compute:write',
    summary: 'Rename, label, stop or start an instance',
    description:
      'Fields that are left out stay; null clears label and name. A stopped instance frees its GPUs and keeps its disk; ' +
      'starting it again needs a free place.',
    request: { schema: 'UpdateInstance', required: false, examples: EXAMPLES.updateInstance },
    success: { status: 200, schema: 'Instance', description: 'The instance after the change.' },
    errors: [...BODY_ERRORS, 'instance_not_found', 'instance_deleting', 'tenant_unavailable'],
  },
  {
    ...compute,
    method: 'delete',
    path: '/instances/{instanceId}',
    id: 'deleteInstance',
    tag: 'Instances',
    scope: 'compute:write',
    summary: 'Delete an instance and its disk',
    description: 'Done when the deletion is recorded: until the GPUs are free the instance is still there, deleting.',
    success: {
      status: 200,
      schema: 'DeletedInstance',
      description: 'It will be gone. Also when it was deleted before.',
    },
    errors: ['bad_request', 'instance_not_found'],
  },
  {
    ...compute,
    method: 'post',
    path: '/instances/{instanceId}/links',
    id: 'createLink',
    tag: 'Instances',
    scope: 'compute:write',
    summary: 'Open a port of an instance in a browser',
    description:
      'The link works once, within a minute. Programs call /instances/{instanceId}/proxy/{port}/... with their key instead.',
    request: { schema: 'CreateLink', required: false, examples: EXAMPLES.createLink },
    success: { status: 201, schema: 'Link', description: 'The link.' },
    errors: [...BODY_ERRORS, 'instance_not_found', 'instance_not_running', 'port_not_declared', 'port_unreachable'],
  },
  {
    ...compute,
    method: 'get',
    path: '/ssh-keys',
    id: 'listSSHKeys',
    tag: 'SSH keys',
    scope: 'compute:read',
    summary: 'List your SSH keys, oldest first',
    success: { status: 200, schema: 'SSHKeyList', description: 'All SSH keys of the tenant.' },
    errors: [],
  },
  {
    ...compute,
    method: 'post',
    path: '/ssh-keys',
    id: 'createSSHKey',
    tag: 'SSH keys',
    scope: 'compute:write',
    summary: 'Register an SSH public key',
    description: 'It opens instances that name it, and those that name none, within seconds and without a restart.',
    request: { schema: 'CreateSSHKey', required: true, examples: EXAMPLES.createSshKey },
    success: { status: 201, schema: 'SSHKey', description: 'Registered.' },
    idempotent: true,
    links: { deleteSSHKey: 'sshKeyId' },
    errors: [...BODY_ERRORS, 'quota_exceeded', 'idempotency_conflict', 'tenant_unavailable'],
  },
  {
    ...compute,
    method: 'delete',
    path: '/ssh-keys/{sshKeyId}',
    id: 'deleteSSHKey',
    tag: 'SSH keys',
    scope: 'compute:write',
    summary: 'Delete an SSH key and cut its sessions',
    success: { status: 200, schema: 'DeletedSSHKey', description: 'It opens nothing any more.' },
    errors: ['bad_request', 'ssh_key_not_found'],
  },
  {
    method: 'get',
    path: '/models',
    id: 'listModels',
    tag: 'Models',
    scope: 'models',
    summary: 'List the models that the cluster serves',
    family: 'openai',
    success: { status: 200, schema: 'ModelList', description: 'All models.' },
    errors: [],
  },
  ...(['/chat/completions', '/responses', '/messages'] as const).map((path): Operation => ({
    method: 'post',
    path,
    id: { '/chat/completions': 'createChatCompletion', '/responses': 'createResponse', '/messages': 'createMessage' }[
      path
    ],
    tag: 'Models',
    scope: 'models',
    summary: `${path === '/messages' ? "Anthropic's Messages" : path === '/responses' ? "OpenAI's Responses" : "OpenAI's Chat Completions"} API`,
    family: path === '/messages' ? 'anthropic' : 'openai',
    request: { schema: 'ModelRequest', required: true, examples: {} },
    success: { status: 200, schema: 'ModelResponse', description: 'The answer of the model.' },
    events: 'those of the API of that name, with "stream": true',
    errors: [],
  })),
];
