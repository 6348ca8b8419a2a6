import express, { type Express, type RequestHandler } from 'express';
import { cliRouter } from '../features/cli/routes.ts';
import { portHosts } from '../features/ports/routes.ts';
import { noEndpoint } from '../interface/errors/api-error.ts';
import { errorHandler } from '../interface/errors/handler.ts';
import { apiRouter } from './api-router.ts';
import type { ApiContext } from './context.ts';
import { docsRouter } from './docs.ts';
import { healthRouter } from './health.ts';
import { plainUrl } from './plain-url.ts';
import { requireHost, security } from './security.ts';
import type { ApiSteps } from './steps.ts';

/** Every later step sees the path in one spelling. */
const writePlainly: RequestHandler = (request, _response, next) => {
  request.url = plainUrl(request.url);
  request.originalUrl = request.url;
  next();
};

/** The HTTP interface as an Express app. Some clients add the base path to a URL that has it: both forms are served. */
export function createApp(context: ApiContext, steps: ApiSteps, isStopping: () => boolean): Express {
  const app = express();
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.set('trust proxy', context.trustProxy);
  app.set('query parser', false);
  // Ports come before the metrics: their paths belong to the program in the instance.
  app.use(...steps.opening, portHosts(context), writePlainly, steps.measure);
  app.use(['/api/v1/api/v1', '/api/v1'], apiRouter(context, steps));
  app.use(security, requireHost, context.strangers, docsRouter(), cliRouter());
  app.use('/dashboard', context.dashboard);
  app.use(healthRouter(context.stores, isStopping));
  app.use((request) => {
    throw noEndpoint(request);
  });
  app.use(errorHandler(context.log));
  return app;
}
