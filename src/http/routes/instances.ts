import { Router } from 'express';
import { requireScope } from '../auth/middleware.ts';
import type { ApiContext } from '../context.ts';
import { methodNotAllowed } from './method-not-allowed.ts';
import { createInstanceHandler } from './instance-create.ts';
import { deleteInstance, listInstances, readInstance, updateInstance } from './instance-handlers.ts';
import { compress } from '../middleware/compress.ts';
import { jsonBody } from '../middleware/json-body.ts';

/** GET and POST /instances; GET, PATCH and DELETE /instances/{instanceId}. */
export function instancesRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  const read = requireScope('compute:read');
  const write = requireScope('compute:write');
  router.get('/', read, compress(), listInstances(context));
  router.post('/', write, jsonBody, createInstanceHandler(context));
  router.all('/', methodNotAllowed('GET, HEAD, POST'));
  router.get('/:instanceId', read, readInstance(context));
  router.patch('/:instanceId', write, jsonBody, updateInstance(context));
  router.delete('/:instanceId', write, deleteInstance(context));
  router.all('/:instanceId', methodNotAllowed('GET, HEAD, PATCH, DELETE'));
  return router;
}
