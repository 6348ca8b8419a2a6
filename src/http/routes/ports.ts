import { type Request, type RequestHandler, type Response, Router } from 'express';
import { PortError } from '../../ports/errors.ts';
import { portOf } from '../../ports/address.ts';
import type { Incoming } from '../../ports/instance-ports.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { JUPYTER_PORT } from '../../resources/pod/jupyter.ts';
import { requireScope } from '../auth/middleware.ts';
import { getPrincipal } from '../../access/principal.ts';
import type { ApiContext } from '../context.ts';
import { ApiError, validationFailed } from '../errors/api-error.ts';
import { jsonBody } from '../middleware/json-body.ts';
import { parseBody } from '../middleware/validate.ts';
import { createLinkSchema } from '../schemas/link.ts';
import { sendJson } from '../send.ts';
import { findInstance } from '../tenant.ts';
import { upgradeOf } from '../upgrades.ts';
import { methodNotAllowed } from './method-not-allowed.ts';

function incomingOf(request: Request, response: Response): Incoming {
  const protocol = request.secure ? 'https' : 'http';
  const sender = { address: request.ip ?? '', protocol } as const;
  return { request, response, upgrade: upgradeOf(request), sender };
}

function rethrow(error: unknown): never {
  if (error instanceof PortError) throw new ApiError(error.problem, error.message, { cause: error.cause });
  throw error;
}

async function instanceOf(context: ApiContext, request: Request): Promise<GpuInstance> {
  const { namespace } = getPrincipal(request);
  const instance = await findInstance(context, namespace, String(request.params['instanceId']));
  if (instance === undefined) throw new ApiError('instance_not_found', 'No instance has this id.');
  return instance;
}

/** The port to open when none is named. */
function usualPort({ context, instance }: { context: ApiContext; instance: GpuInstance }): number {
  const record = context.instances.record(instance);
  if (record.runtype === 'jupyter') return JUPYTER_PORT;
  const [first, ...others] = record.ports.filter(({ protocol }) => protocol === 'tcp');
  if (first !== undefined && others.length === 0) return first.container_port;
  throw validationFailed([{ path: 'port', expected: 'the number of a port that the instance declares' }]);
}

/** Serves the hosts of ports; everything else goes on. */
export function portHosts({ ports }: ApiContext): RequestHandler {
  return async (request, response, next) => {
    const host = ports.hostOf(request);
    if (host === undefined) return next();
    await ports.page(incomingOf(request, response), host);
  };
}

/** POST /instances/{instanceId}/links, and everything under /instances/{instanceId}/proxy/{port}. */
export function portsRouter(context: ApiContext): Router {
  const { ports } = context;
  const router = Router({ caseSensitive: true });
  const write = requireScope('compute:write');

  router.post('/:instanceId/links', write, jsonBody, async (request, response) => {
    const body = parseBody(createLinkSchema, request.body);
    const user = getPrincipal(request);
    const instance = await instanceOf(context, request);
    const port = body.port ?? usualPort({ context, instance });
    const call = { user, instance, port, prefix: '', path: body.path ?? '/' };
    const { url, expires } = await ports.link(call).catch(rethrow);
    const link = { object: 'link', instance_id: instance.metadata.name, port, url };
    response.status(201);
    sendJson(response, JSON.stringify({ ...link, expires_at: new Date(expires).toISOString() }));
  });
  router.all('/:instanceId/links', methodNotAllowed('POST'));

  router.all(['/:instanceId/proxy/:port', '/:instanceId/proxy/:port/*rest'], write, async (request, response) => {
    const port = portOf(String(request.params['port']));
    if (port === undefined) throw new ApiError('port_not_declared', 'The path names no port.');
    const instance = await instanceOf(context, request);
    // Below the routers' base paths, as the client wrote it: a decoded and encoded path may be another one.
    const prefix = new RegExp(`^.*?/proxy/${port}`).exec(request.originalUrl)?.[0] ?? '';
    const rest = request.originalUrl.slice(prefix.length);
    const call = {
      user: getPrincipal(request),
      instance,
      port,
      prefix,
      path: rest.startsWith('/') ? rest : `/${rest}`,
    };
    await ports.call(incomingOf(request, response), call).catch(rethrow);
  });
  return router;
}
