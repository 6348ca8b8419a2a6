import express from 'express';
import { Agent } from 'undici';

/**
 * The yardstick: what any Express 5 handler has to do to pass a call on with a key checked. Nothing is looked at,
 * counted, balanced or retried. Usage: bare-express.ts PORT UPSTREAM KEY
 */
const [port = '0', origin = '', key = ''] = process.argv.slice(2);
const keys = new Map([[`Bearer ${key}`, { name: 'bench' }]]);
const agent = new Agent();
const app = express();

app.post('/api/v1/*path', (request, response) => {
  if (!keys.has(request.headers.authorization ?? '')) {
    response.status(401).json({ error: { message: 'Invalid API key.' } });
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const path = request.url.replace('/api', '');
    const headers = { 'content-type': 'application/json' };
    agent.dispatch(
      { origin, path, method: 'POST', headers, body: Buffer.concat(chunks) },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, headers) {
          const answer: Record<string, string> = { 'content-type': String(headers['content-type']) };
          if (headers['content-length'] !== undefined) answer['content-length'] = String(headers['content-length']);
          response.writeHead(status, answer);
        },
        onResponseData(controller, chunk) {
          if (response.write(chunk)) return;
          controller.pause();
          response.once('drain', () => controller.resume());
        },
        onResponseEnd() {
          response.end();
        },
        onResponseError() {
          response.destroy();
        },
      },
    );
  });
});
app.listen(Number(port), '127.0.0.1', () => console.log('ready'));

// Node writes a profile only on an orderly exit.
process.once('SIGINT', () => process.exit());
