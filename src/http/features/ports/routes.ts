import type { ServerResponse } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { getPrincipal } from '../../../access/principal.ts';
import { portOf } from '../../../ports/address.ts';
import { PortError } from '../../../ports/errors.ts';
import type { Incoming, InstancePorts } from '../../../ports/instance-ports.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { JUPYTER_PORT } from '../../../resources/pod/jupyter.ts';
import { requireScope } from '../../interface/auth/middleware.ts';
import { ApiError, validationFailed } from '../../interface/errors/api-error.ts';
import { routeWithBody } from '../../interface/route.ts';
import { sendJson } from '../../interface/send.ts';
import type { Step } from '../../interface/step.ts';
import { upgradeOf } from '../../interface/upgrades.ts';
import { instanceOf, type InstanceSource } from '../instances/find.ts';
import type { InstancePresenter } from '../instances/presenter.ts';
import { createLinkSchema, linkSchema } from './schema.ts';

export interface PortsContext extends InstanceSource {
  instances: InstancePresenter;
  ports: InstancePorts;
  /** Counts what clients hold. */
  connections: { keep(response: ServerResponse): void };
  /** Lets requests of strangers have their answer. */
  strangers: Step;
  /** In which tenants begin requests. */
  turns: { take(tenant: string, begin: () => void): void };
}

function incomingOf({ connections, strangers, turns }: PortsContext, request: Request, response: Response): Incoming {
  const protocol = request.secure ? 'https' : 'http';
  const sender = { address: request.ip ?? '', protocol } as const;
  let isAccepted = false;
  const accepted = (tenant: string): Promise<void> => {
    isAccepted = true;
    connections.keep(response);
    return new Promise((resolve) => turns.take(tenant, resolve));
  };
  const answer = (send: () => void) => (isAccepted ? send() : strangers(request, response, send));
  return { request, response, upgrade: upgradeOf(request), sender, accepted, answer };
}

function rethrow(error: unknown): never {
  if (error instanceof PortError) throw new ApiError(error.problem, error.message, { cause: error.cause });
  throw error;
}

/** The port to open when the request names none. */
function usualPort({ instances }: PortsContext, instance: GpuInstance): number {
  const record = instances.record(instance);
  if (record.runtype === 'jupyter') return JUPYTER_PORT;
  const [first, ...others] = record.ports.filter(({ protocol }) => protocol === 'tcp');
  if (first !== undefined && others.length === 0) return first.container_port;
  throw validationFailed([{ path: 'port', expected: 'the number of a port that the instance declares' }]);
}

export const createLinkRoute = routeWithBody({
  method: 'post',
  path: '/instances/{instanceId}/links',
  id: 'createLink',
  tag: 'Instances',
  scope: 'compute:write',
  summary: 'Open a port of an instance in a browser',
  description:
    'The link works once, within a minute. Programs do not need it: they call ' +
    '/instances/{instanceId}/proxy/{port}/... with their key.',
  request: {
    schema: createLinkSchema,
    required: false,
    examples: {
      jupyter: { summary: 'Jupyter, on an instance with runtype jupyter', value: {} },
      port: { summary: 'A port that the instance declares', value: { port: 7860 } },
    },
  },
  success: { status: 201, schema: linkSchema, description: 'The link.' },
  errors: ['instance_not_found', 'instance_not_running', 'instance_simulated', 'port_not_declared', 'port_unreachable'],
  async handle(context: PortsContext, { request, response, caller, body }) {
    const instance = await instanceOf(context, request);
    const port = body.port ?? usualPort(context, instance);
    const call = { user: caller, instance, port, prefix: '', path: body.path ?? '/' };
    const { url, expires } = await context.ports.link(call).catch(rethrow);
    const link = { object: 'link', instance_id: instance.metadata.name, port, url };
    response.status(201);
    sendJson(response, JSON.stringify({ ...link, expires_at: new Date(expires).toISOString() }));
  },
});

/** Serves requests to the host of a port, and passes all others on. */
export function portHosts(context: PortsContext): RequestHandler {
  return async (request, response, next) => {
    const { ports } = context;
    const host = ports.hostOf(request);
    if (host === undefined) return next();
    await ports.page(incomingOf(context, request, response), host);
  };
}

/** Everything under /instances/{instanceId}/proxy/{port}, by any method. */
export function proxyRouter(context: PortsContext): Router {
  const router = Router({ caseSensitive: true });
  const paths = ['/:instanceId/proxy/:port', '/:instanceId/proxy/:port/*rest'];
  router.all(paths, requireScope('compute:write'), async (request, response) => {
    const port = portOf(String(request.params['port']));
    if (port === undefined)
      throw new ApiError(
        'port_not_declared',
        'The path has no valid port number. Call /instances/{instanceId}/proxy/{port}.',
      );
    const instance = await instanceOf(context, request);
    // From the original URL: decoding the path and encoding it again could change it.
    const base = `/proxy/${port}`;
    const { originalUrl } = request;
    const at = originalUrl.indexOf(base);
    const prefix = at === -1 ? '' : originalUrl.slice(0, at + base.length);
    const rest = originalUrl.slice(prefix.length);
    const path = rest.startsWith('/') ? rest : `/${rest}`;
    const call = { user: getPrincipal(request), instance, port, prefix, path };
    await context.ports.call(incomingOf(context, request, response), call).catch(rethrow);
  });
  return router;
}
