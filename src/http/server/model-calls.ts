import type { RequestListener } from 'node:http';
import { relativePath, withPlainBase } from '../interface/errors/families.ts';
import { failureAnswer } from '../interface/errors/handler.ts';
import { runSteps } from '../interface/step.ts';
import type { ApiContext } from './context.ts';
import type { ApiSteps } from './steps.ts';

/**
 * Serves what is plainly a model call without Express, which would cost as much as the call itself: a POST to exactly
 * the path of one, whatever its query, at a host that is no port's. All else goes to `app`, where the same calls stand
 * behind the same steps.
 */
export function createListener(context: ApiContext, steps: ApiSteps, app: RequestListener): RequestListener {
  const { models, ports, log } = context;
  const all = [...steps.opening, steps.measure];
  const answerFailure = failureAnswer(log);
  return (request, response) => {
    const isOfPort = ports.hostOf(request) !== undefined;
    if (!isOfPort) request.url = withPlainBase(request.url ?? '');
    const { url = '' } = request;
    const mark = url.indexOf('?');
    const path = request.method === 'POST' ? relativePath(mark < 0 ? url : url.slice(0, mark)) : undefined;
    const serve = path === undefined ? undefined : models.calls.get(path);
    if (path === undefined || serve === undefined || isOfPort) return app(request, response);
    const fail = (error: unknown): void => {
      if (response.headersSent) response.destroy();
      else answerFailure(error, { request, response, path });
    };
    const enter = (): void => {
      // As a mount of Express does it.
      request.url = mark < 0 ? path : path + url.slice(mark);
      runSteps(steps.entry, () => serve(request, response), { request, response, fail });
    };
    runSteps(all, enter, { request, response, fail });
  };
}
